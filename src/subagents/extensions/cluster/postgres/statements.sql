-- Every statement of the PostgreSQL store, by name; names, parameters and columns are those of the
-- SQLite store. {schema} is the schema that the store was told to use.
--
-- A statement with arrays is executed once for all its rows: each parameter is a column. A parameter
-- of what is written has its type after it; that is how it is sent (link.py).

-- name: read_schema
SELECT to_regclass('{schema}.cluster') IS NOT NULL, current_setting('server_encoding'),
       current_setting('server_version_num')::integer, current_setting('fsync') = 'on';

-- name: make_schema
-- IF NOT EXISTS asks for the right to make one also where it is there.
DO $$ BEGIN
  IF to_regnamespace('{schema}') IS NULL THEN
    CREATE SCHEMA {schema};
  END IF;
END $$;

-- name: make_migrations
CREATE TABLE IF NOT EXISTS {schema}.migration (
  number     integer     PRIMARY KEY,
  name       text        NOT NULL,
  needs      integer     NOT NULL,  -- the least newest migration that a program at work here knows
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- name: lock_migrations
-- Until the end of the transaction, so that it needs no session.
SELECT pg_advisory_xact_lock(hashtextextended('subagents.migration.{schema}', 0));

-- name: lock
-- The same of whatever nodes do one after the other.
SELECT pg_advisory_xact_lock(hashtextextended('subagents.{schema}.' || $1::text, 0));

-- name: select_migrations
SELECT coalesce(max(number), 0), coalesce(max(needs), 0) FROM {schema}.migration;

-- name: put_migration
INSERT INTO {schema}.migration (number, name, needs) VALUES ($1, $2, $3);

-- name: set_waits
-- Of this transaction alone: how long it may wait for a lock, and sit idle while it has one.
SELECT set_config('lock_timeout', $1::text, true),
       set_config('idle_in_transaction_session_timeout', $2::text, true);

-- name: read_cluster
-- And the transaction of the newest event, and the next one.
SELECT home, epoch, place_base, checksum, is_signed, secret_check,
       (SELECT coalesce(max(place), 0) >> 16 FROM {schema}.journal),
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint
FROM {schema}.cluster WHERE id = 1;

-- name: read_nodes
-- For how long each was not heard of, beyond its right: NULL = that does not end.
SELECT identity, home, epoch, name, version, is_over, checksum,
       CASE WHEN lease_ms IS NULL THEN NULL
            ELSE extract(epoch FROM clock_timestamp() - until)::float8 - lease_ms / 1000.0 END
FROM {schema}.node;

-- name: join_cluster
SELECT {schema}.join_cluster($1::bigint, $2::text, $3::bigint, $4::bigint);

-- name: end_home
-- Those that the lock of their home says are over; NULL = whoever there is.
UPDATE {schema}.node SET is_over = TRUE, until = least(until, clock_timestamp())
WHERE NOT is_over AND ($1::text IS NULL OR home = $1::text);

-- name: insert_node
INSERT INTO {schema}.node
  (identity, home, epoch, owner, name, url, labels, slots, version, lease_ms, until, is_draining,
   is_over, commits, checksum, certificate, signature)
VALUES ($1::text, $2::text, $3::bigint, $4::text, $5::text, $6::text, $7::text, $8::bigint,
        $9::text, $10::bigint,
        coalesce(clock_timestamp() + $10::bigint * interval '1 millisecond', 'infinity'),
        FALSE, FALSE, 0, $11::bigint, $12::bytea, $13::bytea);

-- name: sign_cluster
-- By whose secret, and from when on ($2 = 1) every run and schedule is signed.
UPDATE {schema}.cluster
SET secret_check = $1::bytea, is_signed = is_signed OR $2::bigint = 1 WHERE id = 1;

-- name: hold_cluster
-- No node joins until the transaction is over.
SELECT id FROM {schema}.cluster WHERE id = 1 FOR UPDATE;

-- name: older_nodes
-- At work, and signing nothing.
SELECT name FROM {schema}.node
WHERE NOT is_over AND certificate IS NULL
  AND (lease_ms IS NULL OR until > clock_timestamp() - lease_ms * interval '1 millisecond');

-- name: need_signatures
-- Programs that do not sign are refused from now on.
UPDATE {schema}.migration SET needs = number WHERE number = 6;

-- name: page_of_runs
SELECT {run_row} FROM {schema}.run WHERE number > $1 ORDER BY number LIMIT $2;

-- name: sign_run
-- As it was read: whoever wrote it since has signed it.
UPDATE {schema}.run SET origin_signature = new.origin, state_signature = new.state
FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::bigint[], $5::bigint[])
  AS new (origin, state, run_id, seq, checksum)
