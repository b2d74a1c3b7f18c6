-- +goose Up
-- A page of the queue is read from an index in its order, however many items there are.
CREATE INDEX held_page ON held (at, id);
CREATE INDEX held_page_state ON held (state, at, id);
CREATE INDEX held_page_server ON held (server, at, id);
CREATE INDEX held_page_tool ON held (tool, at, id);
CREATE INDEX held_page_state_server ON held (state, server, at, id);
CREATE INDEX held_until ON held (until) WHERE state IN ('held', 'released');
INSERT INTO schema_steps (version, oldest) VALUES (14, 12);
