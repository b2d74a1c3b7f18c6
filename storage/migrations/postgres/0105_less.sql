-- +goose Up

DROP TABLE peers;

INSERT INTO schema_steps (version, oldest) VALUES (105, 105);
