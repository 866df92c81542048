-- 0005 idempotency digest: the same key with another request is an error.
--
-- A digest of each parameter, by name, as JSON (domain/rules/idempotency.py). NULL in rows that were
-- written before: they are compared with nothing, and gone after a day. A row's checksum covers it
-- where there is one.
ALTER TABLE idempotency ADD COLUMN digest TEXT;
