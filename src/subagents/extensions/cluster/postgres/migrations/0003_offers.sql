-- 0003 offers: attempts that wait for a node to take them. See ports/nodes.py.
--
-- A row lives from the moment an owner offers an attempt until its taker is in the attempt's journal.
-- Whether a taker is alive, its row in node says, and nothing here.

CREATE TABLE {schema}.offer (
  attempt_id text        COLLATE "C" PRIMARY KEY,
  run_id     text        COLLATE "C" NOT NULL,
  epoch      bigint      NOT NULL,                    -- of the owner that offered it last
  label      text        COLLATE "C",                 -- NULL = any node
  priority   bigint      NOT NULL,
  cwd        text        COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  taken_by   text        COLLATE "C"                  -- node.name; NULL = nobody yet
);

CREATE INDEX offer_open ON {schema}.offer (priority DESC, at) WHERE taken_by IS NULL;
