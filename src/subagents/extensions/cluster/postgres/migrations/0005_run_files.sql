-- 0005 run_files: what a home has in files beside its runs, for the nodes of a cluster
-- (store/shared). Of a daemon alone these tables are empty.
--
-- Nothing here is decided by, and rows of no run do no harm: they go with the sweep.

-- Variables that callers brought, encrypted with a key that only homes of nodes have.
CREATE TABLE {schema}.run_environment (
  run_id  text        COLLATE "C" PRIMARY KEY,
  sealed  bytea       NOT NULL,
  made_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE {schema}.run_progress (
  run_id text   COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  data   bytea  NOT NULL,
  PRIMARY KEY (run_id, number)
);

-- A result that is too long for its run: pieces, each compressed. All of a result, or nothing of
-- it, is there: they are one transaction.
CREATE TABLE {schema}.run_result (
  run_id text   COLLATE "C" NOT NULL,
  name   text   COLLATE "C" NOT NULL,
  begins bigint NOT NULL,                             -- where the piece begins, in bytes of the text
  data   bytea  NOT NULL,
  PRIMARY KEY (run_id, name, begins)
);

-- A transcript: where its recording continues, and who may write it on.
CREATE TABLE {schema}.transcript (
  run_id     text   COLLATE "C" PRIMARY KEY,
  writer     text   COLLATE "C" NOT NULL,             -- whoever resumed it last
  appends    bigint NOT NULL,                         -- of all writers; tells whether one was made
  synced     bigint NOT NULL,                         -- so many of them outlive a crash of this server
  seq        bigint NOT NULL,                         -- of the newest line
  oldest     bigint NOT NULL,                         -- lines before it were dropped
  checkpoint bytea  NOT NULL,                         -- JSON; empty = nothing was appended
  object     text   COLLATE "C",                      -- where older parts are, in the object store
  parts      bytea,                                   -- JSON: what is where in that object
  mover_due  timestamptz NOT NULL DEFAULT '-infinity' -- whoever moves it has until then
) WITH (fillfactor = 50);                             -- written by every append

CREATE INDEX transcript_here ON {schema}.transcript (run_id) WHERE mover_due < 'infinity';

CREATE TABLE {schema}.transcript_part (
  run_id text   COLLATE "C" NOT NULL,
  first  bigint NOT NULL,                             -- number of its first line
  ts     bigint NOT NULL,                             -- of that line
  size   bigint NOT NULL,                             -- in bytes, as lines
  data   bytea  NOT NULL,                             -- compressed
  PRIMARY KEY (run_id, first)
);

-- Objects that are deleted when that time comes. One that is about to be made is here, too, and
-- leaves in the transaction that refers to it: so none stays that nobody knows of.
CREATE TABLE {schema}.gone_object (
  key      text        COLLATE "C" PRIMARY KEY,
  due      timestamptz NOT NULL,
  is_going boolean     NOT NULL DEFAULT false         -- it may be deleted already
);

-- Files that passed a contract, by what is in them. A large one is an object, if there is a store.
CREATE TABLE {schema}.artifact (
  sha256 text   COLLATE "C" PRIMARY KEY,              -- in hex
  size   bigint NOT NULL,
  object text   COLLATE "C"                           -- NULL = it is in artifact_piece
);

CREATE TABLE {schema}.artifact_piece (
  sha256 text   COLLATE "C" NOT NULL REFERENCES {schema}.artifact ON DELETE CASCADE,
  begins bigint NOT NULL,
  data   bytea  NOT NULL,                             -- compressed
  PRIMARY KEY (sha256, begins)
);

CREATE TABLE {schema}.run_artifact (
  run_id text COLLATE "C" NOT NULL,
  path   text COLLATE "C" NOT NULL,                   -- as the contract has it, or matches it
  sha256 text COLLATE "C" NOT NULL REFERENCES {schema}.artifact,
  PRIMARY KEY (run_id, path)
);

CREATE INDEX run_artifact_content ON {schema}.run_artifact (sha256);

ALTER TABLE {schema}.artifact_piece  ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE {schema}.run_result      ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE {schema}.transcript_part ALTER COLUMN data SET STORAGE EXTERNAL;

-- The first statement of what a node writes here. Nobody waits for it, so it locks nothing: what it
-- keeps away is a process that stood still while others took over.
CREATE FUNCTION {schema}.require_node(me text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM {schema}.node WHERE identity = me AND is_over) THEN
    RAISE EXCEPTION 'the node % is over', me USING ERRCODE = 'SUB01';
  END IF;
END
$$;

-- What is appended need not outlive a crash of this server before sync_transcript: lines and
-- checkpoint go together, and the worker's own stream is read again from there.
CREATE FUNCTION {schema}.claim_transcript(me text, its_run text, its_writer text)
RETURNS TABLE (appends bigint, checkpoint bytea, oldest bigint, parts bytea) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM {schema}.require_node(me), set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  INSERT INTO {schema}.transcript AS known
    (run_id, writer, appends, synced, seq, oldest, checkpoint)
  VALUES (its_run, its_writer, 0, 0, 0, 1, '')
  ON CONFLICT (run_id) DO UPDATE SET writer = its_writer
  RETURNING known.appends, known.checkpoint, known.oldest, known.parts;
END
$$;

CREATE FUNCTION {schema}.append_transcript(
  me text, its_run text, its_writer text, its_appends bigint, its_seq bigint, its_oldest bigint,
  its_checkpoint bytea, joined_from bigint, its_first bigint, its_ts bigint, its_size bigint,
  its_data bytea)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM {schema}.require_node(me), set_config('synchronous_commit', 'off', true);
  UPDATE {schema}.transcript
  SET appends = its_appends, seq = its_seq, oldest = its_oldest, checkpoint = its_checkpoint,
      mover_due = '-infinity'
  WHERE run_id = its_run AND writer = its_writer AND appends = its_appends - 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'append % of % is another writer''s, or made', its_appends, its_run
      USING ERRCODE = 'SUB02';
  END IF;
  DELETE FROM {schema}.transcript_part
  WHERE run_id = its_run AND (first < its_oldest OR first >= joined_from);
  IF its_data IS NOT NULL THEN
    INSERT INTO {schema}.transcript_part (run_id, first, ts, size, data)
    VALUES (its_run, its_first, its_ts, its_size, its_data);
  END IF;
END
$$;

-- A commit that waits for the server's disk has all before it there, too.
CREATE FUNCTION {schema}.sync_transcript(its_run text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  UPDATE {schema}.transcript SET synced = appends WHERE run_id = its_run AND synced < appends;
END
$$;

CREATE FUNCTION {schema}.forget_transcript(its_run text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO {schema}.gone_object (key, due)
  SELECT object, clock_timestamp() FROM {schema}.transcript
  WHERE run_id = its_run AND object IS NOT NULL
  ON CONFLICT (key) DO UPDATE SET due = excluded.due;
  DELETE FROM {schema}.transcript WHERE run_id = its_run;
  DELETE FROM {schema}.transcript_part WHERE run_id = its_run;
END
$$;

-- Whether the object is there to be referred to from now on.
CREATE FUNCTION {schema}.take_object(its_key text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM {schema}.gone_object WHERE key = its_key AND NOT is_going;
  RETURN FOUND;
END
$$;

-- What was read has become an object. Of one that was appended to meanwhile the rows stay.
CREATE FUNCTION {schema}.move_transcript(
  its_run text, its_appends bigint, its_key text, its_parts bytea)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  before text;
BEGIN
  SELECT object INTO before FROM {schema}.transcript
  WHERE run_id = its_run AND appends = its_appends AND object IS DISTINCT FROM its_key FOR UPDATE;
  IF NOT FOUND OR NOT {schema}.take_object(its_key) THEN
    RETURN;
  END IF;
  UPDATE {schema}.transcript SET object = its_key, parts = its_parts, mover_due = 'infinity'
  WHERE run_id = its_run;
  DELETE FROM {schema}.transcript_part WHERE run_id = its_run;
  IF before IS NOT NULL THEN
    -- Whoever reads it now has begun before.
    INSERT INTO {schema}.gone_object (key, due)
    VALUES (before, clock_timestamp() + interval '10 minutes');
  END IF;
END
$$;

-- What no run has any more goes. Whoever forgets or keeps the same content at the same moment waits
-- for the row of it, and looks again.
CREATE FUNCTION {schema}.forget_artifacts(its_run text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  its_contents text[] := ARRAY(SELECT sha256 FROM {schema}.run_artifact WHERE run_id = its_run);
BEGIN
  PERFORM FROM {schema}.artifact WHERE sha256 = ANY (its_contents) ORDER BY sha256 FOR UPDATE;
  DELETE FROM {schema}.run_artifact WHERE run_id = its_run;
  WITH gone AS (
    DELETE FROM {schema}.artifact WHERE sha256 = ANY (its_contents) AND NOT EXISTS (
      SELECT FROM {schema}.run_artifact WHERE run_artifact.sha256 = artifact.sha256)
    RETURNING object)
  INSERT INTO {schema}.gone_object (key, due)
  SELECT object, clock_timestamp() + interval '10 minutes' FROM gone WHERE object IS NOT NULL
  ON CONFLICT (key) DO NOTHING;
END
$$;
