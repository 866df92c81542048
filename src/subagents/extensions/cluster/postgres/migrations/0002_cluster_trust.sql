-- 0002 cluster_trust: who may become a node (subagents/cluster).
--
-- The key of the CA is encrypted with a secret that only homes of nodes have, and of a token there
-- is only the digest of its secret: whoever reads these rows can neither issue nor join.
CREATE TABLE {schema}.cluster_ca (
  id          integer     PRIMARY KEY CHECK (id = 1),
  certificate bytea       NOT NULL,                -- DER
  key         bytea       NOT NULL,                -- AES-256-GCM: nonce and PKCS #8
  made_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE {schema}.join_token (
  digest      bytea       PRIMARY KEY,             -- SHA-256 of the secret
  certificate bytea       NOT NULL,                -- with which its holder may call a node
  made_by     text        COLLATE "C" NOT NULL,    -- the node
  expires_at  timestamptz NOT NULL
);
