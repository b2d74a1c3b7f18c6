// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

func testSealer(t *testing.T) *capture.Sealer {
	t.Helper()
	key, err := keyring.NewKey(bytes.Repeat([]byte{7}, keyring.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return &capture.Sealer{Keys: ring}
}

// TestHeldQuestion: an item has all findings; the arguments of its call only where the rule asks for them,
// sealed, and of a call that is too long their length.
func TestHeldQuestion(t *testing.T) {
	t.Parallel()
	by := testSealer(t)
	rule := &Rule{Hold: []finding.Code{finding.HiddenTag}}
	w := newWard(t, hold.Options{SealQuestion: by.Seal}, func(c *Config) { c.Tools = func(string) *Rule { return rule } })
	held := func(params string) hold.Item {
		t.Helper()
		text, _ := w.ask(params, poisoned)
		it, err := w.queue.Get(context.Background(), w.heldID(text))
		if err != nil {
			t.Fatal(err)
		}
		codes := map[finding.Code]int{}
		for _, c := range it.Found.Counts() {
			codes[c.Code] = c.N
		}
		if codes[finding.HiddenTag] != 1 || codes[finding.HiddenBidi] != 1 || it.Found.Findings[0].Place != "content/0/text" {
			t.Errorf("findings %+v", it.Found)
		}
		return it
	}
	if it := held(question); it.Question != nil {
		t.Errorf("kept without being asked for: %q", it.Question)
	}
	rule = &Rule{Hold: []finding.Code{finding.HiddenTag}, Capture: Capture{Arguments: true}}
	for params, want := range map[string]hold.Question{
		`{"name":"read","arguments":{"path": "a", "x":1.0}}`: {Arguments: `{"path": "a", "x":1.0}`, Bytes: 22},
		`{"name":"read"}`: {},
		`{"name":"read","arguments":{"path":"` + strings.Repeat("p", hold.MaxArguments) + `"}}`: {Bytes: hold.MaxArguments + 11},
	} {
		it := held(params)
		document, err := by.Open(it.Question, it.ID, "")
		if err != nil || bytes.Contains(it.Question, []byte("path")) {
			t.Fatalf("%q, %v", it.Question, err)
		}
		got, err := it.ReadQuestion(document)
		if err != nil || got.Arguments != want.Arguments || got.Bytes != want.Bytes {
			t.Errorf("%.60s: %.60q %d, %v", params, got.Arguments, got.Bytes, err)
		}
	}
}

// TestCaptures: of calls that are not held those texts are kept that the rule asks for, of the verdicts that it
// names, under the id of the decision; without a rule nothing is.
func TestCaptures(t *testing.T) {
	t.Parallel()
	by := testSealer(t)
	none, all := &Rule{}, &Rule{Capture: Capture{Arguments: true, Received: true, Delivered: true, Of: []Verdict{Passed, Changed, Withheld}}}
	for name, tt := range map[string]struct {
		rule   *Rule
		answer string
		want   string // verdict and the parts that are kept
	}{
		"not asked for":               {none, poisoned, ""},
		"changed":                     {all, poisoned, "changed arguments received delivered"},
		"passed":                      {all, harmless, "passed arguments received delivered"},
		"withheld":                    {all, `{"content":[{"type":"text","text":1}]}`, "withheld arguments received"},
		"of another verdict":          {&Rule{Capture: Capture{Received: true, Of: []Verdict{Changed}}}, harmless, ""},
		"one part":                    {&Rule{Capture: Capture{Received: true, Of: []Verdict{Changed}}}, poisoned, "changed received"},
		"refused by its schema":       {&Rule{Capture: Capture{Received: true}}, `{"content":[{"type":"text","text":1}]}`, "withheld received"},
		"content refused of an error": {&Rule{Capture: Capture{Received: true}}, `{"content":[{"type":"text","text":"t"}],"isError":true,"structuredContent":[]}`, "changed received"},
		"of no verdict":               {&Rule{Capture: Capture{Received: true}}, poisoned, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := &keptRows{}
			k := captures.New(captures.Options{Store: store, Sealer: by})
			w := newWard(t, hold.Options{}, func(c *Config) { c.Captures, c.Tools = k, func(string) *Rule { return tt.rule } })
			_, got := w.ask(question, tt.answer)
			k.Close()
			if tt.want == "" {
				if len(store.rows) != 0 {
					t.Errorf("%d captures", len(store.rows))
				}
				return
			}
			c, err := captures.Read(t.Context(), store, by, got.text("result", "_meta", frame.MetaKey, "evidence"), "", w.clock.time())
			if err != nil {
				t.Fatal(err)
			}
			kept := c.Verdict
			for _, part := range []struct {
				name, begins string
				*captures.Part
			}{{"arguments", `{"path":"a"}`, c.Arguments}, {"received", tt.answer, c.Received}, {"delivered", `{"content":`, c.Delivered}} {
				if part.Part != nil {
					kept += " " + part.name
					if !strings.HasPrefix(part.Text, part.begins) || part.Bytes != len(part.Text) {
						t.Errorf("%s: %q, %d bytes", part.name, part.Text, part.Bytes)
					}
				}
			}
			if (c.Params > len(`{"path":"a"}`)) != (c.Arguments != nil) {
				t.Errorf("the parameters have %d bytes", c.Params)
			}
			if kept != tt.want || c.Tool != "read" || c.Server != "srv" || c.Principal != "ann" {
				t.Errorf("%s, want %s: %+v", kept, tt.want, c)
			}
			if strings.Contains(c.Verdict, "changed") && c.Delivered != nil && strings.Contains(c.Delivered.Text, "udb40") {
				t.Error("what was delivered holds what was removed")
			}
		})
	}
}

// TestCaptureNeedsNothing: a call goes on though its texts cannot be kept.
func TestCaptureNeedsNothing(t *testing.T) {
	t.Parallel()
	rule := &Rule{Capture: Capture{Arguments: true, Received: true, Of: []Verdict{Passed}}}
	k := captures.New(captures.Options{Store: &keptRows{fails: true}, Sealer: &capture.Sealer{}})
	w := newWard(t, hold.Options{}, func(c *Config) { c.Captures, c.Tools = k, func(string) *Rule { return rule } })
	for range 3 {
		if text, _ := w.ask(question, harmless); !strings.Contains(text, "fine") {
			t.Errorf("%q", text)
		}
	}
	k.Close()
	if k.Lost() != 3 {
		t.Errorf("%d lost", k.Lost())
	}
}

// keptRows is a captures.Store in memory.
type keptRows struct {
	rows  []captures.Row
	fails bool
}

func (s *keptRows) PutCaptures(_ context.Context, rows []captures.Row) error {
	if s.fails {
		return errors.New("full")
	}
	s.rows = append(s.rows, rows...)
	return nil
}

func (s *keptRows) GetCapture(_ context.Context, id string, _ time.Time) (captures.Row, error) {
	for _, r := range s.rows {
		if r.ID == id {
			return r, nil
		}
	}
	return captures.Row{}, captures.ErrNotKept
}

func (s *keptRows) SweepCaptures(context.Context, time.Time, int64) error { return nil }

// TestReviewerException: what a reviewer excepts passes as it does with an exception of the file: without what was
// found, and only for what was excepted.
func TestReviewerException(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	store := &exceptionList{}
	es := hold.NewExceptions(store, hold.ExceptionOptions{Now: func() time.Time { return now }})
	w := newWard(t, hold.Options{}, func(c *Config) { c.Exceptions = es })
	text, _ := w.ask(question, poisoned)
	w.heldID(text)
	store.list = []hold.Exception{{Server: "srv", Tool: "read", Code: finding.HiddenTag, Digest: hold.Digest(digestOf([]byte(poisoned))), Until: now.Add(time.Hour)}}
	es.Forget()
	if text, _ := w.ask(question, poisoned); !strings.Contains(text, "before") || strings.Contains(text, placeholderHeld) {
		t.Errorf("excepted: %q", text)
	}
	text, _ = w.ask(question, strings.Replace(poisoned, "fore", "fore it", 1))
	w.heldID(text)
	text, _ = w.ask(`{"name":"look","arguments":{"path":"a"}}`, poisoned)
	w.heldID(text)
	now = now.Add(time.Hour)
	text, _ = w.ask(question, poisoned)
	w.heldID(text)
}

// exceptionList is a hold.ExceptionStore that has a list.
type exceptionList struct {
	hold.ExceptionStore
	list []hold.Exception
}

func (s *exceptionList) List(context.Context, time.Time, bool) ([]hold.Exception, error) {
	return s.list, nil
}

// TestWithheldLog: the log of a result that a schema refuses names a command that shows something of it.
func TestWithheldLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule *Rule
		run  string
	}{{&Rule{}, "pellucid explain "}, {&Rule{Capture: Capture{Received: true}}, "pellucid quarantine show "}} {
		k := captures.New(captures.Options{Store: &keptRows{}, Sealer: testSealer(t)})
		w := newWard(t, hold.Options{}, func(cfg *Config) { cfg.Captures, cfg.Tools = k, func(string) *Rule { return c.rule } })
		w.ask(question, `{"content":[{"type":"text","text":1}]}`)
		k.Close()
		if log := w.log.String(); !strings.Contains(log, `run="`+c.run+w.last().ID.String()) {
			t.Errorf("want %s: %s", c.run, log)
		}
	}
}
