-- 0010 checkpoints: the row of an open run may be older than its journal, which continues it.
--
-- Rows of before are the newest state, so nothing is rewritten; code of before would take a
-- checkpoint for that, and must not open the file. node.version is of the daemon that wrote last:
-- what another one journaled is folded once, at the start, and then kept as it came out.
ALTER TABLE node ADD COLUMN version TEXT;
