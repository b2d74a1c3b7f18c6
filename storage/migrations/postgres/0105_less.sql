-- +goose Up

DROP TABLE peers;
DROP TABLE conversations;

-- The index of the log has no counts any more. It is made again from the log.
DROP TABLE decision_sums;
DELETE FROM decisions;
DELETE FROM decision_keys;
UPDATE decision_index SET size = 0, keys = '';
DROP TABLE decision_groups;
CREATE TABLE decision_groups (
  id BIGINT PRIMARY KEY,
  kind text COLLATE "C" NOT NULL,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  verdict text COLLATE "C" NOT NULL,
  UNIQUE (kind, server, tool, verdict)
);

INSERT INTO schema_steps (version, oldest) VALUES (105, 105);