WHERE run.run_id = new.run_id AND run.seq = new.seq AND state_checksum = new.checksum;

-- name: events_to_sign
-- Those from which open runs are made, also where they are signed with a former secret.
SELECT journal.number, journal.run_id, journal.seq, at_ms, type, key, data, journal.checksum,
       signature
FROM {schema}.run JOIN {schema}.journal ON journal.run = run.number AND journal.seq > run.seq
WHERE run.is_over = 0;

-- name: sign_event
UPDATE {schema}.journal SET signature = new.signature
FROM unnest($1::bytea[], $2::text[], $3::bigint[]) AS new (signature, run_id, seq)
JOIN {schema}.run USING (run_id)
WHERE journal.run = run.number AND journal.seq = new.seq;

-- name: sign_schedule
UPDATE {schema}.schedule SET signature = $1::bytea
WHERE schedule_id = $2::text AND checksum = $3::bigint;

-- name: inherit_parts
-- What a home had; NULL = all there are.
UPDATE {schema}.part SET owner = $1::text, epoch = epoch + 1
WHERE $2::text IS NULL
   OR owner IN (SELECT identity FROM {schema}.node WHERE home = $2::text AND is_over);

-- name: forget_nodes
-- Nobody has to be told any more that they are over: whoever is not there is. Of one that had given
-- everything back nobody said so.
DELETE FROM {schema}.node
WHERE identity IN (
  SELECT identity FROM {schema}.node
  WHERE until < clock_timestamp() - interval '1 day'
    AND NOT EXISTS (SELECT FROM {schema}.part WHERE owner = identity)
  FOR UPDATE SKIP LOCKED);

-- name: renew_node
UPDATE {schema}.node SET until = clock_timestamp() + lease_ms * interval '1 millisecond',
                         since = CASE WHEN until < clock_timestamp() THEN clock_timestamp() ELSE since END
WHERE identity = $1::text AND NOT is_over
RETURNING {schema}.horizon() - 1, commits;

-- name: keep_node
-- While its daemon is gone: never one whose right has ended, since its workers have.
UPDATE {schema}.node SET until = clock_timestamp() + lease_ms * interval '1 millisecond'
WHERE identity = $1::text AND NOT is_over AND until > clock_timestamp()
RETURNING identity;

-- name: end_node
-- Unless something is still ours, or at work here ($2 is 1): then its right runs out, or the next
-- start of its home ends it.
UPDATE {schema}.node
SET is_draining = TRUE, is_over = gone.is_empty,
    until = CASE WHEN gone.is_empty THEN clock_timestamp() ELSE until END
FROM (SELECT $2::bigint = 0
        AND NOT EXISTS (SELECT FROM {schema}.part WHERE owner = $1::text) AS is_empty) AS gone
WHERE identity = $1::text;

-- name: drain_node
UPDATE {schema}.node SET is_draining = $2::bigint = 1 WHERE identity = $1::text;

-- name: degrade_node
UPDATE {schema}.node SET degraded = $2::text WHERE identity = $1::text;

-- name: tell_peers
-- $2 is a JSON list.
UPDATE {schema}.node SET peers = ARRAY(SELECT json_array_elements_text($2::text::json))
WHERE identity = $1::text AND NOT is_over RETURNING identity;

-- name: end_lapsed
-- The nodes of these partitions (a JSON list) that did not renew; none that does so now. Asked by
-- one whose own right never ended for a whole lease: what was decided from an older look is too late.
-- One that does not know us may let its workers live on without our word: OUTAGE_LEASES.
UPDATE {schema}.node SET is_over = TRUE
WHERE NOT is_over AND until < clock_timestamp() AND identity IN (
  SELECT identity FROM {schema}.node
  WHERE NOT is_over AND until < clock_timestamp()
  AND (EXISTS (SELECT FROM {schema}.node AS ours
               WHERE ours.identity = $2::text
                 AND (ours.home = ANY (node.peers) OR ours.identity = ANY (node.peers)))
       OR until < clock_timestamp() - 50 * lease_ms * interval '1 millisecond')
  AND identity IN (
    SELECT owner FROM {schema}.part
    WHERE part IN (SELECT json_array_elements_text($1::text::json)::smallint))
  AND EXISTS (SELECT FROM {schema}.node AS ours
              WHERE ours.identity = $2::text AND ours.until > clock_timestamp()
                AND ours.since <= clock_timestamp() - ours.lease_ms * interval '1 millisecond')
  ORDER BY identity FOR UPDATE);

