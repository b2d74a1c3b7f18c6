-- +goose Up

DROP TABLE peers;
DROP TABLE conversations;

-- Counts by spans of time, and the groups that only they had.
DROP TABLE decision_sums;
DELETE FROM decision_groups WHERE wide = 1;
CREATE TABLE decision_groups_now (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  verdict TEXT NOT NULL,
  UNIQUE (kind, server, tool, verdict)
);
INSERT INTO decision_groups_now (id, kind, server, tool, verdict) SELECT id, kind, server, tool, verdict FROM decision_groups;
DROP TABLE decision_groups;
ALTER TABLE decision_groups_now RENAME TO decision_groups;

INSERT INTO schema_steps (version, oldest) VALUES (105, 105);
