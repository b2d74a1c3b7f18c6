// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func sealer(t *testing.T, fill byte) *capture.Sealer {
	t.Helper()
	key, err := keyring.NewKey(bytes.Repeat([]byte{fill}, keyring.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return &capture.Sealer{Keys: ring}
}

// TestAsk: a question is shown, or a sentence says why it is not there and how to have it.
func TestAsk(t *testing.T) {
	by := sealer(t, 1)
	id, err := capture.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	name, err := capture.RecipientOf(id)
	if err != nil {
		t.Fatal(err)
	}
	to, err := capture.ParseRecipients([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	reviewers := &capture.Sealer{Reviewers: func() *capture.Recipients { return to }}
	const args = `{"path":"a\u202eb"}`
	item := func(change func(*hold.Item)) *hold.Item {
		it := heldItem()
		it.Call = hold.CallOf(it.Principal, it.Server, it.Tool, []byte(args))
		change(&it)
		return &it
	}
	sealed := func(s *capture.Sealer, arguments string) func(*hold.Item) {
		return func(it *hold.Item) {
			it.Question, err = s.Seal(hold.Question{ID: it.ID, Arguments: arguments, Bytes: len(arguments)}.Document(), it.ID)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		it       *hold.Item
		identity string
		want     string // a part of what is shown
	}{
		"kept":             {item(sealed(by, args)), "", "the question: arguments of the call\n\npath\n  a\u2039U+202E"},
		"of a reviewer":    {item(sealed(reviewers, args)), id, "the question: arguments of the call\n\npath\n  a\u2039U+202E"},
		"without the key":  {item(sealed(reviewers, args)), "", "the question is encrypted to its reviewers"},
		"another machine":  {item(sealed(sealer(t, 2), args)), "", "the question is sealed with a key that this machine does not have"},
		"other arguments":  {item(sealed(reviewers, `{"path":"b"}`)), id, "the question is damaged"},
		"never kept":       {item(func(*hold.Item) {}), "", "the question is not kept; to keep it, set capture: [arguments]"},
		"a guard's":        {item(func(it *hold.Item) { it.Rule = hold.GuardCall }), "", "the question is not kept; to keep it, set guard: {context: true}"},
		"its time is over": {item(func(it *hold.Item) { it.State = hold.Denied }), "", "the question is gone: its time is over"},
		"a held call":      {item(func(it *hold.Item) { it.Rule = hold.PolicyCall + "r" }), "", "content/0/text"},
	} {
		a := Ask(tt.it, by, tt.identity)
		var b strings.Builder
		if err := Show(&b, terminal.Palette{}, tt.it, a); err != nil || !strings.Contains(b.String(), tt.want) || strings.Contains(b.String(), "\u202e") {
			t.Errorf("%s: %q, %v", name, b.String(), err)
		}
		if shown := NewShown(tt.it, a); (shown.Question == nil) != (name == "a held call") {
			t.Errorf("%s: %+v", name, shown.Question)
		}
	}
}

// TestFindings: what a shared database says was found is shown as codes and places, or as other.
func TestFindings(t *testing.T) {
	it := heldItem()
	it.Found = hold.Found{
		Findings: []hold.Finding{{Place: "content/0/text", Code: finding.HiddenTag, Count: 2, Spans: []hold.Span{{Start: 1, End: 5}, {Start: 6, End: 7}, {Start: 8, End: 9}, {Start: 10, End: 11}}},
			{Place: "\x1b[2J", Code: "no\ncode", Count: -1}},
		More:   []hold.Count{{Code: finding.RoleMarker, N: 7}},
		Scores: []hold.Score{{Name: "local", Mode: "enforce", P: 0.75, Outcome: "hold", Code: "x"}, {Name: "a\u202eb", Mode: "\x1b", Outcome: "pass", Reason: "timeout"}},
	}
	var b strings.Builder
	if err := Show(&b, terminal.Palette{}, &it, Asked{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  error  hidden-tag  2 at content/0/text, bytes 1 to 5, 6 to 7, 8 to 9, and more\n", "  other  other  1 at other\n", "role-marker  7 at other\n",
		"  local  0.750  enforce  hold  x\n", "  other  0.000  other  pass  not judged: timeout\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q does not contain %q", b.String(), want)
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Errorf("%q", b.String())
	}
	b.Reset()
	if err := WriteItems(&b, []hold.Item{it}); err != nil || !strings.Contains(b.String(), "  hidden-tag +2  ") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestShowCapture: the texts of a call are shown as those of an item are, and what is not there with how to have it.
func TestShowCapture(t *testing.T) {
	c := &captures.Capture{ID: heldItem().ID, Time: at, Until: at.Add(time.Hour), Server: "files", Tool: "\x1b", Principal: "ann", Verdict: "no\nverdict",
		Received: &captures.Part{Bytes: 3, Text: "a\u202eb"}, Delivered: &captures.Part{Bytes: 2 << 20}}
	var b strings.Builder
	if err := ShowCapture(&b, terminal.Palette{}, c); err != nil || strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Errorf("%q, %v", b.String(), err)
	}
	for _, want := range []string{"verdict    other; it was not held\n", "tool       files/?\n", "arguments: not kept; capture: [arguments] keeps it\n", "\n  a\u2039U+202E",
		"delivered: not kept, for it has 2097152 bytes\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q does not contain %q", b.String(), want)
		}
	}
}