-- name: claim_parts
-- Whoever waited for another claim finds another epoch, and leaves the partition alone.
WITH free AS MATERIALIZED (
  SELECT part, epoch FROM {schema}.part
  WHERE part IN (SELECT json_array_elements_text($2::text::json)::smallint)
    AND NOT EXISTS (SELECT FROM {schema}.node WHERE identity = part.owner AND NOT is_over)
)
UPDATE {schema}.part SET owner = $1::text, epoch = part.epoch + 1
FROM (SELECT part.part FROM {schema}.part JOIN free USING (part, epoch)
      ORDER BY part.part FOR UPDATE OF part) AS held
WHERE part.part = held.part;

-- name: release_parts
-- NULL = all that are ours.
UPDATE {schema}.part SET owner = NULL, epoch = epoch + 1
WHERE owner = $1::text
  AND ($2::text IS NULL
       OR part IN (SELECT json_array_elements_text($2::text::json)::smallint));

-- name: select_parts
SELECT part FROM {schema}.part WHERE owner = $1;

-- name: forget_node
-- Somebody says that nothing of it works any more.
UPDATE {schema}.node SET is_over = TRUE
WHERE name = $1::text AND NOT is_over AND until < clock_timestamp();

-- name: survey_nodes
SELECT identity, home, name, url, labels, slots, version,
       CASE WHEN NOT is_over THEN certificate END, signature,
       CASE WHEN lease_ms IS NULL AND NOT is_over THEN 'infinity'::float8
            WHEN is_over THEN least(0, extract(epoch FROM until - clock_timestamp())::float8)
            ELSE extract(epoch FROM until - clock_timestamp())::float8 END,
       is_draining, degraded, is_over,
       EXISTS (SELECT FROM {schema}.offer WHERE taken_by IS NULL), owned.parts
FROM {schema}.node LEFT JOIN (
  SELECT owner, json_agg(part)::text AS parts FROM {schema}.part GROUP BY owner
) AS owned ON owned.owner = identity
WHERE owned.parts IS NOT NULL
   OR NOT is_over AND (lease_ms IS NULL
                       OR until > clock_timestamp() - 50 * lease_ms * interval '1 millisecond');

-- name: end_holders
-- Whoever has written to the row of one of these nodes (a JSON list) or of their partitions, or of
-- one that nobody has, and not ended its transaction: its process is frozen, or gone.
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN (
  SELECT xmax FROM {schema}.node WHERE identity IN (SELECT json_array_elements_text($1::json))
  UNION
  SELECT xmax FROM {schema}.part
  WHERE owner IS NULL OR owner IN (SELECT json_array_elements_text($1::json))
) AS held (holder) ON holder = transactionid
WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted
  AND pid <> pg_backend_pid();

-- name: fence
SELECT {schema}.fence($1::text, $2::bigint);

-- name: burn_commit
-- A commit of this number is not made any more, if it was not: what is on its way fails.
UPDATE {schema}.node SET commits = $2::bigint + 1
WHERE identity = $1::text AND commits = $2::bigint - 1 AND NOT is_over
RETURNING commits;

-- name: read_commits
SELECT commits FROM {schema}.node WHERE identity = $1::text AND NOT is_over;

-- name: next_block
SELECT nextval('{schema}.number_block');

-- name: run_part
SELECT part FROM {schema}.run WHERE run_id = $1;

-- name: session_part
SELECT part FROM {schema}.run WHERE session_key = $1 ORDER BY created_at_ms DESC LIMIT 1;

-- name: event_place
SELECT place FROM {schema}.journal
WHERE run = (SELECT number FROM {schema}.run WHERE run_id = $1) AND seq = $2;

-- name: insert_run
INSERT INTO {schema}.run
  (number, run_id, seq, phase, label, agent_id, requester, requester_run, session_key, is_over,
   keeps_session, created_at_ms, ended_at_ms, archived_at_ms, origin, state, origin_checksum,
   state_checksum, directory, tags, outcome, plan, pending, part, origin_signature,
   state_signature)
