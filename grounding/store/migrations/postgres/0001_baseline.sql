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
