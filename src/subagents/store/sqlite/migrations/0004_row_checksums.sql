-- 0004 row checksums: what a row says is believed only as it was written.
--
-- CRC-32 of the columns that a row's statement in statements.sql and rows.py name; NULL in rows that
-- were written before, which are believed as they are. No row is rewritten here: a run's state gets
-- its checksum with its next change. What is in set_aside is left out by every list and never
-- changed or deleted; it is found anew at each start.
ALTER TABLE node        ADD COLUMN checksum        INTEGER;
ALTER TABLE run         ADD COLUMN origin_checksum INTEGER;  -- of what never changes
ALTER TABLE run         ADD COLUMN state_checksum  INTEGER;
ALTER TABLE journal     ADD COLUMN checksum        INTEGER;
ALTER TABLE outbox      ADD COLUMN checksum        INTEGER;
ALTER TABLE inbox       ADD COLUMN checksum        INTEGER;  -- of the message
ALTER TABLE inbox       ADD COLUMN place_checksum  INTEGER;  -- of whose it is
ALTER TABLE inbox       ADD COLUMN read_checksum   INTEGER;  -- of who read it
ALTER TABLE lease       ADD COLUMN checksum        INTEGER;
ALTER TABLE idempotency ADD COLUMN checksum        INTEGER;

CREATE TABLE set_aside (
  name   TEXT NOT NULL PRIMARY KEY,                  -- of a run or message, or <run id>/<seq>
  run_id TEXT NOT NULL,
  reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