SELECT * FROM unnest(
  $1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
  $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],
  $14::bigint[], $15::bytea[], $16::bytea[], $17::bigint[], $18::bigint[], $19::text[],
  $20::text[], $21::text[], $22::text[], $23::bytea[], $24::bigint[], $25::bytea[], $26::bytea[]);

-- name: update_run
UPDATE {schema}.run SET seq = new.seq, phase = new.phase, state = new.state,
                        state_checksum = new.state_checksum, pending = new.pending,
                        state_signature = new.signature
FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::bytea[], $6::text[], $7::bytea[])
  AS new (seq, phase, state, state_checksum, pending, run_id, signature)
WHERE run.run_id = new.run_id;

-- name: end_run
UPDATE {schema}.run SET seq = new.seq, phase = new.phase, state = new.state,
                        state_checksum = new.state_checksum, pending = new.pending,
                        is_over = new.is_over, ended_at_ms = new.ended_at_ms, outcome = new.outcome,
                        state_signature = new.signature
FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bigint[],
            $7::bigint[], $8::text[], $9::text[], $10::bytea[])
  AS new (seq, phase, state, state_checksum, pending, is_over, ended_at_ms, outcome, run_id,
          signature)
WHERE run.run_id = new.run_id;

-- name: archive_run
UPDATE {schema}.run SET seq = new.seq, phase = new.phase, state = new.state,
                        state_checksum = new.state_checksum, pending = new.pending,
                        is_over = new.is_over, ended_at_ms = new.ended_at_ms, outcome = new.outcome,
                        archived_at_ms = new.archived_at_ms, state_signature = new.signature
FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bigint[],
            $7::bigint[], $8::text[], $9::bigint[], $10::text[], $11::bytea[])
  AS new (seq, phase, state, state_checksum, pending, is_over, ended_at_ms, outcome, archived_at_ms,
          run_id, signature)
WHERE run.run_id = new.run_id;

-- name: insert_event
-- An event of a run that is not there fails: journal.run cannot be NULL.
INSERT INTO {schema}.journal
  (place, number, run, run_id, seq, at_ms, type, key, data, checksum, signature)
SELECT ((SELECT {schema}.transaction_number()) << 16) + new.ordinal, new.number, (SELECT run.number FROM {schema}.run WHERE run.run_id = new.run_id),
       new.run_id, new.seq, new.at_ms, new.type, new.key, new.data, new.checksum, new.signature
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[],
            $7::bytea[], $8::bigint[], $9::bytea[])
  WITH ORDINALITY AS new (number, run_id, seq, at_ms, type, key, data, checksum, signature, ordinal);

-- name: update_origin
UPDATE {schema}.run SET origin = $1::bytea, origin_checksum = $2::bigint,
                        origin_signature = $4::bytea
WHERE run_id = $3::text;

-- name: select_events
-- Of some types, which are a JSON list.
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM {schema}.journal
WHERE run = (SELECT number FROM {schema}.run WHERE run_id = $1)
  AND type IN (SELECT json_array_elements_text($2::json));

-- name: update_event
UPDATE {schema}.journal SET data = $1::bytea, checksum = $2::bigint
WHERE run = $4::bigint AND number = $3::bigint;

-- name: newest_number
-- Behind it is whatever is not committed yet. $1 = whether anybody else writes: then what is
-- committed behind one that is not is behind it, too.
SELECT greatest({schema}.horizon() - 1,
                CASE WHEN $1::bigint = 0 THEN (SELECT max(place) FROM {schema}.journal) END);

-- name: run_number
SELECT number FROM {schema}.run WHERE run_id = $1;

-- name: insert_message
INSERT INTO {schema}.inbox
  (number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms, consumed_by,
   checksum, place_checksum, read_checksum)
SELECT * FROM unnest(
  $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[],
  $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[]);

-- name: move_messages
UPDATE {schema}.inbox SET session_key = $1::text, place_checksum = $2::bigint
WHERE session_key = $3::text AND consumed_at_ms IS NULL;

-- name: readdress_message
UPDATE {schema}.inbox SET session_key = $1::text, place_checksum = $2::bigint
WHERE message_id = $3::text AND consumed_at_ms IS NULL;

-- name: consume_message
-- The first consumer stays on record.
UPDATE {schema}.inbox SET consumed_at_ms = new.at_ms, consumed_by = new.reader,
                          read_checksum = new.checksum
