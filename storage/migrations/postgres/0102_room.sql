-- +goose Up

-- How much of the queue is taken, by server, by principal and in all, is read from these alone. A later release takes
-- away what has no reader now: held_state, and held_room of SQLite.
CREATE INDEX held_taken_server ON held (server, until, octets) WHERE state IN ('held', 'released');
CREATE INDEX held_taken_principal ON held (principal, until, octets) WHERE state IN ('held', 'released');

INSERT INTO schema_steps (version, oldest) VALUES (102, 100);
