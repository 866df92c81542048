-- 0006 pinned_keys: certificates in the rows of nodes, and signatures of rows that start work.
--
-- needs 0005
--
-- As long as nodes of the version before work here, which write none of it; the last statement of an
-- upgrade says that it is over (sign_cluster, need_signatures).
ALTER TABLE {schema}.node
  ADD COLUMN certificate bytea,                       -- DER; NULL = of a daemon alone, or of before
  ADD COLUMN signature   bytea;                       -- of identity, name and certificate
ALTER TABLE {schema}.run
  ADD COLUMN origin_signature bytea,                  -- of run_id and origin
  ADD COLUMN state_signature  bytea;                  -- of run_id, seq, state and pending
ALTER TABLE {schema}.journal  ADD COLUMN signature bytea;
ALTER TABLE {schema}.schedule ADD COLUMN signature bytea;
ALTER TABLE {schema}.cluster
  ADD COLUMN is_signed    boolean NOT NULL DEFAULT FALSE,  -- every run and schedule
  ADD COLUMN secret_check bytea;                      -- the same of every node with the same secret
