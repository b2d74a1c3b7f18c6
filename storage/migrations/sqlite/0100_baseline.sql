-- +goose Up

CREATE TABLE claims (
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  text TEXT NOT NULL,
  language TEXT NOT NULL,
  group_id TEXT NOT NULL,
  topic TEXT NOT NULL,
  live INTEGER NOT NULL,
  total INTEGER NOT NULL
);

CREATE TABLE claim_domains (
  claim INTEGER NOT NULL REFERENCES claims,
  domain TEXT NOT NULL,
  PRIMARY KEY (claim, domain)
) WITHOUT ROWID;

-- postings: claims of a block that have a token (postings.go); tokens: how many
-- claims have it at all.
CREATE TABLE postings (
  token TEXT NOT NULL,
  block INTEGER NOT NULL,
  claims BLOB NOT NULL,
  PRIMARY KEY (token, block)
) WITHOUT ROWID;

CREATE TABLE tokens (
  token TEXT NOT NULL PRIMARY KEY,
  claims INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE attestations (
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  version TEXT NOT NULL,
  dedup BLOB NOT NULL,
  skeleton BLOB NOT NULL,
  iri TEXT NOT NULL,
  iri_key BLOB NOT NULL,
  validator TEXT NOT NULL,
  claim INTEGER NOT NULL REFERENCES claims,
  domain TEXT NOT NULL,
  verdict TEXT NOT NULL,
  issued TEXT NOT NULL,
  expires TEXT NOT NULL,
  status INTEGER NOT NULL,
  superseded_by BLOB,
  depends INTEGER NOT NULL,
  projection BLOB NOT NULL
);
CREATE UNIQUE INDEX attestations_dedup ON attestations (dedup) WHERE superseded_by IS NULL;
CREATE INDEX attestations_skeleton ON attestations (skeleton);
CREATE INDEX attestations_iri ON attestations (iri_key);
CREATE INDEX attestations_claim ON attestations (claim, superseded_by, status, issued DESC, hash);

-- Apart, so that a search does not step over them.
CREATE TABLE originals (
  attestation INTEGER PRIMARY KEY REFERENCES attestations,
  original BLOB NOT NULL
);

CREATE TABLE dependencies (
  attestation INTEGER NOT NULL REFERENCES attestations,
  position INTEGER NOT NULL,
  target BLOB NOT NULL,
  iri TEXT NOT NULL,
  PRIMARY KEY (attestation, position)
) WITHOUT ROWID;
CREATE INDEX dependencies_target ON dependencies (target);

CREATE TABLE events (
  hash BLOB NOT NULL PRIMARY KEY,
  kind INTEGER NOT NULL,
  target BLOB NOT NULL,
  iri TEXT NOT NULL,
  at TEXT NOT NULL,
  projection BLOB NOT NULL,
  original BLOB NOT NULL
);
CREATE INDEX events_target ON events (target, at, hash);

-- Targets whose latest event is a retraction.
CREATE TABLE retractions (target BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE feed (
  seq INTEGER PRIMARY KEY,
  event INTEGER NOT NULL,
  hash BLOB NOT NULL
);

CREATE TABLE peers (
  peer TEXT NOT NULL PRIMARY KEY,
  position TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE held (
  id TEXT NOT NULL PRIMARY KEY,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  principal TEXT NOT NULL,
  rule TEXT NOT NULL,
  code TEXT NOT NULL,
  call BLOB NOT NULL,
  digest BLOB NOT NULL,
  octets INTEGER NOT NULL,
  body BLOB,
  at TEXT NOT NULL,
  until TEXT NOT NULL,
  state TEXT NOT NULL,
  decided TEXT NOT NULL,
  decider TEXT NOT NULL,
  -- What was found in an item, the messages that it hides, and what was asked.
  found TEXT DEFAULT '' NOT NULL,
  hidden TEXT DEFAULT '' NOT NULL,
  question BLOB,
  -- Of a release by two persons.
  people INTEGER DEFAULT 1 NOT NULL,
  proposed TEXT DEFAULT '' NOT NULL,
  proposer TEXT DEFAULT '' NOT NULL
) WITHOUT ROWID;
CREATE INDEX held_at ON held (at);
CREATE INDEX held_state ON held (state, server);
CREATE INDEX held_call ON held (call, at) WHERE state = 'released';
-- A page of the queue is read from an index in its order, however many items there are.
CREATE INDEX held_page ON held (at, id);
CREATE INDEX held_page_state ON held (state, at, id);
CREATE INDEX held_page_server ON held (server, at, id);
CREATE INDEX held_page_tool ON held (tool, at, id);
CREATE INDEX held_page_state_server ON held (state, server, at, id);
CREATE INDEX held_until ON held (until) WHERE state IN ('held', 'released');
-- What a list is filtered by, in its order; and all of it together, so that groups are counted and items are
-- looked through without their rows.
CREATE INDEX held_page_state_tool ON held (state, tool, at, id);
CREATE INDEX held_page_state_code ON held (state, code, at, id);
CREATE INDEX held_page_state_server_code ON held (state, server, code, at, id);
CREATE INDEX held_page_state_rule ON held (state, rule, at, id);
CREATE INDEX held_page_state_principal ON held (state, principal, at, id);
CREATE INDEX held_page_state_digest ON held (state, digest, at, id);
CREATE INDEX held_facts ON held (state, at, id, until, server, tool, code, rule, principal, digest);
-- All of an item but its body and its question: a list reads no row of the table, which is as long as the body.
CREATE INDEX held_rows ON held (state, at, id, until, server, tool, principal, rule, code, call, digest, octets, decided, decider, found, hidden, people, proposed, proposer);
-- How many items a server has in the queue, without their rows.
CREATE INDEX held_room ON held (server, until, state) WHERE state IN ('held', 'released');

CREATE TABLE pins (
  server TEXT NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL,
  record BLOB
) WITHOUT ROWID;

CREATE TABLE verdicts (
  digest BLOB NOT NULL PRIMARY KEY,
  entry BLOB NOT NULL
) WITHOUT ROWID;

-- Records that wait to be signed and numbered, in the order of their coming.
-- AUTOINCREMENT: whoever has read a number must never remove another record by it.
CREATE TABLE ledger_pending (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  record BLOB NOT NULL,
  -- A record that waits stands in the chain of its writer: the process that acknowledged it.
  writer TEXT NOT NULL DEFAULT '',
  wseq INTEGER NOT NULL DEFAULT 0,
  prev BLOB NOT NULL DEFAULT x'',
  mac BLOB NOT NULL DEFAULT x''
);

CREATE TABLE ledger_entries (
  idx INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  at TEXT NOT NULL,
  server TEXT NOT NULL,
  kind TEXT NOT NULL,
  opening BLOB NOT NULL
);
CREATE INDEX ledger_entries_at ON ledger_entries (at);
-- The keys of a log are few among its records.
CREATE INDEX ledger_entries_keys ON ledger_entries (idx) WHERE kind = 'key-installed';

-- Apart, so that a listing does not step over them.
CREATE TABLE ledger_leaves (
  idx INTEGER PRIMARY KEY,
  envelope BLOB NOT NULL
);

-- The widest tile of each place; a narrower one is the beginning of it.
CREATE TABLE ledger_tiles (
  level INTEGER NOT NULL,
  n INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (level, n)
);

-- One row: how far the log has come, and who may carry it on.
CREATE TABLE ledger_head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  origin TEXT NOT NULL,
  signer TEXT NOT NULL,
  size INTEGER NOT NULL,
  checkpoint BLOB NOT NULL
);

-- What the first so many records of the log make of every score, under each set of
-- options. The log gives the same again should a row be lost.
CREATE TABLE trust_scores (
  options TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  snapshot BLOB NOT NULL
);

CREATE TABLE blocks (
  id TEXT NOT NULL PRIMARY KEY,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  text BLOB NOT NULL,
  evidence TEXT NOT NULL,
  severity INTEGER NOT NULL,
  since TEXT NOT NULL,
  until TEXT NOT NULL,
  lifted TEXT NOT NULL,
  lifter TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX blocks_until ON blocks (until) WHERE lifted = '';

-- The last link of each chain.
CREATE TABLE ledger_writers (
  writer TEXT NOT NULL PRIMARY KEY,
  wseq INTEGER NOT NULL,
  tag BLOB NOT NULL
) WITHOUT ROWID;

-- The links whose records are in the log.
CREATE TABLE ledger_chain (
  writer TEXT NOT NULL,
  wseq INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  mac BLOB NOT NULL,
  PRIMARY KEY (writer, wseq)
) WITHOUT ROWID;

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

CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY,
  server TEXT NOT NULL,
  owner TEXT NOT NULL,
  fence INTEGER NOT NULL,
  principal BLOB NOT NULL,
  state BLOB NOT NULL,
  ended INTEGER NOT NULL,
  seen TEXT NOT NULL,
  until TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_until ON sessions (until);
CREATE INDEX sessions_principal ON sessions (principal);

CREATE TABLE conversations (
  id BLOB NOT NULL PRIMARY KEY,
  principal BLOB NOT NULL,
  at TEXT NOT NULL,
  until TEXT NOT NULL,
  size INTEGER NOT NULL,
  sealed BLOB NOT NULL
);
CREATE INDEX conversations_size ON conversations (principal, at, size);
CREATE INDEX conversations_until ON conversations (until);

-- Which binaries can work with which schema. Each later migration adds its row: oldest is the
-- schema of the oldest binary that can go on using the store.
CREATE TABLE schema_steps (
  version INTEGER NOT NULL PRIMARY KEY,
  oldest INTEGER NOT NULL
) WITHOUT ROWID;

-- Messages to receivers of webhooks, which are deleted when they have arrived.
CREATE TABLE webhooks (
  id TEXT NOT NULL PRIMARY KEY,
  receiver TEXT NOT NULL,
  event TEXT NOT NULL,
  body BLOB,
  at TEXT NOT NULL,
  due TEXT NOT NULL,
  tries INTEGER NOT NULL,
  failure TEXT NOT NULL,
  given_up TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX webhooks_due ON webhooks (receiver, due) WHERE given_up = '';
CREATE INDEX webhooks_given_up ON webhooks (given_up) WHERE given_up <> '';

-- At most one row: why no record is added to the log.
CREATE TABLE ledger_stop (
  one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  reason TEXT NOT NULL,
  size INTEGER NOT NULL,
  checkpoint BLOB NOT NULL,
  at TEXT NOT NULL
);

-- At most one row: the latest checkpoint that enough witnesses have cosigned.
CREATE TABLE ledger_cosigned (
  one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  size INTEGER NOT NULL,
  checkpoint BLOB NOT NULL,
  at TEXT NOT NULL
);

-- The index of the log: derived from it, and made again from it (pellucid ledger show --rebuild).
-- A group is the records of one kind, server, tool and verdict; wide = 1: of all tools together.
CREATE TABLE decision_groups (
  id INTEGER PRIMARY KEY,
  wide INTEGER NOT NULL,
  kind TEXT NOT NULL,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  verdict TEXT NOT NULL,
  UNIQUE (wide, kind, server, tool, verdict)
);

-- at: microseconds since 1970.
CREATE TABLE decisions (
  idx INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  grp INTEGER NOT NULL,
  id BLOB NOT NULL,
  about BLOB NOT NULL,
  reason TEXT NOT NULL,
  codes TEXT NOT NULL
);
CREATE INDEX decisions_at ON decisions (at, idx, grp);
CREATE INDEX decisions_group ON decisions (grp, at, idx);

-- By what a record is found: a code, a record that it is about, a content or a person.
CREATE TABLE decision_keys (
  key INTEGER NOT NULL,
  at INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  grp INTEGER NOT NULL,
  PRIMARY KEY (key, at, idx)
) WITHOUT ROWID;

-- How many records of a group were recorded in a span of time; code '': with any code or none.
CREATE TABLE decision_sums (
  level INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  code TEXT NOT NULL,
  grp INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (level, slot, code, grp)
) WITHOUT ROWID;

-- One row: how many records of the log the index has, and under which keys.
CREATE TABLE decision_index (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  size INTEGER NOT NULL,
  keys TEXT NOT NULL
);
INSERT INTO decision_index (one, size, keys) VALUES (1, 0, '');

-- What passed of calls, where the operator asks for it.
CREATE TABLE captures (
  id TEXT NOT NULL PRIMARY KEY,
  principal BLOB NOT NULL,
  at TEXT NOT NULL,
  until TEXT NOT NULL,
  size INTEGER NOT NULL,
  sealed BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX captures_at ON captures (at, id, size);
CREATE INDEX captures_until ON captures (until);
CREATE INDEX captures_principal ON captures (principal);

-- Who has signed in to the console. The ids are digests of secrets.
CREATE TABLE signin_links (
  id BLOB NOT NULL PRIMARY KEY,
  person TEXT NOT NULL,
  until TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE signins (
  id BLOB NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  person TEXT NOT NULL,
  scopes TEXT NOT NULL,
  how TEXT NOT NULL,
  began TEXT NOT NULL,
  seen TEXT NOT NULL,
  until TEXT NOT NULL,
  -- What of the configuration has accepted a person who has signed in to the console.
  source BLOB DEFAULT x'' NOT NULL,
  -- When a session ends that is not used again.
  ends TEXT DEFAULT '' NOT NULL
) WITHOUT ROWID;
CREATE INDEX signins_person ON signins (person);
CREATE INDEX signins_seen ON signins (seen, id);

CREATE TABLE exceptions (
  id TEXT NOT NULL PRIMARY KEY,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  code TEXT NOT NULL,
  digest BLOB NOT NULL,
  since TEXT NOT NULL,
  until TEXT NOT NULL,
  why TEXT NOT NULL,
  granter TEXT NOT NULL,
  revoked TEXT NOT NULL,
  revoker TEXT NOT NULL,
  -- The second person of an exception, and for how long a proposed one will last, in seconds. A proposed one has no end.
  second TEXT DEFAULT '' NOT NULL,
  keep INTEGER DEFAULT 0 NOT NULL
) WITHOUT ROWID;

-- Which tools have created a task of a server. task is a digest of server, principal and id.
CREATE TABLE tasks (
  task BLOB NOT NULL,
  tool BLOB NOT NULL,
  until TEXT NOT NULL,
  PRIMARY KEY (task, tool)
) WITHOUT ROWID;
CREATE INDEX tasks_until ON tasks (until);

-- What only one process at a time may do, and which one does it. A replica has its address here.
CREATE TABLE leases (
  name TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  fence INTEGER NOT NULL,
  beat INTEGER NOT NULL,
  address TEXT NOT NULL
);

INSERT INTO schema_steps (version, oldest) VALUES (100, 100);
