-- 0008 allowed_calls: what the user allows agents without being asked.
--
-- needs 0005
--
-- Nodes of the version before ask. Encrypted with the key of run_environment: whoever can write here
-- allows nothing.
CREATE TABLE {schema}.allowed_call (
  key    text  COLLATE "C" PRIMARY KEY,
  sealed bytea NOT NULL
);
