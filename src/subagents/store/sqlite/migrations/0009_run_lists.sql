-- 0009 run lists: a list visits the runs it shows and no others, however many there are.
--
-- Whether a run is archived stands before its time in an index: a list of those that are not goes
-- past none that is. What is rare is in a partial index, which costs the other runs nothing. The
-- tags of run_tag only repeat those of run; triggers keep them so, and whoever reads them asks the
-- run again.
DROP INDEX run_requester;
DROP INDEX run_label;
DROP INDEX run_created;

CREATE INDEX run_requester ON run (requester, (archived_at_ms IS NULL), created_at_ms);
CREATE INDEX run_label     ON run (label, (archived_at_ms IS NULL), created_at_ms);
CREATE INDEX run_created   ON run ((archived_at_ms IS NULL), created_at_ms);
CREATE INDEX run_agent     ON run (agent_id, (archived_at_ms IS NULL), created_at_ms);
CREATE INDEX run_directory ON run (directory, (archived_at_ms IS NULL), created_at_ms);
CREATE INDEX run_outcome   ON run (outcome, (archived_at_ms IS NULL), created_at_ms)
  WHERE outcome <> 'ok';
CREATE INDEX run_given_up  ON run ((archived_at_ms IS NULL), created_at_ms)
  WHERE phase = 'completed_giveup';
CREATE INDEX run_archived  ON run (ended_at_ms) WHERE archived_at_ms IS NOT NULL;
CREATE INDEX inbox_blocker ON inbox (number) WHERE kind = 'blocker';

CREATE TABLE run_tag (
  tag           TEXT    NOT NULL,
  is_listed     INTEGER NOT NULL,                    -- the run is not archived
  created_at_ms INTEGER NOT NULL,
  number        INTEGER NOT NULL,                    -- run.number
  PRIMARY KEY (tag, is_listed, created_at_ms, number)
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO run_tag (tag, is_listed, created_at_ms, number)
SELECT each.value, archived_at_ms IS NULL, created_at_ms, number
FROM run, json_each(CASE WHEN json_valid(tags) THEN tags ELSE '[]' END) AS each
WHERE tags IS NOT NULL AND each.type = 'text';

CREATE TRIGGER run_tags_put AFTER INSERT ON run WHEN NEW.tags IS NOT NULL
BEGIN
  INSERT OR IGNORE INTO run_tag (tag, is_listed, created_at_ms, number)
  SELECT each.value, NEW.archived_at_ms IS NULL, NEW.created_at_ms, NEW.number
  FROM json_each(CASE WHEN json_valid(NEW.tags) THEN NEW.tags ELSE '[]' END) AS each
  WHERE each.type = 'text';
END;

CREATE TRIGGER run_tags_archive AFTER UPDATE OF archived_at_ms ON run WHEN NEW.tags IS NOT NULL
BEGIN
  UPDATE OR IGNORE run_tag SET is_listed = NEW.archived_at_ms IS NULL
  WHERE number = NEW.number AND created_at_ms = NEW.created_at_ms
    AND is_listed = (OLD.archived_at_ms IS NULL)
    AND tag IN (SELECT value FROM json_each(CASE WHEN json_valid(NEW.tags) THEN NEW.tags ELSE '[]' END));
END;

CREATE TRIGGER run_tags_remove AFTER DELETE ON run WHEN OLD.tags IS NOT NULL
BEGIN
  DELETE FROM run_tag
  WHERE number = OLD.number AND created_at_ms = OLD.created_at_ms
    AND is_listed = (OLD.archived_at_ms IS NULL)
    AND tag IN (SELECT value FROM json_each(CASE WHEN json_valid(OLD.tags) THEN OLD.tags ELSE '[]' END));
END;
