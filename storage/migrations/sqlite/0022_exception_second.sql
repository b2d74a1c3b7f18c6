-- +goose Up
-- The second person of an exception, and for how long a proposed one will last, in seconds. A proposed one has no end.
ALTER TABLE exceptions ADD COLUMN second TEXT DEFAULT '' NOT NULL;
ALTER TABLE exceptions ADD COLUMN keep INTEGER DEFAULT 0 NOT NULL;
INSERT INTO schema_steps (version, oldest) VALUES (22, 12);
