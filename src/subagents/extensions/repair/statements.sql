-- What a repair asks of a SQLite database besides what the store does. Parameters are positional.

-- name: all_keys
SELECT requester, key FROM idempotency;

-- name: journal_ends
-- From the index alone: it lies on other pages than the events.
SELECT run, max(seq) FROM journal INDEXED BY journal_order GROUP BY run;

-- name: drop_event
DELETE FROM journal WHERE number = ?;

-- name: drop_message
DELETE FROM inbox WHERE message_id = ?;

-- name: refile_events
-- journal.run is what no checksum covers.
UPDATE OR IGNORE journal SET run = (SELECT number FROM run WHERE run.run_id = journal.run_id)
WHERE run_id IN (SELECT run_id FROM run);

-- name: drop_stray_events
DELETE FROM journal WHERE run_id NOT IN (SELECT run_id FROM run);

-- name: drop_stray_leases
DELETE FROM lease WHERE run_id NOT IN (SELECT run_id FROM run);

-- name: create_environments
-- In a backup alone: the variables of workers, each with the names of its files as JSON.
CREATE TABLE kept_environment (names TEXT NOT NULL, content BLOB NOT NULL);

-- name: put_environment
INSERT INTO kept_environment VALUES (?, ?);

-- name: has_environments
SELECT 1 FROM sqlite_master WHERE name = 'kept_environment';

-- name: all_environments
SELECT names, content FROM kept_environment;

-- name: drop_environments
DROP TABLE kept_environment;
