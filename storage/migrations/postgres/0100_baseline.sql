-- +goose Up

CREATE TABLE claims (
  id bigint PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  text text COLLATE "C" NOT NULL,
  language text COLLATE "C" NOT NULL,
  group_id text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  live integer NOT NULL,
  total integer NOT NULL
);

CREATE TABLE claim_domains (
  claim bigint NOT NULL REFERENCES claims,
  domain text COLLATE "C" NOT NULL,
  PRIMARY KEY (claim, domain)
);

-- postings: claims of a block that have a token (postings.go); tokens: how many
-- claims have it at all.
CREATE TABLE postings (
  token text COLLATE "C" NOT NULL,
  block bigint NOT NULL,
  claims bytea NOT NULL,
  PRIMARY KEY (token, block)
);

CREATE TABLE tokens (
  token text COLLATE "C" NOT NULL PRIMARY KEY,
  claims integer NOT NULL
);

CREATE TABLE attestations (
  id bigint PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  version text COLLATE "C" NOT NULL,
  dedup bytea NOT NULL,
  skeleton bytea NOT NULL,
  iri text COLLATE "C" NOT NULL,
  iri_key bytea NOT NULL,
  validator text COLLATE "C" NOT NULL,
  claim bigint NOT NULL REFERENCES claims,
  domain text COLLATE "C" NOT NULL,
  verdict text COLLATE "C" NOT NULL,
  issued text COLLATE "C" NOT NULL,
  expires text COLLATE "C" NOT NULL,
  status integer NOT NULL,
  superseded_by bytea,
  depends integer NOT NULL,
  projection bytea NOT NULL
);
CREATE UNIQUE INDEX attestations_dedup ON attestations (dedup) WHERE superseded_by IS NULL;
CREATE INDEX attestations_skeleton ON attestations (skeleton, id);
CREATE INDEX attestations_iri ON attestations (iri_key);
-- Not partial: without statistics, Postgres would take it for whatever is not superseded.
CREATE INDEX attestations_claim ON attestations (claim, superseded_by, status, issued DESC, hash);

-- Apart, so that a search does not step over them.
CREATE TABLE originals (
  attestation bigint PRIMARY KEY REFERENCES attestations,
  original bytea NOT NULL
);

CREATE TABLE dependencies (
  attestation bigint NOT NULL REFERENCES attestations,
  position integer NOT NULL,
  target bytea NOT NULL,
  iri text COLLATE "C" NOT NULL,
  PRIMARY KEY (attestation, position)
);
CREATE INDEX dependencies_target ON dependencies (target);

CREATE TABLE events (
  hash bytea NOT NULL PRIMARY KEY,
  kind integer NOT NULL,
  target bytea NOT NULL,
  iri text COLLATE "C" NOT NULL,
  at text COLLATE "C" NOT NULL,
  projection bytea NOT NULL,
  original bytea NOT NULL
);
CREATE INDEX events_target ON events (target, at, hash);

-- Targets whose latest event is a retraction.
CREATE TABLE retractions (target bytea NOT NULL PRIMARY KEY);

CREATE TABLE feed (
  seq bigint PRIMARY KEY,
  event integer NOT NULL,
  hash bytea NOT NULL
);

CREATE TABLE peers (
  peer text COLLATE "C" NOT NULL PRIMARY KEY,
  position text COLLATE "C" NOT NULL
);

CREATE TABLE held (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  principal text COLLATE "C" NOT NULL,
  rule text COLLATE "C" NOT NULL,
  code text COLLATE "C" NOT NULL,
  call BYTEA NOT NULL,
  digest BYTEA NOT NULL,
  octets BIGINT NOT NULL,
  body BYTEA,
  at text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  decided text COLLATE "C" NOT NULL,
  decider text COLLATE "C" NOT NULL,
  -- What was found in an item, the messages that it hides, and what was asked.
  found text COLLATE "C" DEFAULT '' NOT NULL,
  hidden text COLLATE "C" DEFAULT '' NOT NULL,
  question BYTEA,
  -- Of a release by two persons.
  people BIGINT DEFAULT 1 NOT NULL,
  proposed text COLLATE "C" DEFAULT '' NOT NULL,
  proposer text COLLATE "C" DEFAULT '' NOT NULL
);
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

CREATE TABLE pins (
  server text COLLATE "C" NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL,
  record BYTEA
);

CREATE TABLE verdicts (
  digest BYTEA NOT NULL PRIMARY KEY,
  entry BYTEA NOT NULL
);

