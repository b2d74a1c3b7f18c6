// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestNewFound: whatever a result holds, what is kept of its findings is bounded, and no finding is uncounted.
func TestNewFound(t *testing.T) {
	var list []frame.Finding
	for range MaxFindings + 50 {
		list = append(list, frame.Finding{Field: "content/0/text", Code: finding.HiddenTag, Count: 2})
	}
	spans := make([]frame.Span, 100)
	for i := range spans {
		spans[i] = frame.Span{Start: i * 10, End: i*10 + 3}
	}
	list[0].Positions = spans
	f := NewFound(list, nil)
	f.Add(finding.RoleMarker, 3)
	if len(f.Findings) != MaxFindings || len(f.Findings[0].Spans) != maxSpans || f.Findings[0].Spans[maxSpans-1] != (Span{150, 993}) {
		t.Errorf("%d findings, spans %v", len(f.Findings), f.Findings[0].Spans)
	}
	if diff := cmp.Diff([]Count{{finding.HiddenTag, 2 * len(list)}, {finding.RoleMarker, 3}}, f.Counts()); diff != "" {
		t.Error(diff)
	}
}

// TestReadQuestion: a question is shown with the item whose call it is, and with no other.
func TestReadQuestion(t *testing.T) {
	id, other := NewID(), NewID()
	it := Item{ID: id, Principal: "ann", Server: "files", Tool: "read", Rule: "finding", Call: CallOf("ann", "files", "read", []byte(`{"a":1}`))}
	held := Item{ID: id, Rule: GuardCall, Call: Digest{1}}
	for name, tt := range map[string]struct {
		it       Item
		document []byte
		ok       bool
	}{
		"its own":          {it, Question{ID: id, Arguments: `{"a":1}`, Bytes: 7}.Document(), true},
		"too long":         {it, Question{ID: id, Bytes: 1 << 20}.Document(), true},
		"context":          {held, Question{ID: id, Context: []byte(`[]`)}.Document(), true},
		"other arguments":  {it, Question{ID: id, Arguments: `{"a":2}`, Bytes: 7}.Document(), false},
		"of another item":  {it, Question{ID: other, Arguments: `{"a":1}`}.Document(), false},
		"no document":      {it, []byte("x"), false},
		"nothing":          {it, nil, false},
		"another document": {it, []byte(`[1]`), false},
	} {
		if _, err := tt.it.ReadQuestion(tt.document); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrOpened) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHiddenIn: hidden messages are decoded wherever they stand, within a bound, and can be stored.
func TestHiddenIn(t *testing.T) {
	tags := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteRune(0xE0000 + r)
		}
		return b.String()
	}
	for body, want := range map[string]string{
		`{"content":[{"text":"a` + tags("do it") + `b"}]}`:   "do it",
		`{"` + tags("name") + `":["` + tags("value") + `"]}`: "name\nvalue",
		`{"content":[{"text":"plain"}]}`:                     "",
		"no JSON " + tags("do it"):                           "",
		"":                                                   "",
	} {
		if got := hiddenIn([]byte(body)); got != want {
			t.Errorf("%+q: %+q, want %+q", body, got, want)
		}
	}
	if got := hiddenIn([]byte(`["` + tags(strings.Repeat("x", 3000)) + `","` + tags("more") + `"]`)); len(got) != maxHidden {
		t.Errorf("%d bytes", len(got))
	}
	if got := hiddenIn([]byte(`["` + tags("abcd\x00efgh") + `"]`)); strings.Contains(got, "\x00") {
		t.Errorf("%+q", got)
	}
}

func FuzzHiddenIn(f *testing.F) {
	for _, s := range []string{"", `{"a":["\udb40\udc41\udb40\udc42\udb40\udc43\udb40\udc44"]}`, `["\u200b\u200c\u200b\u200c"]`, `[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := hiddenIn(body); len(got) > maxHidden+2 || strings.ContainsRune(got, 0) || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%+q", got)
		}
	})
}
