-- 0012 alert history: alerts are found without reading the events between them.
--
-- Of all events they are few; no other event is in the index, or pays for it.
CREATE INDEX journal_alerted ON journal (number) WHERE type = 'Alerted';
