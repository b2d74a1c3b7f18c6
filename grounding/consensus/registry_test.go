// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// names is what Resolve says of a name, by the built-in registry.
var names = []struct {
	in   string
	want Domain
	err  error
}{
	{in: "scientific-default", want: "scientific-default"},
	{in: "scientific-default-cochrane-grade", want: "scientific-default-cochrane-grade"},
	{in: "cpml:ScientificConsensus/CochraneGRADE", want: "scientific-default-cochrane-grade"},
	{in: "cpml:ScientificConsensus", want: "scientific-default"},
	{in: "historical-academic-default", want: "historical-academic-default"},
	{in: "legal-jurisdiction-eu", want: "legal-jurisdiction-eu"},
	{in: "journalism-default", want: "journalism-default"},
	{in: "religious-traditional", want: "religious-traditional"},

	{in: "scientific-other", err: domainUnregistered},
	{in: "scientific", err: domainUnregistered},
	{in: "scientific-default-cochrane", err: domainUnregistered},
	{in: "cpml:ScientificConsensus/Other", err: domainUnregistered},
	{in: "cpml:scientific-default", err: domainMalformed},

	// Case.
	{in: "Scientific-Default", err: domainLookalike},
	{in: "SCIENTIFIC-DEFAULT", err: domainLookalike},
	{in: "cpml:scientificconsensus/cochranegrade", err: domainLookalike},
	{in: "CPML:ScientificConsensus", err: domainLookalike},
	// ASCII that looks like other ASCII.
	{in: "scientific-defau1t", err: domainLookalike},
	{in: "scientific-defauIt", err: domainLookalike},
	{in: "joumalism-default", err: domainLookalike},
	// Other scripts, compatibility forms, hidden characters, odd hyphens.
	{in: "\u0455cientific-default", err: domainLookalike},
	{in: "\u0405cientific-default", err: domainLookalike},
	{in: "scientific\u2010default", err: domainLookalike},
	{in: "\uff53cientific-default", err: domainLookalike},
	{in: "scientific-default\u200b", err: domainLookalike},
	{in: "scienti\ufb01c-default", err: domainLookalike},
	{in: "scientific-\u202edefault", err: domainLookalike},
	{in: "scientific-default\U000e0041", err: domainLookalike},

	{in: "", err: domainMalformed},
	{in: " scientific-default", err: domainMalformed},
	{in: "scientific--default", err: domainMalformed},
	{in: "-scientific", err: domainMalformed},
	{in: "9lives", err: domainMalformed},
	{in: "cpml:", err: domainMalformed},
	{in: "cpml:A//B", err: domainMalformed},
	{in: "urn:a", err: domainMalformed},
	{in: "\xff\xfe", err: domainMalformed},
	{in: strings.Repeat("a", 129), err: domainMalformed},
}

func TestResolve(t *testing.T) {
	var none *Registry
	for _, tt := range names {
		if got, err := none.Resolve(tt.in); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Resolve(%+q) = %q, %v; want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, tt := range names {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d, err := builtin().Resolve(name)
		if (err == nil) != (builtin().names[name] != "") || (err == nil) != (d != "") {
			t.Fatalf("Resolve(%+q) = %q, %v", name, d, err)
		}
	})
}

func TestBuiltinRegistry(t *testing.T) {
	var none *Registry
	if none.Version() != "0.1" {
		t.Errorf("version %q", none.Version())
	}
	if got := len(none.Domains()); got != 6 {
		t.Errorf("%d domains", got)
	}
	none.Domains()[0].aliases[0] = "changed"
	if none.Domains()[0].aliases[0] == "changed" {
		t.Error("a caller can change the built-in registry")
	}
}

