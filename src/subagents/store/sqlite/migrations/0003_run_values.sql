-- 0003 run values: the fields of a run's state that belong together become one value each.
--
-- in_values is Python (migrated_state.in_values): it is given the state of one run at a time, so
-- memory does not grow with the number of runs. A state it does not know ends the migration, and
-- with it this transaction. Nothing else of a run changes, nor do its origin and its journal.
UPDATE run SET state = in_values(run_id, state);
