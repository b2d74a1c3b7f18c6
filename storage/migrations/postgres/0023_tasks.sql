-- +goose Up
-- Which tools have created a task of a server. task is a digest of server, principal and id.
CREATE TABLE tasks (
  task BYTEA NOT NULL,
  tool BYTEA NOT NULL,
  until text COLLATE "C" NOT NULL,
  PRIMARY KEY (task, tool)
);
CREATE INDEX tasks_until ON tasks (until);
INSERT INTO schema_steps (version, oldest) VALUES (23, 12);
