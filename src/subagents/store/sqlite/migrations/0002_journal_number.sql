-- 0002 journal number: one order over the events of all runs, for whoever follows them.
--
-- The number is the rowid, so it costs nothing to write; named explicitly it also survives VACUUM.
-- Events keep the order in which they were committed. node.pruned_number keeps numbers from being
-- given twice after the newest events were pruned. Not safe while old code runs, which the lock and
-- the epoch prevent; a copy of the file as it was is kept beside it.
CREATE TABLE journal_numbered (
  number INTEGER PRIMARY KEY,                        -- grows over all runs, never used twice
  run    INTEGER NOT NULL,                           -- run.number
  run_id TEXT    NOT NULL,                           -- for people who look in here
  seq    INTEGER NOT NULL,
  at_ms  INTEGER NOT NULL,
  type   TEXT    NOT NULL,
  key    TEXT,                                       -- of a signal or an effect's answer
  data   BLOB    NOT NULL
) STRICT;

INSERT INTO journal_numbered (number, run, run_id, seq, at_ms, type, key, data)
SELECT rowid, run, run_id, seq, at_ms, type, key, data FROM journal ORDER BY rowid;

DROP TABLE journal;
ALTER TABLE journal_numbered RENAME TO journal;

CREATE UNIQUE INDEX journal_order ON journal (run, seq);
CREATE UNIQUE INDEX journal_once  ON journal (run, key) WHERE key IS NOT NULL;

ALTER TABLE node ADD COLUMN pruned_number INTEGER NOT NULL DEFAULT 0;  -- numbers up to here are used
