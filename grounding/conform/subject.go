// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// issued is when every attestation of the corpus was issued and signed.
var issued = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// A subject is a vector as an attestation.
type subject struct {
	did           string
	query         string // finds it: the claim's text, or the payload itself
	first, second []byte // signed; second is nil for most
	hash          string // canonical, of first; "" without one
}

// attestations returns the signed attestations of a vector, in the order in which
// they are to be fed: none for a query, two for a duplicate. The signing keys are
// made of the vectors' names, so everybody knows them.
func attestations(v *corpus.Vector) [][]byte {
	if v.Field == "query" {
		return nil
	}
	s := newSubject(v)
	if s.second == nil {
		return [][]byte{s.first}
	}
	return [][]byte{s.first, s.second}
}

// Vectors returns the vectors of these families; all of them where none is named.
func Vectors(families ...string) ([]corpus.Vector, error) {
	all, err := corpus.All()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(v corpus.Vector) bool {
		return len(families) > 0 && !slices.Contains(families, v.Family)
	}), nil
}

// Dump writes the attestations of the vectors that are meant for a scope, one a line: what
// an adapter is to be loaded with.
func Dump(w io.Writer, vectors []corpus.Vector, scope corpus.Scope) error {
	out := bufio.NewWriter(w)
	for i := range vectors {
		if !vectors[i].In(scope) {
			continue
		}
		for _, a := range attestations(&vectors[i]) {
			out.Write(a)
			out.WriteByte('\n')
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("conform: write: %w", err)
	}
	return nil
}

func newSubject(v *corpus.Vector) *subject {
	seed := sha256.Sum256([]byte("pellucid conformance corpus\n" + v.ID()))
	key, err := attest.GenerateKey(bytes.NewReader(seed[:]))
	if err != nil {
		panic("conform: make key: " + err.Error()) // 32 bytes are what it takes
	}
	e := envelope{v: v, token: hex.EncodeToString(seed[:8]), did: key.DID()}
	s := &subject{did: e.did, query: e.claim()}
	if v.Field == "query" {
		s.query = v.Payload
		return s
	}
	s.first = sign(e.json(v.Payload), key)
	if h, err := attest.CanonicalHash(s.first, attest.V03); err == nil {
		s.hash = h.String()
	}
	if v.Again != "" {
		s.second = sign(e.json(v.Again), key)
	}
	return s
}

// sign leaves unsigned what is no JSON object: it is to be refused before its
// proof is looked at.
func sign(doc []byte, key attest.Key) []byte {
	signed, err := attest.Sign(doc, key, attest.SignOptions{Created: issued})
	if err != nil {
		return doc
	}
	return signed
}

// An envelope writes an attestation whose payload may be anything, so it does not
// pass through attest's own types.
type envelope struct {
	v          *corpus.Vector
	token, did string
}

func (e *envelope) claim() string { return "Statement " + e.token + " of the conformance corpus." }

func (e *envelope) json(payload string) []byte {
	claim := attest.Claim{Text: e.claim()}
	value := func(field, other string) string {
		switch {
		case e.v.Field != field:
			return quote(other)
		case e.v.JSON:
			return payload
		}
		return quote(payload)
	}
	evidence := `{"quote":` + value("quote", "It was so.") + `,"uri":` + value("uri", "https://example.org/source") + `}`
	evidence = strings.Repeat(evidence+",", max(e.v.Quotes, 1))
	var b strings.Builder
	for _, m := range []string{
		`{"@context":`, quote(attest.Context),
		`,"@type":"veritas:Attestation","id":"urn:veritas:`, e.token,
		`","canonicalisation_version":"0.3","claim":{"text":`, quote(claim.Text),
		`},"claim_hash":`, quote(claim.Hash(attest.V03).String()),
		`,"validator_did":`, value("validator-did", e.did),
		`,"verdict":`, value("verdict", "SUPPORTED"),
		`,"consensus_domain":`, value("consensus-domain", "scientific-default"),
		`,"rationale":`, value("rationale", "Checked by hand."),
		`,"qualifications":`, value("qualifications", "None are known."),
		`,"evidence":[`, strings.TrimSuffix(evidence, ","),
		`],"cited_works":[{"uri":`, value("cited-uri", "https://example.org/work"),
		`,"title":"A work"}],"issued":`, quote(issued.Format(time.RFC3339)), `}`,
	} {
		b.WriteString(m)
	}
	return []byte(b.String())
}

// quote returns s as a JSON string; what is ill-formed stays so.
func quote(s string) string {
	if !utf8.ValidString(s) {
		return `"` + s + `"`
	}
	return string(strictjson.AppendQuote(nil, s))
}
