-- 0001 initial: what the newest migration of SQLite has, in types of PostgreSQL.
--
-- Columns, their order and checksums are those of store/rows.py for both. Texts are compared by
-- their bytes, as in SQLite. {schema} is the schema that the store was told to use; the table of
-- applied migrations is there already.
CREATE TABLE {schema}.cluster (
  id         integer PRIMARY KEY CHECK (id = 1),
  home       text    COLLATE "C" NOT NULL,            -- of a daemon alone; '' = none, or several
  epoch      bigint  NOT NULL CHECK (epoch >= 0),     -- grows by one when a node joins
  place_base bigint  NOT NULL,                        -- added to the numbers of transactions
  checksum   bigint                                   -- of epoch and place_base
);

INSERT INTO {schema}.cluster (id, home, epoch, place_base) VALUES (1, '', 0, 0);

-- One row for each start of a daemon. It is written by every commit of that daemon, and by nothing
-- of another one but what ends it.
CREATE TABLE {schema}.node (
  identity    text        COLLATE "C" PRIMARY KEY,    -- random
  home        text        COLLATE "C" NOT NULL,       -- whose lock says that it is over
  epoch       bigint      NOT NULL,
  owner       text        COLLATE "C" NOT NULL,       -- its process, in leases
  name        text        COLLATE "C" NOT NULL,
  url         text        COLLATE "C",                -- where the others reach it
  labels      text        COLLATE "C" NOT NULL,       -- a JSON list
  slots       bigint,
  version     text        COLLATE "C" NOT NULL,
  lease_ms    bigint,                                 -- NULL = its right does not end by itself
  until       timestamptz NOT NULL,                   -- by the clock of this server
  since       timestamptz NOT NULL DEFAULT clock_timestamp(),  -- it never ended since then
  is_draining boolean     NOT NULL,
  peers       text[]      NOT NULL DEFAULT '{}',      -- identities: these it asks before its workers live on
  is_over     boolean     NOT NULL,
  commits     bigint      NOT NULL,                   -- the newest one; tells whether it was made
  checksum    bigint                                  -- of identity, home and epoch
) WITH (fillfactor = 10);

-- Who decides about which runs (domain/cluster/partitioning.py).
CREATE TABLE {schema}.part (
  part  smallint PRIMARY KEY,
  owner text     COLLATE "C",                         -- node.identity; NULL = nobody
  epoch bigint   NOT NULL                             -- grows when it changes hands
) WITH (fillfactor = 50);

INSERT INTO {schema}.part (part, owner, epoch) SELECT each, NULL, 0 FROM generate_series(0, 255) AS each;

-- Numbers of rows are (block << 30) + 1, 2 and so on: whoever has a block counts alone, and what is
-- written to a partition later has a larger number.
CREATE SEQUENCE {schema}.number_block;

CREATE TABLE {schema}.run (
  number          bigint   PRIMARY KEY,               -- order of spawning, in a partition
  run_id          text     COLLATE "C" NOT NULL UNIQUE,
  seq             bigint   NOT NULL CHECK (seq >= 1), -- events in this row; the journal continues it
  phase           text     COLLATE "C" NOT NULL,
  label           text     COLLATE "C" NOT NULL,
  agent_id        text     COLLATE "C" NOT NULL,
  requester       text     COLLATE "C" NOT NULL,
  requester_run   text     COLLATE "C",
  session_key     text     COLLATE "C" NOT NULL,
  is_over         smallint NOT NULL CHECK (is_over IN (0, 1)),
  keeps_session   smallint NOT NULL CHECK (keeps_session IN (0, 1)),
  created_at_ms   bigint   NOT NULL,
  ended_at_ms     bigint,
  archived_at_ms  bigint,
  origin          bytea    NOT NULL,
  state           bytea    NOT NULL,
  origin_checksum bigint,
  state_checksum  bigint,
  directory       text     COLLATE "C",
  tags            text     COLLATE "C",               -- a JSON list
  outcome         text     COLLATE "C",
  plan            text     COLLATE "C",
  pending         bytea,                              -- what it has to do as of seq
  part            smallint NOT NULL                   -- part.part; never changes
);