FROM (SELECT DISTINCT ON (message_id) * FROM unnest(
        $1::bigint[], $2::text[], $3::bigint[], $4::text[])
        WITH ORDINALITY AS each (at_ms, reader, checksum, message_id, place)
      ORDER BY message_id, place) AS new
WHERE inbox.message_id = new.message_id AND inbox.consumed_at_ms IS NULL;

-- name: reopen_message
UPDATE {schema}.inbox SET consumed_at_ms = NULL, consumed_by = NULL, read_checksum = NULL,
                          session_key = $1::text, place_checksum = $2::bigint
WHERE message_id = $3::text;

-- name: outdate_alerts
UPDATE {schema}.inbox SET consumed_at_ms = $1::bigint, consumed_by = $2::text,
                          read_checksum = $3::bigint
WHERE run_id = $4::text AND kind = 'alert' AND consumed_at_ms IS NULL;

-- name: put_lease
INSERT INTO {schema}.lease (run_id, attempt, owner, epoch, until_ms, cursor, checksum)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[],
                     $7::bigint[])
ON CONFLICT (run_id) DO UPDATE SET attempt = excluded.attempt, owner = excluded.owner,
  epoch = excluded.epoch, until_ms = excluded.until_ms, cursor = excluded.cursor,
  checksum = excluded.checksum
WHERE lease.epoch <= excluded.epoch
   OR excluded.epoch = (SELECT node.epoch FROM {schema}.run JOIN {schema}.part USING (part)
                        JOIN {schema}.node ON identity = part.owner
                        WHERE run.run_id = excluded.run_id);

-- name: release_lease
DELETE FROM {schema}.lease WHERE run_id = ANY($1::text[]);

-- name: put_idempotency
-- One after the other: of the same key the last one counts.
INSERT INTO {schema}.idempotency (requester, key, run_id, created_at_ms, digest, checksum)
VALUES ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::bigint)
ON CONFLICT (requester, key) DO UPDATE SET run_id = excluded.run_id,
  created_at_ms = excluded.created_at_ms, digest = excluded.digest, checksum = excluded.checksum;

-- name: put_schedule
INSERT INTO {schema}.schedule (schedule_id, state, checksum, signature)
VALUES ($1::text, $2::bytea, $3::bigint, $4::bytea)
ON CONFLICT (schedule_id) DO UPDATE SET state = excluded.state, checksum = excluded.checksum,
                                        signature = excluded.signature;

-- name: remove_schedule
DELETE FROM {schema}.schedule WHERE schedule_id = $1::text;

-- name: load_schedules
SELECT schedule_id, state, checksum, signature FROM {schema}.schedule
WHERE schedule_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: load_open
-- Ended children of an open run belong to it until it has told their results.
WITH opened AS (
  SELECT number, run_id FROM {schema}.run WHERE is_over = 0 AND part = ANY($1::smallint[]))
SELECT {run_row} FROM {schema}.run
WHERE number IN (
    SELECT number FROM opened
    UNION ALL
    SELECT child.number
    FROM opened JOIN {schema}.run AS child ON child.requester_run = opened.run_id)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside)
ORDER BY created_at_ms, number;

-- name: select_behind
-- Open runs whose row is older than their journal.
SELECT run_id FROM {schema}.run
WHERE is_over = 0 AND part = ANY($1::smallint[])
  AND EXISTS (SELECT 1 FROM {schema}.journal
              WHERE journal.run = run.number AND journal.seq > run.seq);

-- name: load_pending
-- Runs that are over and have something to do.
SELECT {run_row} FROM {schema}.run
WHERE is_over = 1 AND pending IS NOT NULL AND part = ANY($1::smallint[])
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: load_leases
SELECT run_id, attempt, owner, epoch, until_ms, cursor, checksum FROM {schema}.lease
WHERE coalesce((SELECT part = ANY($1::smallint[]) FROM {schema}.run
                WHERE run.run_id = lease.run_id), TRUE)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: load_open_keys
-- Of every run that load_open loads.
WITH opened AS (
  SELECT number, run_id FROM {schema}.run WHERE is_over = 0 AND part = ANY($1::smallint[]))
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM {schema}.journal
WHERE run IN (
    SELECT number FROM opened
    UNION ALL
    SELECT child.number
    FROM opened JOIN {schema}.run AS child ON child.requester_run = opened.run_id)
  AND key IS NOT NULL AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: load_keys
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM {schema}.journal
WHERE run = (SELECT number FROM {schema}.run WHERE run_id = $1) AND key IS NOT NULL;

