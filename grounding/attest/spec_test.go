// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"context"
	"os"
	"strings"
	"testing"
)

// The worked example of the specification is what it says it is.
func TestSpecExample(t *testing.T) {
	b, err := os.ReadFile("../../docs/spec/attestation.md")
	if err != nil {
		t.Fatal(err)
	}
	spec := string(b)
	_, rest, _ := strings.Cut(spec, "```json\n")
	src, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example")
	}
	a := mustParse(t, []byte(src))
	if err := a.Verify(context.Background(), issued, DIDKey{}); err != nil {
		t.Error(err)
	}
	key := a.DedupKey()
	for _, h := range []Hash{a.Hash(), key.Text, key.Skeleton} {
		if !strings.Contains(spec, "`"+h.String()+"`") {
			t.Errorf("the page lacks %s", h)
		}
	}
}

// Every refusal of this package stands in the specification, and so does every
// member of an envelope.
func TestSpecIsComplete(t *testing.T) {
	b, err := os.ReadFile("../../docs/spec/attestation.md")
	if err != nil {
		t.Fatal(err)
	}
	spec := string(b)
	var names []string
	for _, r := range rules {
		names = append(names, string(r.code))
	}
	var walk func(s *scope)
	walk = func(s *scope) {
		for _, tm := range s.terms {
			name := tm.name
			if tm.list {
				name += "[]"
			}
			names = append(names, name)
			if tm.in != nil {
				walk(tm.in)
			}
		}
	}
	walk(contexts()[Context])
	walk(contexts()[FactcheckContext])
	for _, v := range builtin {
		names = append(names, string(v))
	}
	for _, name := range names {
		if !strings.Contains(spec, "`"+name+"`") {
			t.Errorf("docs/spec/attestation.md does not mention %s", name)
		}
	}
}
