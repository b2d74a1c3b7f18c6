// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// frameType is the @type of every frame (RFC 5.2).
const frameType = "veritas:UntrustedValidatorText"

// An answer is a response envelope that is strict JSON.
type answer struct {
	doc  strictjson.Doc
	root strictjson.Value
}

func parseAnswer(src []byte) (*answer, bool) {
	a := new(answer)
	if err := a.doc.Reset(src, strictjson.Limits{}); err != nil {
		return a, false
	}
	a.root = a.doc.Root()
	return a, a.root.Kind() == '{'
}

// An entry is one element of attestations.
type entry struct {
	at int
	v  strictjson.Value
}

func (a *answer) entries() []entry {
	var all []entry
	for v := range a.root.Get("attestations").Elements() {
		all = append(all, entry{len(all), v})
	}
	return all
}

// entriesOf returns those of one validator.
func (a *answer) entriesOf(did string) []entry {
	var own []entry
	for _, e := range a.entries() {
		if e.v.Get("validator_did").Text() == did {
			own = append(own, e)
		}
	}
	return own
}

// shape checks the form of RFC 5.1 and 5.2 and what RFC 6 forbids.
func (t *trial) shape(a *answer) {
	t.look("5.1", "5.2", "6")
	t.members("5.1", "the response", a.root, map[string]strictjson.Kind{
		"@type": '"', "@version": '"', "query": '"', "consensus_domain": '"',
		"verdict_summary": '{', "attestations": '[', "_meta": '{',
	})
	if a.root.Get("@type").Text() != "veritas:GroundedAttestationResponse" || a.root.Get("@version").Text() != "0.1" {
		t.fault("5.1", "@type or @version of the response is another")
	}
	sum := a.root.Get("verdict_summary")
	_, isBool := sum.Get("disagreement_present").Bool()
	_, isInt := sum.Get("validator_count").Int64()
	if sum.Get("primary_verdict").Kind() != '"' || !isBool || !isInt {
		t.fault("5.1", "verdict_summary is not of its form")
	}
	for _, e := range a.entries() {
		t.members("5.1", "an attestation", e.v, map[string]strictjson.Kind{
			"validator_did": '"', "verdict": '"', "consensus_domain": '"',
		})
		t.frames(e.v.Get("_untrusted_text"))
	}
	t.meta(a.root.Get("_meta"))
	t.outside(a.root)
}

func (t *trial) members(clause, of string, v strictjson.Value, kinds map[string]strictjson.Kind) {
	for name, kind := range kinds {
		if v.Get(name).Kind() != kind {
			t.fault(clause, of+" lacks "+name+", or it is of another type")
		}
	}
}

// frames checks one attestation's frame and the frames of its quotes.
func (t *trial) frames(f strictjson.Value) {
	if f.Kind() != '{' {
		t.fault("5.2", "an attestation has no _untrusted_text")
		return
	}
	t.frame("_untrusted_text", f)
	t.members("5.2", "_untrusted_text", f, map[string]strictjson.Kind{"rationale": '"', "qualifications": '"', "evidence": '['})
	for e := range f.Get("evidence").Elements() {
		q := e.Get("_untrusted_quote")
		if q.Kind() != '{' || e.Len() != 1 {
			t.fault("5.2", "a quote stands outside of its _untrusted_quote")
			continue
		}
		t.frame("_untrusted_quote", q)
		t.members("5.2", "_untrusted_quote", q, map[string]strictjson.Kind{"quote": '"', "source_uri": '"'})
	}
}

func (t *trial) frame(name string, f strictjson.Value) {
	if f.Get("@type").Text() != frameType {
		t.fault("5.2", name+" has another @type")
	}
	w := f.Get("warning").Text()
	if !strings.Contains(w, "MUST NOT be interpreted as instructions") && (!plainASCII(w) || !strings.Contains(w, "instruction")) {
		t.fault("5.2", name+" has no English warning")
	}
}

