-- 0008 schedule: work that is started at its times; with each, up to when they were decided on.
CREATE TABLE schedule (
  schedule_id TEXT    NOT NULL PRIMARY KEY,
  state       BLOB    NOT NULL,
  checksum    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
