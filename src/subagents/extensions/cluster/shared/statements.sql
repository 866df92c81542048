-- Every statement about what the nodes of a cluster keep beside the runs, by name. {schema} is the
-- schema of the store, whose migration 0005 has the tables.

-- name: commit
COMMIT;

-- name: require_node
SELECT {schema}.require_node($1::text);

-- name: make_durable
-- Of this transaction: what is kept is on the server's disk.
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') = 'off';

-- name: put_environment
INSERT INTO {schema}.run_environment (run_id, sealed)
SELECT * FROM unnest($1::text[], $2::bytea[])
ON CONFLICT (run_id) DO UPDATE SET sealed = excluded.sealed, made_at = clock_timestamp();

-- name: select_environment
SELECT sealed FROM {schema}.run_environment WHERE run_id = $1::text;

-- name: delete_environment
DELETE FROM {schema}.run_environment WHERE run_id = ANY ($1::text[]);

-- name: select_old_environments
SELECT run_id FROM {schema}.run_environment
WHERE made_at < clock_timestamp() - $1::bigint * interval '1 second' AND run_id > $2::text
ORDER BY run_id LIMIT 1000;

-- name: put_allowed_call
INSERT INTO {schema}.allowed_call (key, sealed) VALUES ($1::text, $2::bytea)
ON CONFLICT (key) DO UPDATE SET sealed = excluded.sealed;

-- name: select_allowed_calls
SELECT sealed FROM {schema}.allowed_call;

-- name: delete_allowed_call
DELETE FROM {schema}.allowed_call WHERE key = $1::text;

-- name: put_progress
INSERT INTO {schema}.run_progress (run_id, number, data) VALUES ($1::text, $2::bigint, $3::bytea)
ON CONFLICT (run_id, number) DO UPDATE SET data = excluded.data;

-- name: select_progress
SELECT data FROM {schema}.run_progress WHERE run_id = $1::text ORDER BY number;

-- name: delete_progress
DELETE FROM {schema}.run_progress WHERE run_id = $1::text;

-- name: delete_other_results
DELETE FROM {schema}.run_result WHERE run_id = $1 AND name <> ALL ($2);

-- name: delete_result
DELETE FROM {schema}.run_result WHERE run_id = $1 AND name = $2;

-- name: put_result
INSERT INTO {schema}.run_result (run_id, name, begins, data) VALUES ($1, $2, $3, $4);

-- name: select_result
-- The pieces in which these bytes are, and at least the first one: so it is known to be there.
SELECT begins, data FROM {schema}.run_result
WHERE run_id = $1::text AND name = $2::text AND begins < $3::bigint + $4::bigint
  AND begins >= (
    SELECT coalesce(max(begins), 0) FROM {schema}.run_result
    WHERE run_id = $1::text AND name = $2::text AND begins <= $3::bigint)
ORDER BY begins;

-- name: delete_results
DELETE FROM {schema}.run_result WHERE run_id = $1::text;

-- name: claim_transcript
SELECT * FROM {schema}.claim_transcript($1::text, $2::text, $3::text);

-- name: append_transcript
SELECT {schema}.append_transcript(
  $1::text, $2::text, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::bytea, $8::bigint,
  $9::bigint, $10::bigint, $11::bigint, $12::bytea);

-- name: sync_transcript
SELECT {schema}.sync_transcript($1::text);

-- name: forget_transcript
SELECT {schema}.forget_transcript($1::text);

-- name: select_transcript
SELECT writer, appends, checkpoint, oldest, parts, seq, object FROM {schema}.transcript
WHERE run_id = $1::text;

-- name: select_parts
SELECT first, ts, size FROM {schema}.transcript_part WHERE run_id = $1::text ORDER BY first;

-- name: select_part
SELECT data FROM {schema}.transcript_part WHERE run_id = $1::text AND first = $2::bigint;

-- name: select_parts_from
SELECT data FROM {schema}.transcript_part
WHERE run_id = $1::text AND first >= $2::bigint ORDER BY first;

-- name: claim_moves
-- Transcripts of archived runs that nobody moves; whoever claimed them and died is waited for.
UPDATE {schema}.transcript SET mover_due = clock_timestamp() + interval '10 minutes'
WHERE run_id IN (
  SELECT transcript.run_id FROM {schema}.transcript
  JOIN {schema}.run ON run.run_id = transcript.run_id AND run.archived_at_ms IS NOT NULL
  WHERE transcript.mover_due < 'infinity' AND transcript.mover_due < clock_timestamp()
  LIMIT $1::bigint FOR UPDATE OF transcript SKIP LOCKED)
RETURNING run_id;

-- name: move_transcript
SELECT {schema}.move_transcript($1::text, $2::bigint, $3::text, $4::bytea);

-- name: reserve_object
INSERT INTO {schema}.gone_object (key, due)
VALUES ($1::text, clock_timestamp() + $2::bigint * interval '1 second')
ON CONFLICT DO NOTHING;

-- name: claim_gone_objects
UPDATE {schema}.gone_object SET is_going = true
WHERE key IN (
  SELECT key FROM {schema}.gone_object WHERE due < clock_timestamp()
  LIMIT $1::bigint FOR UPDATE SKIP LOCKED)
RETURNING key;

-- name: forget_objects
DELETE FROM {schema}.gone_object WHERE key = ANY ($1::text[]);

-- name: lock_artifact
-- Until the end of the transaction nobody deletes it.
SELECT size FROM {schema}.artifact WHERE sha256 = $1 FOR KEY SHARE;

-- name: insert_artifact
-- Of two that store the same the second waits for the first, and finds it done.
INSERT INTO {schema}.artifact (sha256, size, object) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING RETURNING sha256;

-- name: insert_artifact_piece
INSERT INTO {schema}.artifact_piece (sha256, begins, data) VALUES ($1, $2, $3);

-- name: put_run_artifact
INSERT INTO {schema}.run_artifact (run_id, path, sha256) VALUES ($1, $2, $3)
ON CONFLICT (run_id, path) DO UPDATE SET sha256 = excluded.sha256;

-- name: take_object
SELECT {schema}.take_object($1);

-- name: select_artifacts
SELECT path, size FROM {schema}.run_artifact JOIN {schema}.artifact USING (sha256)
WHERE run_id = $1::text;

-- name: select_artifact
SELECT sha256, size, object FROM {schema}.run_artifact JOIN {schema}.artifact USING (sha256)
WHERE run_id = $1::text AND path = $2::text;

-- name: select_artifact_pieces
SELECT begins, data FROM {schema}.artifact_piece
WHERE sha256 = $1::text AND begins < $2::bigint + $3::bigint
  AND begins >= (
    SELECT coalesce(max(begins), 0) FROM {schema}.artifact_piece
    WHERE sha256 = $1::text AND begins <= $2::bigint)
ORDER BY begins;

-- name: forget_artifacts
SELECT {schema}.forget_artifacts($1::text);
