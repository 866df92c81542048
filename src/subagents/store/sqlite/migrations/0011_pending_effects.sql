-- 0011 pending effects: what a run still has to do is in its row, and its journal continues it.
--
-- The effects that were not known to be done as of run.seq, as JSON; NULL when there are none. What
-- came after, and which of them were done, is in the events behind it. pending_of is Python
-- (migrated_state.py); what it cannot read makes a row that is set aside. The state's checksum
-- covers the column where it is set; it comes with the next change of the few rows that get it here.
ALTER TABLE run ADD COLUMN pending BLOB;

UPDATE run
SET pending = (SELECT pending_of(run_id, seq, i, effect, checksum) FROM outbox
               WHERE outbox.run_id = run.run_id),
    state_checksum = NULL
WHERE run_id IN (SELECT run_id FROM outbox);

DROP TABLE outbox;

CREATE INDEX run_pending ON run (number) WHERE is_over = 1 AND pending IS NOT NULL;
