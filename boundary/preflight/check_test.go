// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/pinfile"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// dumpOf is a saved surface with these tools, names and descriptions in turn.
func dumpOf(t testing.TB, tools ...string) []byte {
	t.Helper()
	var list []string
	for i := 0; i < len(tools); i += 2 {
		name, err := json.Marshal(tools[i])
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(tools[i+1])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf(`{"name":%s,"description":%s,"inputSchema":{"type":"object"}}`, name, text))
	}
	return []byte(`{"initialize":{"serverInfo":{"name":"s","version":"1"}},"tools/list":[{"tools":[` + strings.Join(list, ",") + `]}]}`)
}

// files is a store of pins in a state directory of the test's own.
func files(t *testing.T) *pinfile.Store {
	t.Helper()
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	s, err := pinfile.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check runs a checker over targets.
func check(t *testing.T, c *Checker, targets ...*Target) *Report {
	t.Helper()
	r, err := c.Run(t.Context(), targets)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text is the report for a person.
func text(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b, terminal.Palette{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRun: each end of a check has its conclusion, and the worst of all servers is that of
// the report.
func TestRun(t *testing.T) {
	honest, hidden := dumpOf(t, "now", "Says the time."), dumpOf(t, "now", "Says\u200b\u200b the time.")
	dead := func(context.Context) (wire.Conn, error) { return nil, errors.New("no such program") }
	for _, x := range []struct {
		name     string
		checker  Checker
		targets  []*Target
		worst    string
		each     string
		text     []string
		notTexts string
	}{
		{"clean", Checker{}, []*Target{{Name: "a", File: "dir/f\u202e.json", dump: honest}}, "clean", "clean",
			[]string{"a  dir/f" + terminal.Inline("\u202e") + ".json\n  no hidden text; words not judged 2 items, ", "\n  fingerprint   sha256:", "\n  not inspected the meaning of the words"}, "server,"},
		{"hidden text", Checker{}, []*Target{{Name: "a", dump: hidden}}, "rejected", "rejected", []string{"\n  hidden text   tool now /description, bytes 4 to 7: hidden-zero-width\n"}, "decide"},
		{"refused", Checker{}, []*Target{{Name: "a", dump: []byte("{")}}, "rejected", "rejected", []string{"  rejected      surface: "}, "fingerprint"},
		{"a name is missing", Checker{}, []*Target{{dump: honest}}, "clean", "clean", []string{"surface\n  no hidden text; words not judged "}, "pinned"},
		{"not reached", Checker{Timeout: time.Minute}, []*Target{{Name: "a", dial: dead}}, "unreachable", "unreachable", []string{"a\n  unreachable   no such program\n"}, "fingerprint"},
		{"cannot be dialled", Checker{}, []*Target{{Name: "a", problem: errors.New("its entry is \u202e")}}, "unreachable", "unreachable", []string{"  unreachable   its entry is " + terminal.Inline("\u202e")}, "fingerprint"},
		{"the worst", Checker{Timeout: time.Minute}, []*Target{{Name: "a", dump: honest}, {Name: "b", dial: dead}, {Name: "c", dump: hidden}}, "rejected", "clean unreachable rejected",
			[]string{"\n3 servers: 1 no hidden text; words not judged, 1 rejected, 1 unreachable\n"}, "shadow"},
		{"disabled", Checker{}, []*Target{{Name: "a", dump: honest, disabled: true}}, "not-checked", "skipped", []string{"  skipped       the file has disabled it; --server NAME checks it all the same\n"}, "items"},
		{"disabled and named", Checker{Disabled: true}, []*Target{{Name: "a", dump: honest, disabled: true}}, "clean", "clean", []string{"  no hidden text; words not judged "}, "disabled"},
		{"narrow", Checker{Rules: surface.Rules{Narrow: true}}, []*Target{{Name: "a", dump: dumpOf(t, "now", "a\u17b4b")}}, "clean", "clean", []string{"  no hidden text; words not judged ", "\n  changed       tool now: 1 part, "}, "\n  hidden text"},
		{"one server has the tool of another", Checker{}, []*Target{{Name: "a", dump: honest}, {Name: "b", dump: honest}}, "clean", "clean clean",
			[]string{"names that two servers use\n  ", "has the same name as \"now\" of"}, "rejected"},
		{"nothing", Checker{}, nil, "not-checked", "", nil, "server"},
	} {
		began := 0
		x.checker.Begin = func(*Target) { began++ }
		r := check(t, &x.checker, x.targets...)
		var each []string
		for _, s := range r.Servers {
			each = append(each, s.Conclusion)
		}
		if r.Conclusion != x.worst || strings.Join(each, " ") != x.each || began != len(x.targets) {
			t.Errorf("%s: %s of %q, want %s of %s; %d began", x.name, r.Conclusion, each, x.worst, x.each, began)
		}
		got := text(t, r)
		rest := got
		for _, part := range x.text {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%s: no %q in\n%s", x.name, part, got)
			}
			rest = after
		}
		if strings.Contains(got, x.notTexts) || strings.ContainsAny(got, "\u202e\u200b\u17b4") {
			t.Errorf("%s: %q, or a raw character, in\n%s", x.name, x.notTexts, got)
		}
	}
}

// TestRunInterrupted: an interrupted run has no report.
func TestRunInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	dial := func(context.Context) (wire.Conn, error) { stop(); return nil, errors.New("away") }
	if r, err := (&Checker{Timeout: time.Minute}).Run(ctx, []*Target{{Name: "a", dial: dial}}); !errors.Is(err, errInterrupted) || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRunSlow: a server that does not say all in time cannot be reached.
func TestRunSlow(t *testing.T) {
	dial := func(ctx context.Context) (wire.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	r := check(t, &Checker{Timeout: time.Millisecond}, &Target{Name: "a", dial: dial})
	if s := r.Servers[0]; s.Conclusion != Unreachable || s.Why != "it has not said all within 1ms" {
		t.Errorf("%+v", s)
	}
}

// TestRunPins: what a server said first is pinned, what differs waits, and NoPin remembers
// nothing.
func TestRunPins(t *testing.T) {
	store := files(t)
	first, other := dumpOf(t, "now", "Says the time."), dumpOf(t, "now", "Says the hour.")
	for _, x := range []struct {
		name string
		no   bool
		dump []byte
		want string // conclusion, and whether it was pinned
		text string
	}{
		{"nothing is remembered", true, first, "clean false", ""},
		{"first", false, first, "clean true", "\n  pinned        now: what differs from this later waits for you\n"},
		{"again", false, first, "clean false", ""},
		{"changed, and not remembered", true, other, "changed false", "\n    - Says the time.\n    + Says the hour.\n"},
		{"as before", false, first, "clean false", ""},
		{"changed", false, other, "changed false", "\n  decide        pellucid pins diff " + terminal.ShellWord("the clock") + ", then approve or block\n"},
	} {
		r := check(t, &Checker{Pins: store, NoPin: x.no}, &Target{Name: "the clock", dump: x.dump})
		s := r.Servers[0]
		if got := fmt.Sprint(s.Conclusion, " ", s.Pinned); got != x.want || s.Pin != "the clock" {
			t.Errorf("%s: %s, pinned as %q; want %s", x.name, got, s.Pin, x.want)
		}
		if got := text(t, r); !strings.Contains(got, x.text) {
			t.Errorf("%s: no %q in\n%s", x.name, x.text, got)
		}
	}
	pin, err := surface.NewPins(store, nil).Get(t.Context(), "the clock")
	if err != nil || len(pin.Changes()) == 0 {
		t.Errorf("nothing waits: %+v, %v", pin, err)
	}
}

// TestRunPinNamed: a saved surface is compared with the one pin of its name.
func TestRunPinNamed(t *testing.T) {
	store := files(t)
	s, err := surface.ParseDump(dumpOf(t, "now", "Says the time."), surface.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]string{{"stdio:1", "one"}, {"stdio:2", "two"}, {"stdio:3", "two"}} {
		if err := surface.NewPins(store, nil).Named(x[1]).Pin(t.Context(), x[0], x[0], s); err != nil {
			t.Fatal(err)
		}
	}
	changed := dumpOf(t, "now", "Says the hour.")
	if s := check(t, &Checker{Pins: store}, &Target{Name: "one", dump: changed}).Servers[0]; s.Pin != "stdio:1" || s.Conclusion != string(surface.Differs) {
		t.Errorf("%+v", s)
	}
	_, err = (&Checker{Pins: store}).Run(t.Context(), []*Target{{Name: "two", dump: changed}})
	if want := "check: several servers are called two: say which by its identity: stdio:2, stdio:3"; !errors.Is(err, ErrUsage) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestRunSave: a surface that could be read is saved, and a failure to save it ends the run.
func TestRunSave(t *testing.T) {
	var saved []byte
	c := &Checker{Save: func(s *surface.Surface) error { saved = s.AppendDump(nil); return nil }}
	check(t, c, &Target{Name: "a", dump: dumpOf(t, "now", "Says the time.")})
	if s, err := surface.ParseDump(saved, surface.Limits{}); err != nil || len(s.Items()) != 2 {
		t.Errorf("%s: %v", saved, err)
	}
	full := errors.New("disk full")
	c.Save = func(*surface.Surface) error { return full }
	if _, err := c.Run(t.Context(), []*Target{{Name: "a", dump: saved}}); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	check(t, c, &Target{Name: "a", dump: []byte("{")}) // there is nothing to save
}

// TestRunReview: what a model says of the words is shown with its lines indented, and stands Its budget and its cache are the reviewer's.
func TestRunReview(t *testing.T) {
	fake := llmtest.Start(t, llmtest.Always(llmtest.Reply{Text: "tool now: (1)\n  clean         all of it [x](https://e.example)\x1b[2J\u202e"}), "")
	model, err := reviewer.New(rules.NewReview("openai-chat", fake.URL, "m", rules.Value{}), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	r := check(t, &Checker{Review: model.Review}, &Target{Name: "a", dump: dumpOf(t, "now", "Says the time.")})
	got := text(t, r)
	if !strings.Contains(got, "rejected      the reviewer did not answer with a bare OK: surface: rejected: review-flagged (part 1)\n") ||
		!strings.Contains(got, "reviewer      tool now: (1)\n        clean") || strings.ContainsAny(got, "\x1b\u202e") || strings.Contains(got, "pass 2") {
		t.Errorf("%s", got)
	}
}

// TestDeclined: what the person does not want started, or its file has disabled, is not
// started, and is not clean.
func TestDeclined(t *testing.T) {
	no := &Target{Name: "a", File: "f.json", Command: []string{"/no/such"}, Declined: true}
	off := &Target{Name: "b", File: "f.json", Command: []string{"/no/such"}, disabled: true}
	r, err := (&Checker{}).Run(t.Context(), []*Target{no, off})
	if err != nil || r.Conclusion != notChecked || r.Servers[0].Conclusion != notChecked || r.Servers[1].Conclusion != skipped {
		t.Errorf("%+v, %v", r, err)
	}
}
