-- 0001 initial: runs, their journal, outbox, inbox, leases and idempotency keys.
--
-- run.state is the whole run without run.origin (what was asked and resolved), which is written
-- once. The other columns repeat parts of the state because a query needs them; they are written
-- in the same statement, so they cannot drift.
CREATE TABLE node (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  owner       TEXT    NOT NULL,
  epoch       INTEGER NOT NULL CHECK (epoch >= 0)   -- grows by one on every open; fences writers
) STRICT;

INSERT INTO node (id, owner, epoch) VALUES (1, '', 0);

CREATE TABLE run (
  number         INTEGER PRIMARY KEY,                -- order of spawning
  run_id         TEXT    NOT NULL UNIQUE,
  seq            INTEGER NOT NULL CHECK (seq >= 1),  -- events journaled so far
  phase          TEXT    NOT NULL,
  label          TEXT    NOT NULL,
  agent_id       TEXT    NOT NULL,
  requester      TEXT    NOT NULL,
  requester_run  TEXT,
  session_key    TEXT    NOT NULL,                   -- first child session: its inbox address
  is_over        INTEGER NOT NULL CHECK (is_over IN (0, 1)),
  keeps_session  INTEGER NOT NULL CHECK (keeps_session IN (0, 1)),
  created_at_ms  INTEGER NOT NULL,
  ended_at_ms    INTEGER,
  archived_at_ms INTEGER,
  origin         BLOB    NOT NULL,
  state          BLOB    NOT NULL
) STRICT;

CREATE INDEX run_open      ON run (created_at_ms) WHERE is_over = 0;
CREATE INDEX run_requester ON run (requester, created_at_ms);
CREATE INDEX run_parent    ON run (requester_run) WHERE requester_run IS NOT NULL;
CREATE INDEX run_label     ON run (label, created_at_ms);
CREATE INDEX run_created   ON run (created_at_ms);
CREATE INDEX run_archive   ON run (ended_at_ms) WHERE is_over = 1 AND archived_at_ms IS NULL;

-- Indexed by run.number: run ids are random, so an index on them has its newest entries all over
-- the file, and each commit of a large database would rewrite as many pages as it has events.
CREATE TABLE journal (
  run    INTEGER NOT NULL,                           -- run.number
  run_id TEXT    NOT NULL,                           -- for people who look in here
  seq    INTEGER NOT NULL,
  at_ms  INTEGER NOT NULL,
  type   TEXT    NOT NULL,
  key    TEXT,                                       -- of a signal or an effect's answer
  data   BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX journal_order ON journal (run, seq);
CREATE UNIQUE INDEX journal_once  ON journal (run, key) WHERE key IS NOT NULL;

CREATE TABLE outbox (
  run_id TEXT    NOT NULL,
  seq    INTEGER NOT NULL,
  i      INTEGER NOT NULL,
  effect BLOB    NOT NULL,
  PRIMARY KEY (run_id, seq, i)
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
  number         INTEGER PRIMARY KEY,                -- order of arrival
  message_id     TEXT    NOT NULL UNIQUE,            -- one announcement per run, for ever
  session_key    TEXT    NOT NULL,
  run_id         TEXT    NOT NULL,
  kind           TEXT    NOT NULL,
  created_at_ms  INTEGER NOT NULL,
  text           TEXT    NOT NULL,
  consumed_at_ms INTEGER,
  consumed_by    TEXT,
  CHECK ((consumed_at_ms IS NULL) = (consumed_by IS NULL))
) STRICT;

CREATE INDEX inbox_unread ON inbox (session_key, number) WHERE consumed_at_ms IS NULL;
CREATE INDEX inbox_run    ON inbox (run_id);

CREATE TABLE lease (
  run_id   TEXT    NOT NULL PRIMARY KEY,             -- one live attempt per run
  attempt  INTEGER NOT NULL,
  owner    TEXT    NOT NULL,
  epoch    INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  cursor   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  requester     TEXT    NOT NULL,
  key           TEXT    NOT NULL,
  run_id        TEXT    NOT NULL,
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (requester, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_age ON idempotency (created_at_ms);
