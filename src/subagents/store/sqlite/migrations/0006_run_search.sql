-- 0006 run search: lists find runs by their directory, tags and outcome.
--
-- Each column repeats a part of origin or state, as those of 0001 do, and a row whose columns say
-- something else is damaged. project_of, tags_of and outcome_of are Python (migrated_state.py): they
-- give NULL for what they cannot read. Without an index: a list reads the newest runs first and
-- stops when its page is full, and each further index would cost every spawn a page.
ALTER TABLE run ADD COLUMN directory TEXT;              -- of its project, not of its worktree
ALTER TABLE run ADD COLUMN tags      TEXT;              -- a JSON list; NULL when there is none
ALTER TABLE run ADD COLUMN outcome   TEXT;              -- its status; NULL until it is known

UPDATE run SET directory = project_of(origin), tags = tags_of(origin), outcome = outcome_of(state);
