-- +goose Up

-- Attestations are the tables of pellucid-ground (grounding/store). A store that holds some is refused before this.
DROP TABLE feed;
DROP TABLE retractions;
DROP TABLE events;
DROP TABLE dependencies;
DROP TABLE originals;
DROP TABLE attestations;
DROP TABLE tokens;
DROP TABLE postings;
DROP TABLE claim_domains;
DROP TABLE claims;

INSERT INTO schema_steps (version, oldest) VALUES (106, 106);
