// SPDX-License-Identifier: Apache-2.0

// Package attest parses, verifies, signs and projects attestations: the strict envelope,
// typing, the canonical hash, the proof, DID keys and the sanitised projection.
//
// An attestation is a JSON-LD document of a bundled context (docs/spec/attestation.md):
//
//	{"@context": "https://veritas-protocol.example/attestation/v0.3",
//	 "@type": "veritas:Attestation", "id": "urn:uuid:…", "canonicalisation_version": "0.3",
//	 "claim": {"text": "…"}, "claim_hash": "sha256:…", "validator_did": "did:key:z6Mk…",
//	 "verdict": "SUPPORTED", "consensus_domain": "scientific-default", "rationale": "…",
//	 "evidence": [{"quote": "…", "uri": "https://…"}], "issued": "2026-04-25T00:00:00Z",
//	 "proof": {"type": "DataIntegrityProof", "cryptosuite": "eddsa-jcs-2022", …}}
//
// An attestation that is accepted passes, in this order: Parse (size, strict JSON, JSON-LD safe
// mode, typing, claim hash), Verify (proof), Relate (duplicate), Project (text
// that a model may be shown). Nothing here reads a clock, a file or the network.
//
// It is part of the public API:
//
//	a, err := attest.Parse(doc, attest.Options{})
//	err = a.Verify(ctx, now, attest.DIDKey{})
package attest

import (
	"time"

	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Version names how an envelope is hashed.
type Version string

// The versions of canonicalisation. An envelope that names none is of 0.2.
const (
	V02 Version = "0.2" // RFC-FACTCHECK §4.1: JCS, SHA-256
	V03 Version = "0.3" // grounding RFC §7: NFKC, confusables, strip, JCS, SHA-256
)

// A Claim is what an attestation is about. Every member but Text may be empty.
type Claim struct {
	Text     string // third-party text
	Language string // BCP 47
	Topic    string // "technology:software"
	Type     string // "FACT", "OPINION" or "PROJECTION"
	GroupID  string // URN
}

// Evidence is a quote with its source; either may be absent.
type Evidence struct {
	Quote string // third-party text
	URI   href.URI
	Role  string // a word
}

// A CitedWork is a work that the validator names.
type CitedWork struct {
	URI   href.URI
	Title string // third-party text
}

// A Statement is what an attestation says, whatever its spelling.
type Statement struct {
	ID             string
	Version        Version
	Claim          Claim
	Validator      string // DID
	Verdict        Verdict
	Domain         string // consensus domain: as written, or what Options.Domain made of it
	Rationale      string // third-party text
	Qualifications string // third-party text
	Evidence       []Evidence
	CitedWorks     []CitedWork
	Issued         time.Time
	Expires        time.Time // zero: never
	DependsOn      []string  // IRIs
}

// An Attestation is an envelope that Parse has accepted. Its texts are as the
// validator wrote them: what may be shown is their Projection. It must not be
// changed.
type Attestation struct {
	Statement

	// ClaimHash is the canonical hash of the claim, recomputed.
	ClaimHash Hash

	// Untyped is what typing would have refused the attestation for, had
	// DangerouslyIngestUntyped not let it through; nil otherwise.
	Untyped *Refusal

	src    []byte
	doc    strictjson.Doc // of src
	digest Hash           // of its JCS without the proof: what is signed, and hashed by 0.2
}

// Source returns the bytes that Parse was given. They must not be changed.
func (a *Attestation) Source() []byte { return a.src }

// Signed reports whether there is a proof at all, good or bad.
func (a *Attestation) Signed() bool { return a.doc.Root().Get("proof").Exists() }

// AppendJSON appends the envelope in the spelling of Context, with the claim
// hash and without a proof: what Sign takes. It is the inverse of Parse, but does
// not check what Parse checks.
func (s *Statement) AppendJSON(dst []byte) []byte {
	w := writer{dst: append(dst, '{')}
	w.text("@context", Context)
	w.text("@type", envelopeType)
	w.text("id", s.ID)
	w.optional("canonicalisation_version", string(s.Version))
	w.name("claim")
	w.dst = s.Claim.appendJSON(w.dst)
	w.text("claim_hash", s.Claim.Hash(s.Version).String())
	w.text("validator_did", s.Validator)
	w.text("verdict", string(s.Verdict))
	w.text("consensus_domain", s.Domain)
	w.text("rationale", s.Rationale)
	w.text("qualifications", s.Qualifications)
	w.list("evidence", len(s.Evidence), func(i int) {
		e := &s.Evidence[i]
		w.optional("quote", e.Quote)
		w.optional("uri", e.URI.String())
		w.optional("role", e.Role)
	})
	w.list("cited_works", len(s.CitedWorks), func(i int) {
		w.text("uri", s.CitedWorks[i].URI.String())
		w.optional("title", s.CitedWorks[i].Title)
	})
	w.text("issued", s.Issued.UTC().Format(time.RFC3339Nano))
	if !s.Expires.IsZero() {
		w.text("expires", s.Expires.UTC().Format(time.RFC3339Nano))
	}
	if len(s.DependsOn) > 0 {
		w.name("depends_on")
		w.dst = strictjson.AppendStrings(w.dst, s.DependsOn)
	}
	return append(w.dst, '}')
}

// appendJSON writes what a claim hash is taken of: the members that are there, in
// the spelling of Context and the form of JCS, whose order this is.
func (c *Claim) appendJSON(dst []byte) []byte {
	w := writer{dst: append(dst, '{')}
	w.optional("group_id", c.GroupID)
	w.optional("language", c.Language)
	w.text("text", c.Text)
	w.optional("topic", c.Topic)
	w.optional("type", c.Type)
	return append(w.dst, '}')
}

// A writer appends the members of an object.
type writer struct{ dst []byte }

func (w *writer) name(name string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(strictjson.AppendQuote(w.dst, name), ':')
}

func (w *writer) text(name, s string) {
	w.name(name)
	w.dst = strictjson.AppendQuote(w.dst, s)
}

func (w *writer) optional(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

// list writes an array of n objects, none if n is 0.
func (w *writer) list(name string, n int, members func(i int)) {
	if n == 0 {
		return
	}
	w.name(name)
	w.dst = append(w.dst, '[')
	for i := range n {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, '{')
		members(i)
		w.dst = append(w.dst, '}')
	}
	w.dst = append(w.dst, ']')
}
