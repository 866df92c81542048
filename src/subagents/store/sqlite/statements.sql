-- Every statement of the SQLite store, by name. Parameters are positional.

-- name: read_epoch
SELECT epoch FROM node WHERE id = 1;

-- name: take_over
-- The new epoch fences every writer that opened the store before.
UPDATE node SET owner = ?, epoch = epoch + 1 WHERE id = 1;

-- name: probe
UPDATE node SET owner = owner WHERE id = 1;

-- name: insert_run
INSERT INTO run (run_id, seq, phase, label, agent_id, requester, requester_run, session_key,
                 is_over, keeps_session, created_at_ms, ended_at_ms, archived_at_ms, origin, state)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_run
UPDATE run SET seq = ?, phase = ?, is_over = ?, ended_at_ms = ?, archived_at_ms = ?, state = ?
WHERE run_id = ?;

-- name: insert_event
-- An event of a run that is not there fails: journal.run cannot be NULL.
INSERT INTO journal (number, run, run_id, seq, at_ms, type, key, data)
VALUES (?7, (SELECT number FROM run WHERE run_id = ?1), ?1, ?2, ?3, ?4, ?5, ?6);

-- name: update_origin
UPDATE run SET origin = ? WHERE run_id = ?;

-- name: select_events
-- Of some types, which are a JSON list.
SELECT number, data FROM journal
WHERE run = (SELECT number FROM run WHERE run_id = ?1)
  AND type IN (SELECT value FROM json_each(?2));

-- name: update_event
UPDATE journal SET data = ? WHERE number = ?;

-- name: newest_number
SELECT max(pruned_number, (SELECT coalesce(max(number), 0) FROM journal)) FROM node WHERE id = 1;

-- name: keep_number
-- Before a prune: what was the newest event's number is not given to another one.
UPDATE node SET pruned_number = max(pruned_number, (SELECT coalesce(max(number), 0) FROM journal))
WHERE id = 1;

-- name: insert_effect
INSERT INTO outbox (run_id, seq, i, effect) VALUES (?, ?, ?, ?);

-- name: delete_effect
DELETE FROM outbox WHERE run_id = ? AND seq = ? AND i = ?;

-- name: insert_message
INSERT INTO inbox (message_id, session_key, run_id, kind, created_at_ms, text,
                   consumed_at_ms, consumed_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: move_messages
UPDATE inbox SET session_key = ? WHERE session_key = ? AND consumed_at_ms IS NULL;

-- name: readdress_message
UPDATE inbox SET session_key = ? WHERE message_id = ? AND consumed_at_ms IS NULL;

-- name: consume_message
-- The first consumer stays on record.
UPDATE inbox SET consumed_at_ms = ?, consumed_by = ?
WHERE message_id = ? AND consumed_at_ms IS NULL;

-- name: reopen_message
UPDATE inbox SET consumed_at_ms = NULL, consumed_by = NULL, session_key = ? WHERE message_id = ?;

-- name: outdate_alerts
UPDATE inbox SET consumed_at_ms = ?, consumed_by = ?
WHERE run_id = ? AND kind = 'alert' AND consumed_at_ms IS NULL;

-- name: put_lease
INSERT INTO lease (run_id, attempt, owner, epoch, until_ms, cursor) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id) DO UPDATE SET attempt = excluded.attempt, owner = excluded.owner,
  epoch = excluded.epoch, until_ms = excluded.until_ms, cursor = excluded.cursor
WHERE lease.epoch <= excluded.epoch;

-- name: release_lease
DELETE FROM lease WHERE run_id = ?;

