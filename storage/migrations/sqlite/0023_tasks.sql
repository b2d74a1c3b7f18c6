-- +goose Up
-- Which tools have created a task of a server. task is a digest of server, principal and id.
CREATE TABLE tasks (
  task BLOB NOT NULL,
  tool BLOB NOT NULL,
  until TEXT NOT NULL,
  PRIMARY KEY (task, tool)
) WITHOUT ROWID;
CREATE INDEX tasks_until ON tasks (until);
INSERT INTO schema_steps (version, oldest) VALUES (23, 12);
