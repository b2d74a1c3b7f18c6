-- +goose Up

-- How much of the queue is taken, by server, by principal and in all, is read from these alone.
DROP INDEX held_state;
CREATE INDEX held_taken_server ON held (server, until, octets) WHERE state IN ('held', 'released');
CREATE INDEX held_taken_principal ON held (principal, until, octets) WHERE state IN ('held', 'released');

INSERT INTO schema_steps (version, oldest) VALUES (102, 100);
