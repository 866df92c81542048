-- Every statement about who belongs to a cluster, by name. {schema} is the schema of the store.

-- name: has_tables
SELECT to_regclass('{schema}.cluster_ca') IS NOT NULL;

-- name: now
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: select_ca
SELECT certificate, key FROM {schema}.cluster_ca WHERE id = 1;

-- name: insert_ca
-- Whoever is first makes the cluster.
INSERT INTO {schema}.cluster_ca (id, certificate, key) VALUES (1, $1::bytea, $2::bytea)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: insert_token
INSERT INTO {schema}.join_token (digest, certificate, made_by, expires_at)
VALUES ($1::bytea, $2::bytea, $3::text, to_timestamp($4::double precision / 1000000));

-- name: delete_expired_tokens
DELETE FROM {schema}.join_token WHERE expires_at <= clock_timestamp();

-- name: select_token
SELECT certificate FROM {schema}.join_token
WHERE digest = $1::bytea AND expires_at > clock_timestamp();

-- name: burn_token
-- Of two that bring the same one, the second waits for the first, and finds none.
DELETE FROM {schema}.join_token WHERE digest = $1::bytea AND expires_at > clock_timestamp()
RETURNING made_by;