-- name: load_idempotency
SELECT requester, key, run_id, created_at_ms, digest, checksum FROM {schema}.idempotency
WHERE created_at_ms > $1;

-- name: forget_idempotency
-- What another node deletes at this moment is not waited for.
DELETE FROM {schema}.idempotency
WHERE (requester, key) IN (SELECT requester, key FROM {schema}.idempotency
                           WHERE created_at_ms <= $1::bigint FOR UPDATE SKIP LOCKED);

-- name: select_run
SELECT {run_row} FROM {schema}.run
WHERE run_id = $1 AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: any_run
-- What stands in select_runs and count_runs for the runs that are asked for, and their place.
SELECT number, created_at_ms AS at_ms FROM {schema}.run WHERE TRUE;

-- name: tagged_runs
-- postgres_query.py puts the runs that are asked for in the place of the inner SELECT. OFFSET keeps
-- it one: a tag is walked in the order of time, and each run of it looked at by its number.
SELECT run_tag.number, run_tag.created_at_ms AS at_ms
FROM {schema}.run_tag CROSS JOIN LATERAL (
  SELECT number, created_at_ms AS at_ms FROM {schema}.run WHERE TRUE
    AND run.number = run_tag.number AND run.created_at_ms = run_tag.created_at_ms
  OFFSET 0) AS found
WHERE run_tag.tag = :tags::json ->> 0 AND run_tag.is_listed = {shelf};

-- name: select_runs
-- postgres_query.py puts what is asked for in the place of the innermost SELECT.
SELECT {run_row}
FROM (
  SELECT number, at_ms FROM (
    SELECT number, created_at_ms AS at_ms FROM {schema}.run WHERE TRUE) AS found
  ORDER BY at_ms DESC, number DESC LIMIT :limit OFFSET :offset) AS page
JOIN {schema}.run ON run.number = page.number
ORDER BY page.at_ms DESC, page.number DESC;

-- name: count_runs
-- Up to a number: a count of all visits all.
SELECT count(*) FROM (
  SELECT 1 FROM (SELECT number, created_at_ms AS at_ms FROM {schema}.run WHERE TRUE) AS found
  LIMIT :far) AS counted;

-- name: sieve_runs
-- What is asked for besides is asked in Python, of so many at a time.
SELECT page.number, page.at_ms, run_id, label, origin
FROM (
  SELECT number, at_ms FROM (
    SELECT number, created_at_ms AS at_ms FROM {schema}.run WHERE TRUE) AS found
  ORDER BY at_ms DESC, number DESC LIMIT :far) AS page
JOIN {schema}.run ON run.number = page.number
ORDER BY page.at_ms DESC, page.number DESC;

-- name: select_numbers
-- In this order.
SELECT {run_row}
FROM unnest($1::bigint[]) WITH ORDINALITY AS page (number, place)
JOIN {schema}.run ON run.number = page.number
ORDER BY page.place;

-- name: find_runs
SELECT run_id FROM {schema}.run WHERE run_id >= $1 AND run_id < $2 ORDER BY run_id LIMIT 10;

-- name: select_journal
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM {schema}.journal
WHERE run = (SELECT number FROM {schema}.run WHERE run_id = $1) AND seq > $2
ORDER BY seq LIMIT nullif($3::bigint, -1);

-- name: kept_of_parts
-- Those of the runs in memory (``load_open``, ``load_pending``) that are of these partitions.
SELECT run_id FROM {schema}.run WHERE is_over = 0 AND part = ANY($1::smallint[])
UNION ALL
SELECT run_id FROM {schema}.run
WHERE is_over = 1 AND pending IS NOT NULL AND part = ANY($1::smallint[]);

-- name: select_tails
-- What came behind the rows of some runs: two columns, of which the first has their ids.
SELECT number, journal.run_id, journal.seq, at_ms, type, key, data, journal.checksum, signature
FROM json_to_recordset($1::json) AS head (id text, seq bigint)
JOIN {schema}.journal
  ON journal.run = (SELECT number FROM {schema}.run WHERE run.run_id = head.id COLLATE "C")
 AND journal.seq > head.seq
ORDER BY journal.run, journal.seq;

