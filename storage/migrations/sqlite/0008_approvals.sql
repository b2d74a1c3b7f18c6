-- +goose Up
CREATE TABLE approvals (
  id TEXT NOT NULL PRIMARY KEY,
  call BLOB NOT NULL,
  principal TEXT NOT NULL,
  tool TEXT NOT NULL,
  item TEXT NOT NULL,
  since TEXT NOT NULL,
  until TEXT NOT NULL,
  approver TEXT NOT NULL,
  revoked TEXT NOT NULL,
  revoker TEXT NOT NULL,
  uses INTEGER NOT NULL,
  used TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX approvals_call ON approvals (call) WHERE revoked = '';
