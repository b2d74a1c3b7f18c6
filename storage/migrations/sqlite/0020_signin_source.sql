-- +goose Up
-- What of the configuration has accepted a person who has signed in to the console.
ALTER TABLE signins ADD COLUMN source BLOB DEFAULT x'' NOT NULL;
-- When a session ends that is not used again.
ALTER TABLE signins ADD COLUMN ends TEXT DEFAULT '' NOT NULL;
INSERT INTO schema_steps (version, oldest) VALUES (20, 12);