-- name: select_open_ids
SELECT run_id FROM {schema}.run
WHERE is_over = 0 AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: select_feed
-- Below a place; NULL = the one before which nothing comes any more.
SELECT place, number, run_id, seq, at_ms, type, key, data, checksum FROM {schema}.journal
WHERE place > $1 AND place < coalesce($3::bigint, (SELECT {schema}.horizon()))
ORDER BY place LIMIT $2;

-- name: select_alerted
SELECT place, number, run_id, seq, at_ms, type, key, data, checksum FROM {schema}.journal
WHERE type = 'Alerted' AND place < $1 ORDER BY place DESC LIMIT $2;

-- name: select_alerted_of_run
-- Visits the events of the run, whose places grow with seq.
SELECT place, number, run_id, seq, at_ms, type, key, data, checksum FROM {schema}.journal
WHERE run = (SELECT number FROM {schema}.run WHERE run_id = $3) AND type = 'Alerted' AND place < $1
ORDER BY seq DESC LIMIT $2;

-- name: select_touched
SELECT place, run_id FROM {schema}.journal
WHERE place > $1 AND place < coalesce($3::bigint, (SELECT {schema}.horizon()))
ORDER BY place LIMIT $2;

-- name: select_these
-- The ids are a JSON list.
SELECT {run_row} FROM {schema}.run
WHERE run_id IN (SELECT json_array_elements_text($1::json))
  AND (ended_at_ms IS NULL OR ended_at_ms >= $2)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: count_below
-- By the runs of a JSON list, level after level; no more are made than are taken. Those that are
-- plans have their steps below them.
WITH RECURSIVE below (root, id) AS (
  (SELECT value COLLATE "C", value COLLATE "C" FROM json_array_elements_text(:roots::json) AS value
   UNION ALL
   SELECT plan COLLATE "C", run_id COLLATE "C" FROM {schema}.run
   WHERE plan IN (SELECT json_array_elements_text(:plans::json)) AND run_id <> plan)
  UNION ALL
  SELECT below.root, child.run_id
  FROM below JOIN {schema}.run AS child ON child.requester_run = below.id
  WHERE child.plan IS DISTINCT FROM below.root
     OR below.root NOT IN (SELECT json_array_elements_text(:plans::json))
), near AS MATERIALIZED (SELECT root, id FROM below LIMIT :far)
SELECT near.root, run.is_over, CASE WHEN run.is_over = 1 THEN run.outcome END AS ended, count(*),
       CASE WHEN run.is_over = 0 THEN json_agg(run.run_id)::text END
FROM near JOIN {schema}.run ON run.run_id = near.id
WHERE near.id <> near.root AND near.id NOT IN (SELECT name FROM {schema}.set_aside)
GROUP BY near.root, run.is_over, ended;

-- name: select_inbox
-- Numbers grow within an inbox; of several, by the time.
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM {schema}.inbox
WHERE ($1::text IS NULL OR session_key = $1)
  AND message_id NOT IN (SELECT name FROM {schema}.set_aside)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside)
ORDER BY CASE WHEN $1::text IS NULL THEN created_at_ms END DESC, number DESC LIMIT $2;

-- name: select_unread
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM {schema}.inbox
WHERE session_key = $1 AND consumed_at_ms IS NULL
  AND message_id NOT IN (SELECT name FROM {schema}.set_aside)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside)
ORDER BY number LIMIT $2;

-- name: select_unread_ids
-- For a count: the texts stay on the disk.
SELECT message_id FROM {schema}.inbox
WHERE session_key = $1 AND consumed_at_ms IS NULL
  AND message_id NOT IN (SELECT name FROM {schema}.set_aside)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside)
ORDER BY number LIMIT $2;

-- name: count_unread
SELECT count(*) FROM {schema}.inbox
WHERE consumed_at_ms IS NULL
  AND message_id NOT IN (SELECT name FROM {schema}.set_aside)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: select_all_unread
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM {schema}.inbox
WHERE number IN (
  SELECT number FROM {schema}.inbox
  WHERE consumed_at_ms IS NULL
    AND message_id NOT IN (SELECT name FROM {schema}.set_aside)
    AND run_id NOT IN (SELECT name FROM {schema}.set_aside)
  ORDER BY created_at_ms, number LIMIT $1)
ORDER BY created_at_ms, number;

-- name: select_blockers
-- Newest first.
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM {schema}.inbox
WHERE kind = 'blocker' AND ($1::text IS NULL OR session_key = $1)
  AND message_id NOT IN (SELECT name FROM {schema}.set_aside)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside)