CREATE INDEX run_open      ON {schema}.run (created_at_ms, number) WHERE is_over = 0;
CREATE INDEX run_part      ON {schema}.run (part) WHERE is_over = 0;
CREATE INDEX run_session   ON {schema}.run (session_key);
CREATE INDEX run_parent    ON {schema}.run (requester_run) WHERE requester_run IS NOT NULL;
CREATE INDEX run_pending   ON {schema}.run (number) WHERE is_over = 1 AND pending IS NOT NULL;
-- Whether a run is archived stands before its time: a list goes past none of the other kind. It is
-- no boolean, for which PostgreSQL would look into the index on one side alone.
CREATE INDEX run_created
  ON {schema}.run ((CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END), created_at_ms, number);
CREATE INDEX run_ended
  ON {schema}.run ((CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END), ended_at_ms, number)
  WHERE is_over = 1;
CREATE INDEX run_requester
  ON {schema}.run (requester, (CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END), created_at_ms, number);
CREATE INDEX run_label
  ON {schema}.run (label, (CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END), created_at_ms, number);
CREATE INDEX run_agent
  ON {schema}.run (agent_id, (CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END), created_at_ms, number);
CREATE INDEX run_directory
  ON {schema}.run (directory, (CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END), created_at_ms, number);
CREATE INDEX run_outcome
  ON {schema}.run (outcome, (CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END), created_at_ms, number)
  WHERE outcome <> 'ok';
CREATE INDEX run_given_up
  ON {schema}.run ((CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END), created_at_ms, number)
  WHERE phase = 'completed_giveup';
CREATE INDEX run_plan      ON {schema}.run (plan, created_at_ms, number) WHERE plan IS NOT NULL;
CREATE INDEX run_plans     ON {schema}.run (created_at_ms, number) WHERE plan = run_id;

-- It only repeats the tags of run; the triggers keep it so, and whoever reads it asks the run again.
-- A tag has no control characters, so that JSON in PostgreSQL takes it.
CREATE TABLE {schema}.run_tag (
  tag           text     COLLATE "C" NOT NULL,
  is_listed     smallint NOT NULL,                    -- the run is not archived
  created_at_ms bigint   NOT NULL,
  number        bigint   NOT NULL,                    -- run.number
  PRIMARY KEY (tag, is_listed, created_at_ms, number)
);

CREATE FUNCTION {schema}.put_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO {schema}.run_tag (tag, is_listed, created_at_ms, number)
  SELECT DISTINCT each, CASE WHEN NEW.archived_at_ms IS NULL THEN 1 ELSE 0 END, NEW.created_at_ms,
         NEW.number
  FROM jsonb_array_elements_text(NEW.tags::jsonb) AS each;
  RETURN NULL;
END
$$;

CREATE FUNCTION {schema}.remove_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM {schema}.run_tag
  WHERE tag IN (SELECT jsonb_array_elements_text(OLD.tags::jsonb))
    AND is_listed = CASE WHEN OLD.archived_at_ms IS NULL THEN 1 ELSE 0 END
    AND created_at_ms = OLD.created_at_ms AND number = OLD.number;
  RETURN NULL;
END
$$;

CREATE TRIGGER run_tags_put AFTER INSERT ON {schema}.run
  FOR EACH ROW WHEN (NEW.tags IS NOT NULL) EXECUTE FUNCTION {schema}.put_tags();
-- In the order of their names: what was there goes before what is there now comes.
CREATE TRIGGER run_tags_1_leave AFTER UPDATE OF archived_at_ms ON {schema}.run
  FOR EACH ROW WHEN (NEW.tags IS NOT NULL) EXECUTE FUNCTION {schema}.remove_tags();
CREATE TRIGGER run_tags_2_archive AFTER UPDATE OF archived_at_ms ON {schema}.run
  FOR EACH ROW WHEN (NEW.tags IS NOT NULL) EXECUTE FUNCTION {schema}.put_tags();
CREATE TRIGGER run_tags_remove AFTER DELETE ON {schema}.run
  FOR EACH ROW WHEN (OLD.tags IS NOT NULL) EXECUTE FUNCTION {schema}.remove_tags();

CREATE TABLE {schema}.journal (
  place    bigint PRIMARY KEY,                        -- order in which events became durable
  number   bigint NOT NULL,                           -- grows in a partition, never used twice
  run      bigint NOT NULL,                           -- run.number
  run_id   text   COLLATE "C" NOT NULL,
  seq      bigint NOT NULL,
  at_ms    bigint NOT NULL,
  type     text   COLLATE "C" NOT NULL,
  key      text   COLLATE "C",                        -- of a signal or an effect's answer
  data     bytea  NOT NULL,
  checksum bigint
);

