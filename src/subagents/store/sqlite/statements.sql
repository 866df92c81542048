-- Every statement of the SQLite store, by name. Parameters are positional.
--
-- A checksum is never made of a value that was only found in the row: that would make a damaged one
-- a good one.

-- name: read_epoch
SELECT epoch FROM node WHERE id = 1;

-- name: select_tables
SELECT name FROM sqlite_schema WHERE type = 'table';

-- name: select_triggers
SELECT name, sql FROM sqlite_schema WHERE type = 'trigger';

-- name: take_over
-- The new epoch fences every writer that opened the store before.
UPDATE node SET owner = ?, epoch = ?, checksum = ?, version = ? WHERE id = 1;

-- name: read_version
SELECT version FROM node WHERE id = 1;

-- name: read_node
SELECT epoch, pruned_number, checksum FROM node WHERE id = 1;

-- name: probe
UPDATE node SET owner = owner WHERE id = 1;

-- name: insert_run
INSERT INTO run (number, run_id, seq, phase, label, agent_id, requester, requester_run, session_key,
                 is_over, keeps_session, created_at_ms, ended_at_ms, archived_at_ms, origin, state,
                 origin_checksum, state_checksum, directory, tags, outcome, plan, pending)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_run
-- A column that is set is written anew in every index that has it, also when nothing changes.
UPDATE run SET seq = ?, phase = ?, state = ?, state_checksum = ?, pending = ? WHERE run_id = ?;

-- name: end_run
UPDATE run SET seq = ?, phase = ?, state = ?, state_checksum = ?, pending = ?, is_over = ?,
               ended_at_ms = ?, outcome = ?
WHERE run_id = ?;

-- name: archive_run
UPDATE run SET seq = ?, phase = ?, state = ?, state_checksum = ?, pending = ?, is_over = ?,
               ended_at_ms = ?, outcome = ?, archived_at_ms = ?
WHERE run_id = ?;