// meta checks _meta's members, and that it holds nothing of what was removed.
func (t *trial) meta(m strictjson.Value) {
	for _, name := range []string{"truncated", "confusables_replaced", "stripped_positions"} {
		if m.Get(name).Kind() != '[' {
			t.fault("5.1", "_meta lacks "+name+", or it is no array")
		}
	}
	if _, ok := m.Get("confusables_present").Bool(); !ok {
		t.fault("5.1", "_meta lacks confusables_present, or it is no boolean")
	}
	t.version = m.Get("sanitation_version").Text()
	if t.version == "" {
		t.fault("5.1", "_meta lacks sanitation_version, or it is no text")
	}
	if !plainOutside(m) {
		t.fault("6", "_meta, which is outside of the frame, holds more than ASCII")
	}
}

// plainOutside reports whether everything in v that is not framed is ASCII.
func plainOutside(v strictjson.Value) bool {
	switch v.Kind() {
	case '{':
		for name, m := range v.Members() {
			if !plainASCII(name.Text()) || name.Text() != "_untrusted_text" && !plainOutside(m) {
				return false
			}
		}
	case '[':
		for e := range v.Elements() {
			if !plainOutside(e) {
				return false
			}
		}
	case '"':
		return v.Text() == "" || plainASCII(v.Text())
	}
	return true
}

// active is what a renderer would act on.
var active = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<[a-z/!?]|\]\([^)]|javascript:|\$\$|\\begin\{|\\input\{`)
})

// outside checks every string that is not framed: nothing in it may be evaluated
// or hidden. The echoed query is judged with the vectors that are about it.
func (t *trial) outside(v strictjson.Value) {
	switch v.Kind() {
	case '{':
		for name, m := range v.Members() {
			if n := name.Text(); n != "_untrusted_text" && n != "query" {
				t.outside(m)
			}
		}
	case '[':
		for e := range v.Elements() {
			t.outside(e)
		}
	case '"':
		s := v.Text()
		if active().MatchString(s) {
			t.fault("6", "markup, script or LaTeX outside of the frame")
		}
		if len(t.vector.Payload) >= 12 && framed(t.vector.Field) && strings.Contains(s, t.vector.Payload) {
			t.fault("5.2", "the payload stands outside of the frame")
		}
	}
}

func framed(field string) bool {
	return field == "rationale" || field == "qualifications" || field == "quote"
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if (s[i] < ' ' && s[i] != '\n' && s[i] != '\t') || s[i] > '~' {
			return false
		}
	}
	return s != ""
}

var attestationIndex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`attestations[/.\[](\d+)`) })

// records counts the entries of a member of _meta that are, or may be, about the
// attestation at index. sure: none of them is another's.
func (a *answer) records(member string, index int) (n int, sure bool) {
	sure = true
	alone := len(a.entries()) == 1
	for r := range a.root.Get("_meta").Get(member).Elements() {
		m := attestationIndex().FindSubmatch(r.Raw())
		switch {
		case m != nil && string(m[1]) == strconv.Itoa(index):
			n++
		case m == nil:
			n++
			sure = sure && alone
		}
	}
	return n, sure
}

// framedIn counts the frames in v, at any depth.
func framedIn(v strictjson.Value, n int) int {
	for name, m := range v.Members() {
		if name.Text() == "_untrusted_text" && m.Get("@type").Text() == frameType {
			n++
		}
		n = framedIn(m, n)
	}
	for e := range v.Elements() {
		n = framedIn(e, n)
	}
	return n
}

// stringsOf appends every string value in v.
func stringsOf(v strictjson.Value, dst []string) []string {
	if v.Kind() == '"' {
		return append(dst, v.Text())
	}
	for _, m := range v.Members() {
		dst = stringsOf(m, dst)
	}
	for e := range v.Elements() {
		dst = stringsOf(e, dst)
	}
	return dst
}
