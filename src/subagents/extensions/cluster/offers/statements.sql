-- Each statement is a transaction by itself: nothing is locked while somebody is waited for.

-- name: put_offer
-- Offered again, it keeps its taker, and its turn.
INSERT INTO {schema}.offer AS known (attempt_id, run_id, epoch, label, priority, cwd)
VALUES ($1::text, $2::text, $3::bigint, $4::text, $5::bigint, $6::text)
ON CONFLICT (attempt_id) DO UPDATE SET
  epoch = greatest(known.epoch, excluded.epoch), priority = excluded.priority
RETURNING taken_by

-- name: select_takers
SELECT attempt_id, taken_by FROM {schema}.offer
WHERE attempt_id = ANY($1::text[]) AND taken_by IS NOT NULL

-- name: select_open
SELECT attempt_id, run_id, epoch, label, priority, cwd FROM {schema}.offer
WHERE taken_by IS NULL AND (label IS NULL OR label = ANY($1::text[]))
ORDER BY priority DESC, at LIMIT $2::bigint

-- name: take_offers
-- Who takes at the same time takes others.
WITH free AS (
  SELECT attempt_id FROM {schema}.offer
  WHERE attempt_id = ANY($1::text[]) AND taken_by IS NULL
  ORDER BY priority DESC, at LIMIT $3::bigint FOR UPDATE SKIP LOCKED)
UPDATE {schema}.offer SET taken_by = $2::text FROM free
WHERE offer.attempt_id = free.attempt_id
RETURNING offer.attempt_id

-- name: select_offer
SELECT attempt_id, run_id, epoch, label, priority, cwd, taken_by FROM {schema}.offer
WHERE attempt_id = $1::text

-- name: delete_offer
DELETE FROM {schema}.offer WHERE attempt_id = $1::text

-- name: delete_left
-- Of owners that died between the journal and this, and of runs that ended: nobody asks for them any
-- more.
DELETE FROM {schema}.offer WHERE attempt_id IN (
  SELECT attempt_id FROM {schema}.offer
  WHERE taken_by IS NOT NULL AND at < clock_timestamp() - interval '7 days'
     OR NOT EXISTS (SELECT FROM {schema}.run WHERE run.run_id = offer.run_id AND is_over = 0)
  FOR UPDATE SKIP LOCKED)
