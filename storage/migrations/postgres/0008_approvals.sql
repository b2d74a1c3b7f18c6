-- +goose Up
CREATE TABLE approvals (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  call BYTEA NOT NULL,
  principal text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  item text COLLATE "C" NOT NULL,
  since text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  approver text COLLATE "C" NOT NULL,
  revoked text COLLATE "C" NOT NULL,
  revoker text COLLATE "C" NOT NULL,
  uses BIGINT NOT NULL,
  used text COLLATE "C" NOT NULL
);
CREATE INDEX approvals_call ON approvals (call) WHERE revoked = '';