ORDER BY created_at_ms DESC, number DESC LIMIT $2;

-- name: select_news
-- Of the runs of a JSON list.
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM {schema}.inbox
WHERE run_id IN (SELECT json_array_elements_text($1::json)) AND kind IN ('alert', 'blocker')
  AND message_id NOT IN (SELECT name FROM {schema}.set_aside)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside)
ORDER BY number;

-- name: select_message
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM {schema}.inbox
WHERE message_id = $1
  AND message_id NOT IN (SELECT name FROM {schema}.set_aside)
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: select_archivable
-- What nobody read stays in sight, and what was read late stays as long after that.
SELECT run_id FROM {schema}.run
WHERE is_over = 1 AND (CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END) = 1
  AND part = ANY($3::smallint[])
  AND keeps_session = 0 AND ended_at_ms < $1
  AND run_id NOT IN (SELECT name FROM {schema}.set_aside)
  AND NOT EXISTS (SELECT 1 FROM {schema}.inbox
                  WHERE inbox.run_id = run.run_id
                    AND inbox.kind <> 'alert'
                    AND (consumed_at_ms IS NULL OR consumed_by IS NULL OR consumed_at_ms >= $1))
ORDER BY ended_at_ms LIMIT $2;

-- name: select_prunable
-- A result nobody read is kept until it is read, and then until the retention is over; for news of
-- how it came about nobody waits.
SELECT run_id FROM {schema}.run
WHERE is_over = 1 AND (CASE WHEN archived_at_ms IS NULL THEN 1 ELSE 0 END) = 0
  AND part = ANY($3::smallint[])
  AND ended_at_ms < $1
  AND run_id NOT IN (SELECT run_id FROM {schema}.set_aside)
  AND NOT EXISTS (SELECT 1 FROM {schema}.inbox
                  WHERE inbox.run_id = run.run_id
                    AND inbox.kind <> 'alert'
                    AND (consumed_at_ms IS NULL OR consumed_at_ms >= $1))
LIMIT $2;

-- name: delete_run
DELETE FROM {schema}.run WHERE run_id = ANY($1::text[]);

-- name: delete_journal
DELETE FROM {schema}.journal
WHERE run IN (SELECT number FROM {schema}.run WHERE run_id = ANY($1::text[]));

-- name: delete_messages
DELETE FROM {schema}.inbox WHERE run_id = ANY($1::text[]);

-- name: put_aside
INSERT INTO {schema}.set_aside (name, run_id, reason) VALUES ($1, $2, $3)
ON CONFLICT (name) DO NOTHING RETURNING name;

-- name: take_back
DELETE FROM {schema}.set_aside;

-- name: select_set_aside
SELECT name, run_id, reason FROM {schema}.set_aside ORDER BY run_id, name;

-- name: all_runs
SELECT {run_row} FROM {schema}.run ORDER BY number;

-- name: all_leases
SELECT run_id, attempt, owner, epoch, until_ms, cursor, checksum FROM {schema}.lease;

-- name: all_schedules
SELECT schedule_id, state, checksum, signature FROM {schema}.schedule;

-- name: all_messages
SELECT number, message_id, session_key, run_id, kind, created_at_ms, text, consumed_at_ms,
       consumed_by, checksum, place_checksum, read_checksum
FROM {schema}.inbox;

-- name: all_events
SELECT number, run_id, seq, at_ms, type, key, data, checksum FROM {schema}.journal;

-- name: select_strays
-- Runs with an event that is filed under the number of another one, or of none.
SELECT DISTINCT journal.run_id
FROM {schema}.journal LEFT JOIN {schema}.run ON run.number = journal.run
WHERE run.run_id IS DISTINCT FROM journal.run_id;

-- name: select_reason
SELECT reason FROM {schema}.set_aside WHERE name = $1;

-- name: select_spawned_since
SELECT {run_row} FROM {schema}.run
WHERE created_at_ms > $1 AND run_id NOT IN (SELECT name FROM {schema}.set_aside);

-- name: database_bytes
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = to_regnamespace('{schema}') AND relkind = 'r';

-- name: counted
-- Partitions whose runs are counted in the slots of this node.
SELECT part FROM {schema}.counted WHERE identity = $1::text;

-- name: settle
SELECT {schema}.settle($1::text, $2::bigint, $3::jsonb)::text;
