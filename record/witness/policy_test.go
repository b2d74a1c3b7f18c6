// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/ledger/ledgertest"
	"github.com/pellucid-mcp/pellucid/record/witness"
)

// TestPolicy: groups of groups, and what a policy file must not say.
func TestPolicy(t *testing.T) {
	a, b, c := newCosigner(t, "w.example/a"), newCosigner(t, "w.example/b"), newCosigner(t, "w.example/c")
	log := ledgertest.New(t, "log.example/a", 1).Signer.Key().String()
	head := "# a comment\n\nlog " + log + " https://log.example/\n\twitness A " + a.String() + " https://a.example/w\nwitness B " + b.String() + "\nwitness C " + c.String() + "\n"
	by := func(ws ...cosigner) (out []ledger.Cosignature) {
		for _, w := range ws {
			out = append(out, ledger.Cosignature{Witness: w.Witness})
		}
		return out
	}
	p, err := witness.ParsePolicy([]byte(head + "group G any A B\ngroup H all G C\nquorum H\n"))
	if err != nil || len(p.Logs) != 1 || len(p.Witnesses) != 3 || p.Witnesses[0].URL != "https://a.example/w" {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, tt := range []struct {
		by   []ledger.Cosignature
		want bool
	}{{by(), false}, {by(a), false}, {by(c), false}, {by(a, b), false}, {by(a, c), true}, {by(b, c), true}, {by(c, c), false}} {
		if got := p.Satisfied(tt.by); got != tt.want {
			t.Errorf("%d cosignatures: %v", len(tt.by), got)
		}
	}
	for rest, enough := range map[string]bool{"quorum none\n": true, "quorum A\n": false, "group G 2 A B C\nquorum G": false} {
		p, err := witness.ParsePolicy([]byte(head + rest))
		if err != nil || p.Satisfied(nil) != enough || !p.Satisfied(by(a, b)) {
			t.Errorf("%q: %v", rest, err)
		}
	}
	for _, bad := range []string{
		"", head, head + "quorum A\nquorum A\n", head + "quorum X\n", head + "group G 0 A\nquorum G\n", head + "group G 3 A B\nquorum G\n", head + "group G 01 A\nquorum G\n",
		head + "group G any A A\nquorum G\n", head + "group G any A\ngroup H any A\nquorum H\n", head + "group G any none\nquorum G\n", head + "group A any B\nquorum A\n",
		head + "group G any G\nquorum G\n", head + "witness D " + a.String() + "\nquorum A\n", head + "log " + log + "\nquorum A\n", head + "witness none " + newCosigner(t, "x").String() + "\nquorum A\n",
		head + "witness D nonsense\nquorum A\n", head + "witness D " + log + "\nquorum A\n", head + "quorum A B\n", head + "\x00\nquorum A\n", head + "quorum A\r\n", head + "unknown\nquorum A\n",
		head + "witness D " + newCosigner(t, "x").String() + " http://example.com/\nquorum A\n", strings.Repeat("#", 65<<10),
	} {
		if p, err := witness.ParsePolicy([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", strings.TrimPrefix(bad, head), p)
		} else if strings.Contains(err.Error(), "nonsense") || strings.Contains(err.Error(), "unknown") {
			t.Errorf("the error quotes the file: %v", err)
		}
	}
	if _, err := witness.NewPolicy([]witness.Witness{{Key: a.Witness}}, 2); err == nil {
		t.Error("two of one")
	}
}

func FuzzParsePolicy(f *testing.F) {
	w := newCosigner(f, "w.example/a")
	f.Add([]byte("witness A " + w.String() + " https://a.example/\ngroup G any A\nquorum G\n"))
	f.Add([]byte("log x\nquorum none\n"))
	f.Add([]byte(" group G 1 A\n\n#\nquorum none"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := witness.ParsePolicy(b)
		if err != nil {
			return
		}
		var all []ledger.Cosignature
		for _, k := range p.Keys() {
			all = append(all, ledger.Cosignature{Witness: k})
		}
		if !p.Satisfied(all) {
			t.Error("all witnesses are not enough")
		}
	})
}

func FuzzReadCosignatures(f *testing.F) {
	log := ledgertest.New(f, "log.example/a", 1)
	cp := log.Grow(f, 3, "a")
	w := newCosigner(f, "w.example/a")
	f.Add([]byte(w.line(cp)))
	f.Add([]byte("\u2014 x y\n" + w.line(cp)))
	f.Add([]byte("\u2014 w.example/a \n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		line, err := witness.ReadCosignatures(answer, cp, w.Witness)
		if err != nil {
			return
		}
		c, err := ledger.OpenCheckpoint(append(append([]byte{}, cp...), line...), []*ledger.Key{log.Signer.Key()}, []*ledger.Witness{w.Witness})
		if err != nil || len(c.Cosigned) != 1 {
			t.Errorf("%q: %+v, %v", line, c, err)
		}
	})
}
