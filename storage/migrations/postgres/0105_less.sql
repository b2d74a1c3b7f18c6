-- +goose Up

DROP TABLE peers;
DROP TABLE conversations;

INSERT INTO schema_steps (version, oldest) VALUES (105, 105);