-- name: insert_event
-- An event of a run that is not there fails: journal.run cannot be NULL.
INSERT INTO journal (number, run, run_id, seq, at_ms, type, key, data, checksum)
VALUES (?1, (SELECT number FROM run WHERE run_id = ?2), ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- name: update_origin
UPDATE run SET origin = ?, origin_checksum = ? WHERE run_id = ?;

-- name: select_events
-- Of some types, which are a JSON list.
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM journal
WHERE run = (SELECT number FROM run WHERE run_id = ?1)
  AND type IN (SELECT value FROM json_each(?2));

-- name: update_event
UPDATE journal SET data = ?, checksum = ? WHERE number = ?;

-- name: newest_number
SELECT max(pruned_number, (SELECT coalesce(max(number), 0) FROM journal)) FROM node WHERE id = 1;

-- name: newest_run
SELECT coalesce(max(number), 0) FROM run;

-- name: newest_message
SELECT coalesce(max(number), 0) FROM inbox;

-- name: run_number
SELECT number FROM run WHERE run_id = ?;

-- name: keep_number
-- Before a prune: what was the newest event's number is not given to another one.
UPDATE node SET pruned_number = ?, checksum = ? WHERE id = 1;

-- name: insert_message
INSERT INTO inbox (number, message_id, session_key, run_id, kind, created_at_ms, text,
                   consumed_at_ms, consumed_by, checksum, place_checksum, read_checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_messages
UPDATE inbox SET session_key = ?, place_checksum = ?
WHERE session_key = ? AND consumed_at_ms IS NULL;

-- name: readdress_message
UPDATE inbox SET session_key = ?, place_checksum = ?
WHERE message_id = ? AND consumed_at_ms IS NULL;

-- name: consume_message
-- The first consumer stays on record.
UPDATE inbox SET consumed_at_ms = ?, consumed_by = ?, read_checksum = ?
WHERE message_id = ? AND consumed_at_ms IS NULL;

-- name: reopen_message
UPDATE inbox SET consumed_at_ms = NULL, consumed_by = NULL, read_checksum = NULL,
                 session_key = ?, place_checksum = ?
WHERE message_id = ?;

-- name: outdate_alerts
UPDATE inbox SET consumed_at_ms = ?, consumed_by = ?, read_checksum = ?
WHERE run_id = ? AND kind = 'alert' AND consumed_at_ms IS NULL;

-- name: put_lease
INSERT INTO lease (run_id, attempt, owner, epoch, until_ms, cursor, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id) DO UPDATE SET attempt = excluded.attempt, owner = excluded.owner,
  epoch = excluded.epoch, until_ms = excluded.until_ms, cursor = excluded.cursor,
  checksum = excluded.checksum
WHERE lease.epoch <= excluded.epoch;

-- name: release_lease
DELETE FROM lease WHERE run_id = ?;

-- name: put_idempotency
INSERT INTO idempotency (requester, key, run_id, created_at_ms, digest, checksum)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (requester, key) DO UPDATE SET run_id = excluded.run_id,
  created_at_ms = excluded.created_at_ms, digest = excluded.digest, checksum = excluded.checksum;

-- name: put_schedule
INSERT INTO schedule (schedule_id, state, checksum) VALUES (?, ?, ?)
ON CONFLICT (schedule_id) DO UPDATE SET state = excluded.state, checksum = excluded.checksum;

-- name: remove_schedule
DELETE FROM schedule WHERE schedule_id = ?;

-- name: load_schedules
SELECT schedule_id, state, checksum FROM schedule
WHERE schedule_id NOT IN (SELECT name FROM set_aside);

-- name: load_open
-- Ended children of an open run belong to it until it has told their results.
SELECT * FROM run
WHERE number IN (
    SELECT number FROM run WHERE is_over = 0
    UNION ALL
    SELECT child.number FROM run CROSS JOIN run AS child ON child.requester_run = run.run_id
    WHERE run.is_over = 0)
  AND run_id NOT IN (SELECT name FROM set_aside)
ORDER BY created_at_ms, number;

-- name: select_behind
-- Open runs whose row is older than their journal.
SELECT run_id FROM run
WHERE is_over = 0
  AND EXISTS (SELECT 1 FROM journal WHERE journal.run = run.number AND journal.seq > run.seq);

-- name: load_pending
-- Runs that are over and have something to do.
SELECT * FROM run INDEXED BY run_pending
WHERE is_over = 1 AND pending IS NOT NULL AND run_id NOT IN (SELECT name FROM set_aside);

-- name: load_leases
SELECT run_id, attempt, owner, epoch, until_ms, cursor, checksum FROM lease
WHERE run_id NOT IN (SELECT name FROM set_aside);

-- name: load_open_keys
-- Of every run that load_open loads.
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM journal
WHERE run IN (
    SELECT number FROM run WHERE is_over = 0
    UNION ALL
    SELECT child.number FROM run CROSS JOIN run AS child ON child.requester_run = run.run_id
    WHERE run.is_over = 0)
  AND key IS NOT NULL AND run_id NOT IN (SELECT name FROM set_aside);

-- name: load_keys
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM journal
WHERE run = (SELECT number FROM run WHERE run_id = ?) AND key IS NOT NULL;

-- name: load_idempotency
SELECT requester, key, run_id, created_at_ms, digest, checksum FROM idempotency
WHERE created_at_ms > ?;

-- name: forget_idempotency
DELETE FROM idempotency WHERE created_at_ms <= ?;

-- name: select_run
SELECT * FROM run WHERE run_id = ? AND run_id NOT IN (SELECT name FROM set_aside);

-- name: any_run
-- What stands in select_runs and count_runs for the runs that are asked for, and their place.
SELECT number, created_at_ms AS at_ms FROM run WHERE TRUE;

-- name: runs_in_places
-- run_query.py puts the runs of one directory in the place of the innermost SELECT.
SELECT run.number, run.created_at_ms AS at_ms
FROM (
  WITH RECURSIVE found(name) AS (
    SELECT min(directory) FROM run INDEXED BY run_directory
    WHERE directory >= rtrim(:directory, '/') || '/' AND directory < rtrim(:directory, '/') || '0'
    UNION ALL
    SELECT (SELECT min(directory) FROM run INDEXED BY run_directory
            WHERE directory > found.name AND directory < rtrim(:directory, '/') || '0')
    FROM found WHERE name IS NOT NULL)
  SELECT rtrim(:directory, '/') AS name UNION ALL SELECT name FROM found WHERE name IS NOT NULL
) AS place CROSS JOIN run ON run.number IN (
  SELECT number FROM run WHERE TRUE
  ORDER BY created_at_ms DESC, number DESC LIMIT :far);

-- name: select_runs
-- run_query.py puts what is asked for in the place of the inner SELECT.
SELECT run.*
FROM (
  SELECT number, created_at_ms AS at_ms FROM run WHERE TRUE
  ORDER BY at_ms DESC, number DESC LIMIT :limit OFFSET :offset) AS page
CROSS JOIN run ON run.number = page.number
ORDER BY page.at_ms DESC, page.number DESC;

-- name: count_runs
-- Up to a number: a count of all visits all.
SELECT count(*) FROM (SELECT number, created_at_ms AS at_ms FROM run WHERE TRUE LIMIT :far);

-- name: find_runs
SELECT run_id FROM run WHERE run_id >= ?1 AND run_id < ?2 ORDER BY run_id LIMIT 10;

-- name: select_journal
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM journal
WHERE run = (SELECT number FROM run WHERE run_id = ?) AND seq > ? ORDER BY seq LIMIT ?;

-- name: select_feed
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM journal
WHERE number > ? ORDER BY number LIMIT ?;

-- name: select_alerted
SELECT number, run_id, seq, at_ms, type, key, data, checksum
FROM journal INDEXED BY journal_alerted
WHERE type = 'Alerted' AND number < ?1 ORDER BY number DESC LIMIT ?2;

-- name: select_alerted_of_run
-- Visits the events of the run, whose numbers grow with seq.
SELECT number, run_id, seq, at_ms, type, key, data, checksum
FROM journal INDEXED BY journal_order
WHERE run = (SELECT number FROM run WHERE run_id = ?3) AND type = 'Alerted' AND number < ?1
ORDER BY seq DESC LIMIT ?2;

-- name: select_touched
SELECT number, run_id FROM journal WHERE number > ?1 ORDER BY number LIMIT ?2;

-- name: select_these
-- The ids are a JSON list.
SELECT * FROM run
WHERE run_id IN (SELECT value FROM json_each(?1))
  AND (ended_at_ms IS NULL OR ended_at_ms >= ?2)
  AND run_id NOT IN (SELECT name FROM set_aside);

-- name: count_below
-- By the runs of a JSON list, level after level; those that are plans have their steps below them,
-- each once, also one that another step spawned.
WITH RECURSIVE below(root, id) AS (
  SELECT value, value FROM json_each(:roots)
  UNION ALL
  SELECT plan, run_id FROM run INDEXED BY run_plan
  WHERE plan IN (SELECT value FROM json_each(:plans)) AND run_id <> plan
  UNION ALL
  SELECT below.root, child.run_id
  FROM below CROSS JOIN run AS child INDEXED BY run_parent ON child.requester_run = below.id
  WHERE child.plan IS NOT below.root OR below.root NOT IN (SELECT value FROM json_each(:plans))
  LIMIT :far)
SELECT below.root, run.is_over, CASE WHEN run.is_over THEN run.outcome END AS ended, count(*),
       CASE WHEN run.is_over = 0 THEN json_group_array(run.run_id) END
FROM below CROSS JOIN run ON run.run_id = below.id
WHERE below.id <> below.root AND below.id NOT IN (SELECT name FROM set_aside)
GROUP BY below.root, run.is_over, ended;

-- name: select_inbox
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM inbox
WHERE (?1 IS NULL OR session_key = ?1)
  AND message_id NOT IN (SELECT name FROM set_aside)
  AND run_id NOT IN (SELECT name FROM set_aside)
ORDER BY number DESC LIMIT ?2;

-- name: select_unread
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM inbox
WHERE session_key = ?1 AND consumed_at_ms IS NULL
  AND message_id NOT IN (SELECT name FROM set_aside)
  AND run_id NOT IN (SELECT name FROM set_aside)
ORDER BY number LIMIT ?2;

-- name: select_unread_ids
-- For a count: the texts stay on the disk.
SELECT message_id FROM inbox
WHERE session_key = ?1 AND consumed_at_ms IS NULL
  AND message_id NOT IN (SELECT name FROM set_aside)
  AND run_id NOT IN (SELECT name FROM set_aside)
ORDER BY number LIMIT ?2;

-- name: count_unread
SELECT count(*) FROM inbox INDEXED BY inbox_unread
WHERE consumed_at_ms IS NULL
  AND message_id NOT IN (SELECT name FROM set_aside)
  AND run_id NOT IN (SELECT name FROM set_aside);

-- name: select_all_unread
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM inbox
WHERE number IN (
  SELECT number FROM inbox INDEXED BY inbox_unread
  WHERE consumed_at_ms IS NULL
    AND message_id NOT IN (SELECT name FROM set_aside)
    AND run_id NOT IN (SELECT name FROM set_aside)
  ORDER BY number LIMIT ?1)
ORDER BY number;

-- name: select_blockers
-- Newest first.
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM inbox INDEXED BY inbox_blocker
WHERE kind = 'blocker' AND (?1 IS NULL OR session_key = ?1)
  AND message_id NOT IN (SELECT name FROM set_aside)
  AND run_id NOT IN (SELECT name FROM set_aside)
ORDER BY number DESC LIMIT ?2;

-- name: select_news
-- Of the runs of a JSON list.
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM inbox INDEXED BY inbox_run
WHERE run_id IN (SELECT value FROM json_each(?1)) AND kind IN ('alert', 'blocker')
  AND message_id NOT IN (SELECT name FROM set_aside)
  AND run_id NOT IN (SELECT name FROM set_aside)
ORDER BY number;

-- name: select_message
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM inbox
WHERE message_id = ?
  AND message_id NOT IN (SELECT name FROM set_aside)
  AND run_id NOT IN (SELECT name FROM set_aside);

-- name: select_archivable
-- What nobody read stays in sight, and what was read late stays as long after that.
SELECT run_id FROM run INDEXED BY run_archive
WHERE is_over = 1 AND archived_at_ms IS NULL AND keeps_session = 0 AND ended_at_ms < ?1
  AND run_id NOT IN (SELECT name FROM set_aside)
  AND NOT EXISTS (SELECT 1 FROM inbox
                  WHERE inbox.run_id = run.run_id
                    AND inbox.kind <> 'alert'
                    AND (consumed_at_ms IS NULL OR consumed_by IS NULL OR consumed_at_ms >= ?1))
ORDER BY ended_at_ms LIMIT ?2;

-- name: select_prunable
-- A result nobody read is kept until it is read, and then until the retention is over; for news of
-- how it came about nobody waits.
SELECT run_id FROM run INDEXED BY run_archived
WHERE archived_at_ms IS NOT NULL AND ended_at_ms < ?1
  AND run_id NOT IN (SELECT run_id FROM set_aside)
  AND NOT EXISTS (SELECT 1 FROM inbox
                  WHERE inbox.run_id = run.run_id
                    AND inbox.kind <> 'alert'
                    AND (consumed_at_ms IS NULL OR consumed_at_ms >= ?1))
LIMIT ?2;

-- name: delete_run
DELETE FROM run WHERE run_id = ?;

-- name: delete_journal
DELETE FROM journal WHERE run = (SELECT number FROM run WHERE run_id = ?);

-- name: delete_messages
DELETE FROM inbox WHERE run_id = ?;

-- name: put_aside
-- As bytes: a damaged name need not be a text.
INSERT OR IGNORE INTO set_aside (name, run_id, reason)
VALUES (CAST(?1 AS TEXT), CAST(?2 AS TEXT), ?3);

-- name: take_back
DELETE FROM set_aside;

-- name: select_set_aside
SELECT name, run_id, reason FROM set_aside ORDER BY run_id, name;

-- name: all_runs
SELECT * FROM run ORDER BY number;

-- name: all_leases
SELECT run_id, attempt, owner, epoch, until_ms, cursor, checksum FROM lease;

-- name: count_open_runs
SELECT count(*) FROM run WHERE phase NOT IN (SELECT value FROM json_each(?));

-- name: all_schedules
SELECT schedule_id, state, checksum FROM schedule;

-- name: all_messages
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM inbox;

-- name: all_events
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM journal;

-- name: select_reason
SELECT reason FROM set_aside WHERE name = ?;

-- name: select_spawned_since
SELECT * FROM run
WHERE created_at_ms > ? AND run_id NOT IN (SELECT name FROM set_aside);

-- name: select_strays
-- Runs with an event that is filed under the number of another one.
SELECT DISTINCT journal.run_id FROM journal LEFT JOIN run ON run.number = journal.run
WHERE run.run_id IS NOT journal.run_id;

-- name: select_twice
-- What stands twice and may stand once, found in the rows themselves.
SELECT 'journal' FROM journal NOT INDEXED GROUP BY run, seq HAVING count(*) > 1
UNION ALL
SELECT 'journal' FROM journal NOT INDEXED WHERE key IS NOT NULL GROUP BY run, key HAVING count(*) > 1
UNION ALL
SELECT 'run' FROM run NOT INDEXED GROUP BY run_id HAVING count(*) > 1
UNION ALL
SELECT 'inbox' FROM inbox NOT INDEXED GROUP BY message_id HAVING count(*) > 1
LIMIT 1;
