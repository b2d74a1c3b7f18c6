-- +goose Up

DROP TABLE peers;
DROP TABLE conversations;

-- Counts by spans of time, and the groups that only they had.
DROP TABLE decision_sums;
DELETE FROM decision_groups WHERE wide = 1;
ALTER TABLE decision_groups DROP COLUMN wide;
CREATE UNIQUE INDEX decision_groups_key ON decision_groups (kind, server, tool, verdict);

INSERT INTO schema_steps (version, oldest) VALUES (105, 105);
