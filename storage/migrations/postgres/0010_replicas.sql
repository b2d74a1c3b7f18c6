-- +goose Up
-- The processes that share this database, each with its sign of life.
CREATE TABLE replicas (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  address text COLLATE "C" NOT NULL,
  install_key text COLLATE "C" NOT NULL,
  release text COLLATE "C" NOT NULL,
  rules text COLLATE "C" NOT NULL,
  started text COLLATE "C" NOT NULL,
  spent bytea NOT NULL,
  beat bigint NOT NULL
);
-- The versions of the rules, in the order in which a replica first used them.
CREATE TABLE rules_versions (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  version text COLLATE "C" NOT NULL UNIQUE
);