-- Records that wait to be signed and numbered, in the order of their coming.
CREATE TABLE ledger_pending (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  record bytea NOT NULL,
  -- A record that waits stands in the chain of its writer: the process that acknowledged it.
  writer text COLLATE "C" NOT NULL DEFAULT '',
  wseq bigint NOT NULL DEFAULT 0,
  prev bytea NOT NULL DEFAULT '',
  mac bytea NOT NULL DEFAULT ''
);

CREATE TABLE ledger_entries (
  idx bigint PRIMARY KEY,
  id bytea NOT NULL UNIQUE,
  at text COLLATE "C" NOT NULL,
  server text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  opening bytea NOT NULL
);
CREATE INDEX ledger_entries_at ON ledger_entries (at);
-- The keys of a log are few among its records.
CREATE INDEX ledger_entries_keys ON ledger_entries (idx) WHERE kind = 'key-installed';

-- Apart, so that a listing does not step over them.
CREATE TABLE ledger_leaves (
  idx bigint PRIMARY KEY,
  envelope bytea NOT NULL
);

-- The widest tile of each place; a narrower one is the beginning of it.
CREATE TABLE ledger_tiles (
  level integer NOT NULL,
  n bigint NOT NULL,
  hashes bytea NOT NULL,
  PRIMARY KEY (level, n)
);

-- One row: how far the log has come, and who may carry it on.
CREATE TABLE ledger_head (
  one integer PRIMARY KEY CHECK (one = 1),
  origin text COLLATE "C" NOT NULL,
  signer text COLLATE "C" NOT NULL,
  size bigint NOT NULL,
  checkpoint bytea NOT NULL
);

-- What the first so many records of the log make of every score, under each set of
-- options. The log gives the same again should a row be lost.
CREATE TABLE trust_scores (
  options text COLLATE "C" PRIMARY KEY,
  size bigint NOT NULL,
  snapshot bytea NOT NULL
);

CREATE TABLE blocks (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  text BYTEA NOT NULL,
  evidence text COLLATE "C" NOT NULL,
  severity BIGINT NOT NULL,
  since text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  lifted text COLLATE "C" NOT NULL,
  lifter text COLLATE "C" NOT NULL
);
CREATE INDEX blocks_until ON blocks (until) WHERE lifted = '';

-- The last link of each chain.
CREATE TABLE ledger_writers (
  writer text COLLATE "C" PRIMARY KEY,
  wseq bigint NOT NULL,
  tag bytea NOT NULL
);

-- The links whose records are in the log.
CREATE TABLE ledger_chain (
  writer text COLLATE "C" NOT NULL,
  wseq bigint NOT NULL,
  idx bigint NOT NULL,
  mac bytea NOT NULL,
  PRIMARY KEY (writer, wseq)
);

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

CREATE TABLE sessions (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  fence BIGINT NOT NULL,
  principal BYTEA NOT NULL,
  state BYTEA NOT NULL,
  ended BIGINT NOT NULL,
  seen text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL
);
CREATE INDEX sessions_until ON sessions (until);
CREATE INDEX sessions_principal ON sessions (principal);

CREATE TABLE conversations (
  id BYTEA NOT NULL PRIMARY KEY,
  principal BYTEA NOT NULL,
  at text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  sealed BYTEA NOT NULL
);
CREATE INDEX conversations_size ON conversations (principal, at, size);
CREATE INDEX conversations_until ON conversations (until);

-- Which binaries can work with which schema. Each later migration adds its row: oldest is the
-- schema of the oldest binary that can go on using the store.
CREATE TABLE schema_steps (
  version BIGINT NOT NULL PRIMARY KEY,
  oldest BIGINT NOT NULL
);

-- Messages to receivers of webhooks, which are deleted when they have arrived.
CREATE TABLE webhooks (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  receiver text COLLATE "C" NOT NULL,
  event text COLLATE "C" NOT NULL,
  body BYTEA,
  at text COLLATE "C" NOT NULL,
  due text COLLATE "C" NOT NULL,
  tries BIGINT NOT NULL,
  failure text COLLATE "C" NOT NULL,
  given_up text COLLATE "C" NOT NULL
);
CREATE INDEX webhooks_due ON webhooks (receiver, due) WHERE given_up = '';
CREATE INDEX webhooks_given_up ON webhooks (given_up) WHERE given_up <> '';

-- At most one row: why no record is added to the log.
CREATE TABLE ledger_stop (
  one integer PRIMARY KEY CHECK (one = 1),
  reason text COLLATE "C" NOT NULL,
  size bigint NOT NULL,
  checkpoint bytea NOT NULL,
  at text COLLATE "C" NOT NULL
);

-- At most one row: the latest checkpoint that enough witnesses have cosigned.
CREATE TABLE ledger_cosigned (
  one integer PRIMARY KEY CHECK (one = 1),
  size bigint NOT NULL,
  checkpoint bytea NOT NULL,
  at text COLLATE "C" NOT NULL
);

