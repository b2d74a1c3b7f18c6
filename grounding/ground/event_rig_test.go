// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

const source = "https://example.org/report"

// newEvent signs an event in the name of key's did:key.
func newEvent(kind ground.CascadeKind, target, reason string, at time.Time, key attest.Key) ([]byte, error) {
	return ground.SignCascade(kind, target, reason, at, key, attest.SignOptions{Created: at})
}

// event makes a signed event.
func event(t testing.TB, kind ground.CascadeKind, target, by string, at time.Time) []byte {
	t.Helper()
	body, err := newEvent(kind, target, "It was wrong.", at, validator(t, by))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// edited signs an event after edit has changed its members.
func edited(t testing.TB, by string, edit func(doc map[string]any)) []byte {
	t.Helper()
	doc := map[string]any{
		"@context": ground.CascadeContext, "@type": "veritas:CascadeEvent", "id": "urn:test:event", "kind": "RETRACTED",
		"target": source, "at": "2025-12-31T23:59:59.5Z", "issuer_did": validator(t, by).DID(), "reason": "It was wrong.",
	}
	edit(doc)
	src, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if doc["proof"] != nil {
		return src
	}
	body, err := attest.Sign(src, validator(t, by), attest.SignOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func send(t testing.TB, a *ground.Adapter, body []byte) (ground.Receipt, ground.Change) {
	t.Helper()
	r, c, err := a.IngestEvent(t.Context(), "test", body)
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

func statusOf(t testing.TB, s ground.Store, hash string) consensus.Status {
	t.Helper()
	h, ok := attest.ParseHash(hash)
	if !ok {
		t.Fatalf("%q is no hash", hash)
	}
	st, err := s.ByHash(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	return st.Status
}
