-- +goose Up
-- All of an item but its body and its question: a list reads no row of the table, which is as long as the body.
CREATE INDEX held_rows ON held (state, at, id, until, server, tool, principal, rule, code, call, digest, octets, decided, decider, found, hidden, people, proposed, proposer);
-- How many items a server has in the queue, without their rows.
CREATE INDEX held_room ON held (server, until, state) WHERE state IN ('held', 'released');
INSERT INTO schema_steps (version, oldest) VALUES (21, 12);