-- name: put_idempotency
INSERT INTO idempotency (requester, key, run_id, created_at_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (requester, key) DO UPDATE SET run_id = excluded.run_id,
  created_at_ms = excluded.created_at_ms;

-- name: load_open
-- Ended children of an open run belong to it until it has told their results.
SELECT origin, state FROM run
WHERE is_over = 0 OR requester_run IN (SELECT run_id FROM run WHERE is_over = 0)
ORDER BY created_at_ms, rowid;

-- name: load_outbox
SELECT run_id, seq, i, effect FROM outbox ORDER BY run_id, seq, i;

-- name: load_leases
SELECT run_id, attempt, owner, epoch, until_ms, cursor FROM lease;

-- name: load_open_keys
SELECT run.run_id, journal.key FROM run JOIN journal ON journal.run = run.number
WHERE run.is_over = 0 AND journal.key IS NOT NULL;

-- name: load_keys
SELECT key FROM journal
WHERE run = (SELECT number FROM run WHERE run_id = ?) AND key IS NOT NULL;

-- name: load_idempotency
SELECT requester, key, run_id, created_at_ms FROM idempotency WHERE created_at_ms > ?;

-- name: forget_idempotency
DELETE FROM idempotency WHERE created_at_ms <= ?;

-- name: select_run
SELECT origin, state FROM run WHERE run_id = ?;

-- name: select_runs
-- Each filter is off when its parameter is NULL; phases are a JSON list.
SELECT origin, state FROM run
WHERE (?1 IS NULL OR requester = ?1)
  AND (?2 IS NULL OR requester_run = ?2)
  AND (?3 IS NULL OR phase IN (SELECT value FROM json_each(?3)))
  AND (?4 IS NULL OR label = ?4)
  AND (?5 IS NULL OR agent_id = ?5)
  AND (?6 OR archived_at_ms IS NULL)
  AND (?7 IS NULL OR ended_at_ms >= ?7)
ORDER BY created_at_ms DESC, rowid DESC
LIMIT ?8 OFFSET ?9;

-- name: select_runs_labelled
-- The same, for a filter with a label: a condition that can be off cannot use an index.
SELECT origin, state FROM run
WHERE label = ?4
  AND (?1 IS NULL OR requester = ?1)
  AND (?2 IS NULL OR requester_run = ?2)
  AND (?3 IS NULL OR phase IN (SELECT value FROM json_each(?3)))
  AND (?5 IS NULL OR agent_id = ?5)
  AND (?6 OR archived_at_ms IS NULL)
  AND (?7 IS NULL OR ended_at_ms >= ?7)
ORDER BY created_at_ms DESC, rowid DESC
LIMIT ?8 OFFSET ?9;

-- name: select_runs_of_parent
SELECT origin, state FROM run
WHERE requester_run = ?2
  AND (?1 IS NULL OR requester = ?1)
  AND (?3 IS NULL OR phase IN (SELECT value FROM json_each(?3)))
  AND (?4 IS NULL OR label = ?4)
  AND (?5 IS NULL OR agent_id = ?5)
  AND (?6 OR archived_at_ms IS NULL)
  AND (?7 IS NULL OR ended_at_ms >= ?7)
ORDER BY created_at_ms DESC, rowid DESC
LIMIT ?8 OFFSET ?9;

-- name: select_runs_of_requester
SELECT origin, state FROM run
WHERE requester = ?1
  AND (?2 IS NULL OR requester_run = ?2)
  AND (?3 IS NULL OR phase IN (SELECT value FROM json_each(?3)))
  AND (?4 IS NULL OR label = ?4)
  AND (?5 IS NULL OR agent_id = ?5)
  AND (?6 OR archived_at_ms IS NULL)
  AND (?7 IS NULL OR ended_at_ms >= ?7)
ORDER BY created_at_ms DESC, rowid DESC
LIMIT ?8 OFFSET ?9;

-- name: count_runs
SELECT count(*) FROM run
WHERE (?1 IS NULL OR requester = ?1)
  AND (?2 IS NULL OR requester_run = ?2)
  AND (?3 IS NULL OR phase IN (SELECT value FROM json_each(?3)))
  AND (?4 IS NULL OR label = ?4)
  AND (?5 IS NULL OR agent_id = ?5)
  AND (?6 OR archived_at_ms IS NULL)
  AND (?7 IS NULL OR ended_at_ms >= ?7);

-- name: find_runs
SELECT run_id FROM run WHERE run_id >= ?1 AND run_id < ?2 ORDER BY run_id LIMIT 10;

-- name: select_journal
SELECT seq, at_ms, key, data FROM journal
WHERE run = (SELECT number FROM run WHERE run_id = ?) AND seq > ? ORDER BY seq LIMIT ?;

-- name: select_feed
SELECT number, run_id, seq, at_ms, key, data FROM journal WHERE number > ? ORDER BY number LIMIT ?;

-- name: select_inbox
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by
FROM inbox
WHERE (?1 IS NULL OR session_key = ?1) ORDER BY number DESC LIMIT ?2;

-- name: select_unread
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by
FROM inbox
WHERE session_key = ?1 AND consumed_at_ms IS NULL ORDER BY number LIMIT ?2;

-- name: select_unread_ids
-- For a count: the texts stay on the disk.
SELECT message_id FROM inbox
WHERE session_key = ?1 AND consumed_at_ms IS NULL ORDER BY number LIMIT ?2;

-- name: count_unread
SELECT count(*) FROM inbox WHERE consumed_at_ms IS NULL;

-- name: select_all_unread
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by
FROM inbox
WHERE consumed_at_ms IS NULL ORDER BY number LIMIT ?1;

-- name: select_message
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by
FROM inbox WHERE message_id = ?;

-- name: select_archivable
SELECT run_id FROM run
WHERE is_over = 1 AND archived_at_ms IS NULL AND keeps_session = 0 AND ended_at_ms < ?
ORDER BY ended_at_ms LIMIT ?;

-- name: select_prunable
-- A result nobody read is kept until it is read, and then until the retention is over; for news of
-- how it came about nobody waits.
SELECT run_id FROM run
WHERE archived_at_ms IS NOT NULL AND ended_at_ms < ?1
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
