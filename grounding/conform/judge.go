// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// judge holds an answer against its shape and against what the vector expects.
func (t *trial) judge(s *subject, ans Answer) {
	a, ok := parseAnswer(ans.JSON)
	if !ok {
		t.fault("5.1", "the answer is no strict JSON object")
		return
	}
	t.shape(a)
	t.beside(ans)
	if t.vector.Field == "query" {
		text := a.root.Get("query").Text()
		if _, may := t.lookalikes(); t.policy == flag && may {
			t.flagged(a, text, false)
			return
		}
		t.text("5.1", text)
		return
	}
	own := a.entriesOf(s.did)
	switch {
	case len(own) == 0:
		t.fault("5.1", "the attestation is not in the answer")
		return
	case len(own) > 1 && t.vector.Again != "":
		t.fault("7", "a duplicate was taken for another attestation")
	case len(own) > 1:
		t.fault("5.1", "the attestation is in the answer more than once")
	}
	must, may := t.confusable()
	for _, text := range t.found(own[0].v) {
		if t.policy == flag && may {
			t.flagged(a, text, must)
			continue
		}
		t.text(t.mainClause(), text)
	}
	if t.policy != flag || !may {
		t.recorded(a, own[0].at)
	}
}

// found returns what the answer makes of the payload.
func (t *trial) found(e strictjson.Value) []string {
	f := e.Get("_untrusted_text")
	switch t.vector.Field {
	case "rationale", "qualifications":
		return []string{f.Get(t.vector.Field).Text()}
	case "verdict":
		return []string{e.Get("verdict").Text()}
	case "consensus-domain":
		return []string{e.Get("consensus_domain").Text()}
	case "quote", "uri":
		return t.quotes(f.Get("evidence"))
	}
	return nil // of a DID or a cited work nothing more is shown
}

func (t *trial) quotes(list strictjson.Value) (all []string) {
	want := min(max(t.vector.Quotes, 1), 5)
	if list.Len() != want {
		t.fault("4.1", "another number of quotes")
	}
	for e := range list.Elements() {
		q := e.Get("_untrusted_quote")
		if t.vector.Field == "uri" {
			all = append(all, q.Get("source_uri").Text())
		} else {
			all = append(all, q.Get("quote").Text())
		}
	}
	return all
}

// text compares with what the vector says of the text.
func (t *trial) text(clause, got string) {
	w := t.want
	if w.Exact && got != w.Text {
		t.fault(clause, "another text")
	}
	for _, s := range w.Contains {
		if !strings.Contains(got, s) {
			t.fault(clause, "a part of the text is missing")
		}
	}
	for _, s := range w.Absent {
		if strings.Contains(got, s) {
			t.fault(clause, "the text holds what it must not")
		}
	}
	if w.Max > 0 && (len(got) < w.Min || len(got) > w.Max) {
		t.fault("4.1", "the text is too long or too short")
	}
	if w.Max > 0 && slices.Contains(w.Meta, "truncated") && !strings.HasSuffix(got, "...") && !strings.HasSuffix(got, "\u2026") {
		t.fault("4.1", "a cut text does not end with the marker")
	}
}

// flagged is what remains to be said under policy flag of a text whose look-alikes
// stay: that the answer says so.
func (t *trial) flagged(a *answer, text string, must bool) {
	if present, _ := a.root.Get("_meta").Get("confusables_present").Bool(); must && !present {
		t.fault("4.3", "confusables_present is false")
	}
	if at, _, _ := ucd.Scan(text, 0, ucd.Hidden); at < len(text) && ucd.InRFCSet([]rune(text[at:])[0]) {
		t.fault("4.4", "the text holds what it must not")
	}
}

// clauseOf says which clause asks for a member of _meta.
var clauseOf = map[string]string{
	"truncated": "4.1", "nfkc_lossy": "4.2", "confusables_replaced": "4.3",
	"confusables_present": "4.3", "stripped_positions": "4.4",
}

// recorded compares _meta with what the vector says of it.
func (t *trial) recorded(a *answer, index int) {
	if t.want.Meta == nil {
		return
	}
	for _, member := range corpus.MetaMembers {
		wanted := slices.Contains(t.want.Meta, member)
		if member == "confusables_present" {
			t.presence(a, wanted)
			continue
		}
		n, sure := a.records(member, index)
		switch {
		case wanted && n == 0:
			t.fault(clauseOf[member], member+" does not record it")
			t.fault("6", "something was dropped or changed without a record")
		case !wanted && n > 0 && sure && member != "nfkc_lossy":
			t.fault(clauseOf[member], member+" records what did not happen")
		}
	}
}

// presence judges the flag. Where look-alikes were replaced, whether any were
// present is open to both readings.
func (t *trial) presence(a *answer, wanted bool) {
	got, _ := a.root.Get("_meta").Get("confusables_present").Bool()
	switch {
	case wanted && !got:
		t.fault("4.3", "confusables_present is false")
	case !wanted && got && len(a.entries()) == 1 && !slices.Contains(t.want.Meta, "confusables_replaced"):
		t.fault("4.3", "confusables_present is true")
	}
}

// beside judges what stands beside the envelope.
func (t *trial) beside(ans Answer) {
	for _, s := range ans.texts {
		for i := 0; i < len(s); {
			at, prop, w := ucd.Scan(s, i, ucd.Hidden)
			if at < len(s) && prop&ucd.Hidden != 0 && ucd.InRFCSet([]rune(s[at : at+w])[0]) {
				t.fault("4.4", "a text block holds a hidden character")
				break
			}
			i = at + max(w, 1)
		}
	}
	for _, uri := range ans.links {
		if !strings.HasPrefix(uri, "veritas:") && !strings.HasPrefix(uri, "https://") {
			t.fault("6", "a resource pointer that is not hardened")
		}
	}
}