-- The index of the log: derived from it, and made again from it (pellucid ledger show --rebuild).
-- A group is the records of one kind, server, tool and verdict; wide = 1: of all tools together.
CREATE TABLE decision_groups (
  id bigint PRIMARY KEY,
  wide integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  verdict text COLLATE "C" NOT NULL,
  UNIQUE (wide, kind, server, tool, verdict)
);

-- at: microseconds since 1970.
CREATE TABLE decisions (
  idx bigint PRIMARY KEY,
  at bigint NOT NULL,
  grp bigint NOT NULL,
  id bytea NOT NULL,
  about bytea NOT NULL,
  reason text COLLATE "C" NOT NULL,
  codes text COLLATE "C" NOT NULL
);
CREATE INDEX decisions_at ON decisions (at, idx, grp);
CREATE INDEX decisions_group ON decisions (grp, at, idx);

-- By what a record is found: a code, a record that it is about, a content or a person.
CREATE TABLE decision_keys (
  key bigint NOT NULL,
  at bigint NOT NULL,
  idx bigint NOT NULL,
  grp bigint NOT NULL,
  PRIMARY KEY (key, at, idx) INCLUDE (grp)
);

-- How many records of a group were recorded in a span of time; code '': with any code or none.
CREATE TABLE decision_sums (
  level integer NOT NULL,
  slot bigint NOT NULL,
  code text COLLATE "C" NOT NULL,
  grp bigint NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (level, slot, code, grp)
);
-- For a few groups, as of a tool: to read the others' sums costs Postgres more than this index does.
CREATE INDEX decision_sums_group ON decision_sums (grp, level, code, slot);

-- One row: how many records of the log the index has, and under which keys.
CREATE TABLE decision_index (
  one integer PRIMARY KEY CHECK (one = 1),
  size bigint NOT NULL,
  keys text COLLATE "C" NOT NULL
);
INSERT INTO decision_index (one, size, keys) VALUES (1, 0, '');

-- What passed of calls, where the operator asks for it.
CREATE TABLE captures (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  principal BYTEA NOT NULL,
  at text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  sealed BYTEA NOT NULL
);
CREATE INDEX captures_at ON captures (at, id, size);
CREATE INDEX captures_until ON captures (until);
CREATE INDEX captures_principal ON captures (principal);

-- Who has signed in to the console. The ids are digests of secrets.
CREATE TABLE signin_links (
  id BYTEA NOT NULL PRIMARY KEY,
  person text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL
);

CREATE TABLE signins (
  id BYTEA NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  person text COLLATE "C" NOT NULL,
  scopes text COLLATE "C" NOT NULL,
  how text COLLATE "C" NOT NULL,
  began text COLLATE "C" NOT NULL,
  seen text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  -- What of the configuration has accepted a person who has signed in to the console.
  source BYTEA DEFAULT '' NOT NULL,
  -- When a session ends that is not used again.
  ends text COLLATE "C" DEFAULT '' NOT NULL
);
CREATE INDEX signins_person ON signins (person);
CREATE INDEX signins_seen ON signins (seen, id);

CREATE TABLE exceptions (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  server text COLLATE "C" NOT NULL,
  tool text COLLATE "C" NOT NULL,
  code text COLLATE "C" NOT NULL,
  digest BYTEA NOT NULL,
  since text COLLATE "C" NOT NULL,
  until text COLLATE "C" NOT NULL,
  why text COLLATE "C" NOT NULL,
  granter text COLLATE "C" NOT NULL,
  revoked text COLLATE "C" NOT NULL,
  revoker text COLLATE "C" NOT NULL,
  -- The second person of an exception, and for how long a proposed one will last, in seconds. A proposed one has no end.
  second text COLLATE "C" DEFAULT '' NOT NULL,
  keep BIGINT DEFAULT 0 NOT NULL
);

-- Which tools have created a task of a server. task is a digest of server, principal and id.
CREATE TABLE tasks (
  task BYTEA NOT NULL,
  tool BYTEA NOT NULL,
  until text COLLATE "C" NOT NULL,
  PRIMARY KEY (task, tool)
);
CREATE INDEX tasks_until ON tasks (until);

-- What only one process at a time may do, and which one does it. A replica has its address here.
CREATE TABLE leases (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  holder text COLLATE "C" NOT NULL,
  fence BIGINT NOT NULL,
  beat BIGINT NOT NULL,
  address text COLLATE "C" NOT NULL
);

INSERT INTO schema_steps (version, oldest) VALUES (100, 100);
