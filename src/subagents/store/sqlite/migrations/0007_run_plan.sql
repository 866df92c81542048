-- 0007 run plan: the steps of a plan are found by its id, which is that of its first run.
--
-- No run that is stored already is a step: plans had no ids. Runs without a plan are in neither
-- index.
ALTER TABLE run ADD COLUMN plan TEXT;

CREATE INDEX run_plan ON run (plan, created_at_ms) WHERE plan IS NOT NULL;
CREATE INDEX run_plans ON run (created_at_ms) WHERE plan = run_id;
