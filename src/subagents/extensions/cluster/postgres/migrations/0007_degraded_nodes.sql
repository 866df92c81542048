-- 0007 degraded_nodes: what the machine of a node lacks.
--
-- needs 0005
--
-- Nodes of the version before do not look: for them it is a node as any.
ALTER TABLE {schema}.node
  ADD COLUMN degraded text COLLATE "C";               -- in words; NULL = it is well