CREATE UNIQUE INDEX journal_order ON {schema}.journal (run, seq);
CREATE UNIQUE INDEX journal_once  ON {schema}.journal (run, key) WHERE key IS NOT NULL;
-- Of all events they are few; no other event is in the index, or pays for it.
CREATE INDEX journal_alerted ON {schema}.journal (place) WHERE type = 'Alerted';

CREATE TABLE {schema}.inbox (
  number         bigint PRIMARY KEY,                  -- order of arrival, in an inbox
  message_id     text   COLLATE "C" NOT NULL UNIQUE,  -- one announcement per run, for ever
  session_key    text   COLLATE "C" NOT NULL,
  run_id         text   COLLATE "C" NOT NULL,
  kind           text   COLLATE "C" NOT NULL,
  created_at_ms  bigint NOT NULL,
  text           text   COLLATE "C" NOT NULL,
  consumed_at_ms bigint,
  consumed_by    text   COLLATE "C",
  checksum       bigint,                              -- of the message
  place_checksum bigint,                              -- of whose it is
  read_checksum  bigint,                              -- of who read it
  CHECK ((consumed_at_ms IS NULL) = (consumed_by IS NULL))
);

CREATE INDEX inbox_unread  ON {schema}.inbox (session_key, number) WHERE consumed_at_ms IS NULL;
CREATE INDEX inbox_run     ON {schema}.inbox (run_id);
CREATE INDEX inbox_blocker ON {schema}.inbox (created_at_ms, number) WHERE kind = 'blocker';

CREATE TABLE {schema}.lease (
  run_id   text   COLLATE "C" PRIMARY KEY,            -- one live attempt per run
  attempt  bigint NOT NULL,
  owner    text   COLLATE "C" NOT NULL,
  epoch    bigint NOT NULL,
  until_ms bigint NOT NULL,
  cursor   bigint NOT NULL,
  checksum bigint
);

CREATE TABLE {schema}.idempotency (
  requester     text   COLLATE "C" NOT NULL,
  key           text   COLLATE "C" NOT NULL,
  run_id        text   COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  digest        text   COLLATE "C",
  checksum      bigint,
  PRIMARY KEY (requester, key)
);

CREATE INDEX idempotency_age ON {schema}.idempotency (created_at_ms);

CREATE TABLE {schema}.schedule (
  schedule_id text   COLLATE "C" PRIMARY KEY,
  state       bytea  NOT NULL,
  checksum    bigint NOT NULL
);

CREATE TABLE {schema}.set_aside (
  name   text COLLATE "C" PRIMARY KEY,                -- of a run or message, or <run id>/<seq>
  run_id text COLLATE "C" NOT NULL,
  reason text NOT NULL
);

-- The number of this transaction among all of the cluster, also of those that another server made:
-- a copy that is restored elsewhere only goes on growing.
CREATE FUNCTION {schema}.transaction_number() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT pg_current_xact_id()::text::bigint + place_base FROM {schema}.cluster
$$;

-- The place before which nothing comes any more: whatever is under way comes behind it.
CREATE FUNCTION {schema}.horizon() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint + place_base) << 16
  FROM {schema}.cluster
$$;

-- The first statement of every commit. It fails in the server, so that nobody waits for an answer
-- while the row is locked.
CREATE FUNCTION {schema}.fence(its_identity text, its_commit bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.node SET commits = its_commit
  WHERE identity = its_identity AND commits = its_commit - 1 AND NOT is_over;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'node % or its commit % is over', its_identity, its_commit
      USING ERRCODE = 'SUB01';
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN
    -- Of this transaction: what is acknowledged is on the server's disk.
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  RETURN {schema}.transaction_number();
END
$$;

-- The first statement of a start: whoever was first has the epoch.
CREATE FUNCTION {schema}.join_cluster(
  its_epoch bigint, its_home text, its_base bigint, its_checksum bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.cluster
  SET epoch = its_epoch, home = its_home, place_base = its_base, checksum = its_checksum
  WHERE id = 1 AND epoch = its_epoch - 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'epoch % is somebody else''s', its_epoch USING ERRCODE = 'SUB01';
  END IF;
END
$$;
