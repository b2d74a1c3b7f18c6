// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A mutant is an adapter with one thing wrong.
type mutant struct {
	name   string
	clause string // at least one MUST vector of this clause must fail
	change func(*second)
	alter  func([]byte) []byte // of the reference's answers, instead
}

func swap(old, new string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(new)) }
}

func ignoring(codes ...finding.Code) func(*second) {
	return func(d *second) { d.ignore = func(c finding.Code) bool { return slices.Contains(codes, c) } }
}

func without(clause string) func(*second) { return func(d *second) { d.without[clause] = true } }

func ordered(clauses string) func(*second) {
	return func(d *second) { d.order, d.once = strings.Fields(clauses), true }
}

var mutants = []mutant{
	// Each step of clause 4 switched off.
	{name: "no cap", clause: "4.1", change: without("4.1")},
	{name: "no limit of quotes", clause: "4.1", change: func(d *second) { d.quotes = 1000 }},
	{name: "no NFKC", clause: "4.2", change: without("4.2")},
	{name: "no confusables", clause: "4.3", change: without("4.3")},
	{name: "no strip", clause: "4.4", change: without("4.4")},
	{name: "no URI hardening", clause: "4.5", change: func(d *second) {
		d.ignore = func(c finding.Code) bool { return strings.HasPrefix(string(c), "uri-") }
		d.harden = func(s string) string { return s }
	}},
	{name: "no markup strip", clause: "4.6", change: without("4.6")},

	// … or done otherwise.
	{name: "NFC for NFKC", clause: "4.2", change: func(d *second) { d.nfkc = norm.NFC }},
	{name: "NFKD for NFKC", clause: "4.2", change: func(d *second) { d.nfkc = norm.NFKD }},
	{name: "confusables before NFKC", clause: "4.2", change: ordered("4.3 4.2 4.4 4.6")},
	{name: "strip before NFKC", clause: "4.4", change: ordered("4.4 4.2 4.3 4.6")},
	{name: "markup before strip", clause: "4.6", change: ordered("4.6 4.2 4.3 4.4")},
	{name: "no schemes refused", clause: "4.5", change: ignoring(finding.URIScheme)},
	{name: "no syntax refused", clause: "4.5", change: ignoring(finding.URISyntax)},
	{name: "no length refused", clause: "4.5", change: ignoring(finding.URILength)},
	{name: "no hidden characters refused", clause: "4.5", change: ignoring(finding.URIHidden)},
	{name: "the host is not shown", clause: "4.5", change: func(d *second) { d.harden = func(s string) string { return s } }},

	// Clause 3.
	{name: "no typing", clause: "3", change: ignoring(finding.TypedTag, finding.TypedLink, finding.TypedFence,
		finding.TypedJSON, finding.TypedEncoded, finding.TypedEscapes, finding.TypedDataURI)},
	{name: "tags accepted", clause: "3", change: ignoring(finding.TypedTag)},
	{name: "links accepted", clause: "3", change: ignoring(finding.TypedLink)},
	{name: "fences accepted", clause: "3", change: ignoring(finding.TypedFence)},
	{name: "JSON accepted", clause: "3", change: ignoring(finding.TypedJSON)},
	{name: "encoded payloads accepted", clause: "3", change: ignoring(finding.TypedEncoded)},
	{name: "escapes accepted", clause: "3", change: ignoring(finding.TypedEscapes)},
	{name: "data URIs accepted", clause: "3", change: ignoring(finding.TypedDataURI)},
	{name: "any verdict", clause: "3", change: ignoring(finding.UnknownVerdict)},
	{name: "any domain", clause: "3", change: ignoring(finding.UnknownDomain, finding.Misshapen)},
	{name: "any type", clause: "3", change: ignoring(finding.Misshapen)},
	{name: "lenient JSON", clause: "3", change: ignoring(finding.NotJSON)},

	// Clauses 5, 6 and 7.
	{name: "no frame", clause: "5.2", alter: swap("_untrusted_text", "text")},
	{name: "no frame of quotes", clause: "5.2", alter: swap(`"_untrusted_quote":`, `"quoted":`)},
	{name: "no warning", clause: "5.2", alter: swap(warning, "")},
	{name: "another type", clause: "5.2", alter: swap(frameType, "Text")},
	{name: "empty text left out", clause: "5.2", alter: swap(`"rationale":"",`, "")},
	{name: "text repeated outside", clause: "5.2", alter: func(b []byte) []byte {
		_, rest, _ := bytes.Cut(b, []byte(`"rationale":`))
		text, _, _ := bytes.Cut(rest, []byte(`,"qualifications"`))
		return append(append(append([]byte(`{"summary":`), text...), ','), b[1:]...)
	}},
	{name: "no version", clause: "5.1", alter: swap(`"@version":"0.1",`, "")},
	{name: "no sanitation version", clause: "5.1", alter: swap(`"sanitation_version":"0.1",`, "")},
	{name: "no summary", clause: "5.1", alter: swap(`"verdict_summary"`, `"summary"`)},
	{name: "no truncated", clause: "5.1", alter: swap(`"truncated"`, `"cut"`)},
	{name: "a link added", clause: "6", alter: swap(`"scientific-default","verdict_summary"`, `"<a href='x'>scientific-default</a>","verdict_summary"`)},
	{name: "silent", clause: "6", change: func(d *second) { d.silent = true }},
	{name: "duplicates taken", clause: "7", change: func(d *second) { d.twice = true }},
}

// TestMutants breaks an adapter in one way at a time. The corpus must see it: a
// vector of that clause must fail; the shape of clauses 5 to 7 is judged with every
// vector.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			var a Adapter
			if m.alter != nil {
				r := newReference(t, attest.Policy{})
				r.alter = m.alter
				a = r
			} else {
				d := newSecond()
				m.change(d)
				a = d
			}
			rep := run(t, &Runner{Adapter: a})
			if rep.Conforms {
				t.Fatal("still conforms")
			}
			n := 0
			for _, v := range rep.Vectors {
				own := slices.Contains(v.Clauses, m.clause) || m.clause[0] > '4' && v.faulty([]string{m.clause})
				if v.Status == "fail" && v.Level == "MUST" && own {
					n++
				}
			}
			if n == 0 {
				t.Errorf("no MUST vector of clause %s fails", m.clause)
			}
			t.Logf("%d vectors of clause %s, %d in all", n, m.clause, rep.Failed)
		})
	}
}