func TestParseRegistry(t *testing.T) {
	r, err := ParseRegistry([]byte(`{"version":"2026.1","extends":"builtin","domains":[{"id":"medical-eu","aliases":["cpml:Medical/EU"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Domain{"medical-eu": "medical-eu", "cpml:Medical/EU": "medical-eu", "journalism-default": "journalism-default"} {
		if got, err := r.Resolve(name); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	r, err = ParseRegistry([]byte(`{"version":"1","domains":[{"id":"medical-eu"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve("journalism-default"); !errors.Is(err, domainUnregistered) {
		t.Errorf("a registry that does not extend the built-in one has its domains: %v", err)
	}
}

// registries are documents that are refused, each with all that is wrong.
var registries = []struct{ src, want string }{
	{`[]`, `wrong-type@`},
	{`{}`, `member-missing@/version member-missing@/domains`},
	{`{"version":"1","domains":[]}`, `empty@/domains`},
	{`{"version":"1","domains":{}}`, `wrong-type@/domains`},
	{`{"version":"a b","domains":[{"id":"a"}],"extra":1}`, `malformed@/version member-unknown@/#2`},
	{`{"version":"1","extends":"other","domains":[{"id":"a"}]}`, `value-not-allowed@/extends`},
	{`{"version":"1","domains":[{"id":"A"},{"id":"a","aliases":["x",1,"cpml:x"]},{"aliases":[]}]}`,
		`domain-malformed@/domains/0/id domain-malformed@/domains/1/aliases/0 wrong-type@/domains/1/aliases/1 domain-malformed@/domains/1/aliases/2 member-missing@/domains/2/id empty@/domains/2/aliases`},
	{`{"version":"1","domains":[{"id":"ab"},{"id":"ab"}]}`, `duplicate@/domains/1/id`},
	{`{"version":"1","domains":[{"id":"corn"},{"id":"com"}]}`, `domain-lookalike@/domains/1/id`},
	{`{"version":"1","domains":[{"id":"ab","aliases":["cpml:A"]},{"id":"cd","aliases":["cpml:A","cpml:Bl","cpml:B1"]}]}`,
		`duplicate@/domains/1/aliases/0 domain-lookalike@/domains/1/aliases/2`},
	{`{"version":"1","extends":"builtin","domains":[{"id":"journalism-default"}]}`, `duplicate@/domains/0/id`},
	{`{"version":"1","domains":[{"id":7}]}`, `wrong-type@/domains/0/id`},
	{`{"version":"1","domains":[{"id":"` + strings.Repeat("a", 129) + `"}]}`, `too-long@/domains/0/id`},
}

func TestParseRegistryRefuses(t *testing.T) {
	for _, tt := range registries {
		r, err := ParseRegistry([]byte(tt.src))
		if got := spelled(err); got != tt.want || r != nil {
			t.Errorf("%s\n got %s\nwant %s", tt.src, got, tt.want)
		}
	}
	var syntax *strictjson.SyntaxError
	if _, err := ParseRegistry([]byte(`{"version":"1","version":"1"}`)); !errors.As(err, &syntax) || syntax.Code != strictjson.CodeDuplicate {
		t.Errorf("a duplicate member: %v", err)
	}
}

// spelled is how the tables write problems.
func spelled(err error) string {
	var p problems
	if !errors.As(err, &p) {
		return fmt.Sprint(err)
	}
	var out []string
	for _, x := range p {
		out = append(out, string(x.code)+"@"+x.pointer)
	}
	return strings.Join(out, " ")
}

func FuzzParseRegistry(f *testing.F) {
	for _, tt := range registries {
		f.Add([]byte(tt.src))
	}
	f.Add(builtinSource)
	f.Add([]byte(`{"version":"2026.1","extends":"builtin","domains":[{"id":"medical-eu","aliases":["cpml:Medical/EU"]}]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := ParseRegistry(src)
		if err != nil {
			checkError(t, err)
			return
		}
		for _, e := range r.Domains() {
			for _, name := range append(e.aliases, string(e.ID)) {
				if d, err := r.Resolve(name); d != e.ID || err != nil {
					t.Fatalf("%q: %q, %v", name, d, err)
				}
			}
		}
	})
}

// checkError: an error is short printable ASCII and holds nothing but constants.
func checkError(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			t.Fatalf("an error holds byte %#02x", text[i])
		}
	}
	var p problems
	if errors.As(err, &p) && (len(p) == 0 || len(p) > maxProblems+1 || len(text) > 32<<10) {
		t.Fatalf("%d problems in %d bytes", len(p), len(text))
	}
}
