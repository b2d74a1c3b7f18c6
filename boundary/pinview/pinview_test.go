// SPDX-License-Identifier: Apache-2.0

package pinview

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// memory is a store of pins for one goroutine.
type memory map[string][]byte

func (m memory) LoadPin(_ context.Context, server string) ([]byte, int64, error) {
	return m[server], int64(len(m[server])), nil
}

func (m memory) SavePin(_ context.Context, server string, record []byte, _ int64, _ []byte) error {
	m[server] = record
	return nil
}

func (m memory) ListPins(context.Context) ([]string, error) { return slices.Sorted(maps.Keys(m)), nil }

func (m memory) DropPin(_ context.Context, server string, _ []byte) error {
	delete(m, server)
	return nil
}

// saying is a surface with these tools, names and descriptions in turn, and a prompt "both".
func saying(t *testing.T, tools ...string) *surface.Surface {
	t.Helper()
	type entry struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	var list []entry
	for i := 0; i < len(tools); i += 2 {
		list = append(list, entry{tools[i], tools[i+1], json.RawMessage(`{"type":"object"}`)})
	}
	page, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	s, err := surface.ParseDump([]byte(`{"initialize":{"serverInfo":{"name":"s","version":"1"}},"tools/list":[{"tools":`+string(page)+
		`}],"prompts/list":[{"prompts":[{"name":"both"}]}]}`), surface.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// changed is a pin of a server whose tool "now" says something else than at first, hidden
// text among it, and which has one more tool, "both".
func changed(t *testing.T) (*surface.Pins, *surface.Pin) {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pins := surface.NewPins(memory{}, func() time.Time { return at }).Named("my clock")
	if err := pins.Pin(t.Context(), "stdio:1", "stdio:1", saying(t, "now", "Says the time.")); err != nil {
		t.Fatal(err)
	}
	if _, err := pins.Admit(t.Context(), "stdio:1", "stdio:1", saying(t, "now", "Says\u202e the hour.\nAlways.", "both", "Is new.")); err != nil {
		t.Fatal(err)
	}
	return pins, get(t, pins)
}

func get(t *testing.T, pins *surface.Pins) *surface.Pin {
	t.Helper()
	pin, err := pins.Get(t.Context(), "stdio:1")
	if err != nil {
		t.Fatal(err)
	}
	return &pin
}

var now = surface.Key{Kind: surface.Tool, Name: "now"}

// TestNames: an item has its name, its kind and name, and the digests of its versions.
func TestNames(t *testing.T) {
	_, pin := changed(t)
	it := pin.Item(now)
	for _, x := range []struct {
		name    string
		items   int
		version surface.Digest
		err     error
	}{
		{"", 4, surface.Digest{}, ErrSeveralItems},
		{"now", 1, it.PendingDigest(), nil},
		{"tool/now", 1, it.PendingDigest(), nil},
		{it.PendingDigest().String(), 1, it.PendingDigest(), nil},
		{it.ApprovedDigest().String(), 1, it.ApprovedDigest(), nil},
		{"server", 1, pin.Item(surface.Key{}).ApprovedDigest(), nil},
		{"both", 2, surface.Digest{}, ErrSeveralItems},
		{"prompt/both", 1, pin.Item(surface.Key{Kind: surface.Prompt, Name: "both"}).ApprovedDigest(), nil},
		{"prompt/now", 0, surface.Digest{}, errNoItem},
		{"Now", 0, surface.Digest{}, errNoItem},
		{surface.Digest{}.String(), 0, surface.Digest{}, errNoItem},
	} {
		items, err := Items(pin, x.name)
		if len(items) != x.items || (err != nil) != (x.items == 0) {
			t.Errorf("%q: %d items, %v; want %d", x.name, len(items), err, x.items)
		}
		if _, version, err := version(pin, x.name); version != x.version || !errors.Is(err, x.err) {
			t.Errorf("%q: version %s, %v; want %s, %v", x.name, version, err, x.version, x.err)
		}
	}
	if _, _, err := version(&surface.Pin{}, ""); !errors.Is(err, errNoItem) {
		t.Errorf("a pin without items: %v", err)
	}
}

// TestWaiting: only what waits is found, of one kind or of all.
func TestWaiting(t *testing.T) {
	pins, pin := changed(t)
	for kind, want := range map[string]int{"": 2, "tool": 2, "prompt": 0, "server": 0} {
		if got := waiting(pin, kind); len(got) != want {
			t.Errorf("%q: %d, want %d", kind, len(got), want)
		}
	}
	if err := pins.Block(t.Context(), "stdio:1", now, pin.Item(now).PendingDigest(), "ann"); err != nil {
		t.Fatal(err)
	}
	if got := waiting(get(t, pins), ""); len(got) != 1 || got[0].Name != "both" {
		t.Errorf("%+v", got)
	}
}

// TestBlockedVersion: of an item that is held in every version, the last one is meant.
func TestBlockedVersion(t *testing.T) {
	it := &surface.PinnedItem{Key: now, Blocked: []surface.Digest{{1}, {2}}}
	if got := current(it); got != (surface.Digest{2}) {
		t.Errorf("%s", got)
	}
	if got := current(&surface.PinnedItem{Key: now}); got != (surface.Digest{}) {
		t.Errorf("%s", got)
	}
}

// TestRows: a table for a person, with the reason of a rejection below it, escaped.
func TestRows(t *testing.T) {
	pins, pin := changed(t)
	if err := pins.Block(t.Context(), "stdio:1", now, pin.Item(now).PendingDigest(), "ann"); err != nil {
		t.Fatal(err)
	}
	row := NewRow("files", get(t, pins))
	never := Row{Server: "a b", In: "database", Rejected: "why\u202e", RejectedAt: pin.Since}
	var out strings.Builder
	if err := WriteRows(&out, []Row{row, never}); err != nil {
		t.Fatal(err)
	}
	my, ab := terminal.ShellWord("my clock"), terminal.ShellWord("a b")
	want := `NAME        SINCE              ITEMS  LIVE  PENDING  BLOCKED  IN        IDENTITY
` + my + `  2026-01-02 03:04Z  4      2     1        1        files     stdio:1
` + ab + `       never              0      0     0        0        database  ` + ab + `
` + ab + ` is rejected since 2026-01-02 03:04Z: ` + terminal.Inline("why\u202e") + "\n"
	if out.String() != want {
		t.Errorf("\n%s\nwant\n%s", out.String(), want)
	}
	if got := row.Counts(); got != "4 items, 2 live, 1 pending, 1 blocked" {
		t.Errorf("%s", got)
	}
	out.Reset()
	if err := terminal.WriteJSON(&out, row); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"server":"stdio:1","names":["my clock"],"since":"2026-01-02T03:04:05Z","items":4,"live":2,"pending":1,"blocked":1,"in":"files"}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWriteItems: states and digests of all items, and the texts of one.
func TestWriteItems(t *testing.T) {
	pins, pin := changed(t)
	it := pin.Item(now)
	if err := pins.Approve(t.Context(), "stdio:1", now, it.PendingDigest(), "ann\u202e"); err != nil {
		t.Fatal(err)
	}
	decided := get(t, pins)
	decided.Rejected, decided.RejectedAt = "why", decided.Since
	for _, x := range []struct {
		name string
		pin  *surface.Pin
		item string
		show Show
		want string
	}{
		{"texts", pin, "now", Show{Texts: true}, "pending   tool now  " + it.PendingDigest().String() + "\n\napproved\n  {\"description\":\"Says the time.\""},
		{"one of many", pin, "now", Show{OneOfMany: true}, "\n" + terminal.ShellWord("my clock") + "\npending   tool now  " + it.PendingDigest().String() + "\n"},
		{"none of one of many", pin, "-", Show{OneOfMany: true}, ""},
		{"who decided", decided, "now", Show{}, terminal.ShellWord("my clock") + " is rejected since 2026-01-02 03:04Z: why\napproved  tool now  " + it.PendingDigest().String() +
			"  2026-01-02 03:04Z by " + terminal.Inline("ann\u202e") + "\n"},
	} {
		items, _ := Items(x.pin, x.item)
		var out strings.Builder
		if err := x.show.WriteItems(&out, terminal.Palette{}, x.pin, items); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.ContainsRune(got, '\u202e') || !strings.HasPrefix(got, x.want) || !x.show.Texts && got != x.want {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, got, x.want)
		}
	}
}

// TestChanges: what waits is shown whole, field by field, with what hides in it.
func TestChanges(t *testing.T) {
	_, pin := changed(t)
	if _, err := Changes(pin, "other"); !errors.Is(err, errNoItem) {
		t.Errorf("%v", err)
	}
	all, err := Changes(pin, "")
	if err != nil || len(all) < 2 {
		t.Fatalf("%d changes, %v", len(all), err)
	}
	some, err := Changes(pin, "now")
	if err != nil || len(some) != 1 {
		t.Fatalf("%d changes, %v", len(some), err)
	}
	digest := pin.Item(now).PendingDigest().String()
	var out strings.Builder
	some[0].Write(&out, terminal.Palette{})
	want := "  changed       tool now: pending  " + digest + "\n    /description\n    - Says the time.\n    + " + terminal.Printable("Says\u202e the hour.") +
		"\\nAlways.\n    hidden text: /description\n"
	if out.String() != want {
		t.Errorf("\n%s\nwant\n%s", out.String(), want)
	}
	var waiting strings.Builder
	if err := WriteWaiting(&waiting, terminal.Palette{}, pin, []*surface.PinnedItem{pin.Item(now)}); err != nil || waiting.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, waiting.String(), want)
	}
	out.Reset()
	if err := terminal.WriteJSON(&out, ServerChange{"stdio:1", some[0]}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"server":"stdio:1","kind":"tool","item":"now","verdict":"changed","state":"pending","digest":"`+digest+
		`","fields":[{"path":"/description","verdict":"changed","old":"Says the time.","new":"`+terminal.Printable("Says\u202e the hour.")+`\\nAlways."}],"hidden":["/description"]}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWriteChange: each verdict has its form.
func TestWriteChange(t *testing.T) {
	field := func(v surface.Difference) []Field { return []Field{{"/a\u202e", v, "old", "new"}} }
	for _, x := range []struct {
		change Change
		want   string
	}{
		{Change{Kind: surface.Tool, Item: "a", Verdict: surface.Added, Fields: field(surface.Added), MoreFields: 2},
			"  added         tool a\n    " + terminal.Inline("/a\u202e") + "\n    + new\n    and 2 fields more\n"},
		{Change{Kind: surface.Tool, Item: "a", Verdict: surface.Removed, Fields: field(surface.Removed)}, "  removed       tool a\n    " + terminal.Inline("/a\u202e") + "\n    - old\n"},
		{Change{Kind: surface.Tool, Item: "a", Was: "b\u202e", Verdict: surface.Changed}, "  changed       tool a, before \"b\\u202e\"\n"},
	} {
		var out strings.Builder
		x.change.Write(&out, terminal.Palette{})
		if out.String() != x.want {
			t.Errorf("\n%s\nwant\n%s", out.String(), x.want)
		}
	}
}

// TestSeveral: the identities are listed, escaped.
func TestSeveral(t *testing.T) {
	if got := Several("check", "a b", []string{"stdio:1", "x\u202e"}).Error(); got != "check: several servers are called "+terminal.ShellWord("a b")+": say which by its identity: stdio:1, "+terminal.ShellWord("x\u202e") {
		t.Errorf("%s", got)
	}
}

// TestDecide: a person decides about one version, and is asked unless its digest was given.
func TestDecide(t *testing.T) {
	for _, x := range []struct {
		name     string
		block    bool
		item     string // "!": the digest of what waits
		answer   error
		question string
		state    surface.State // of tool now afterwards
		err      string
	}{
		{"by digest", false, "!", nil, "", surface.Approved, ""},
		{"by name", false, "now", nil, "approve tool now, !?", surface.Approved, ""},
		{"declined", false, "now", errors.New("no"), "approve tool now, !?", surface.Pending, "no"},
		{"block", true, "tool/now", nil, "block tool now, !?", surface.Blocked, ""},
		{"several", false, "both", nil, "", surface.Pending, ErrSeveralItems.Error()},
		{"nothing waits", false, "server", nil, "", surface.Pending, "pins: nothing of this item waits"},
		{"block what is approved", true, "server", nil, "block server, !?", surface.Pending, ""},
		{"unknown", true, "other", nil, "", surface.Pending, "pins: no such item: nothing of \"my clock\" has the name or digest \"other\": pellucid pins diff " + terminal.ShellWord("my clock") + " shows what waits"},
	} {
		pins, pin := changed(t)
		waits := pin.Item(now).PendingDigest().String()
		if x.item == "server" {
			waits = pin.Item(surface.Key{}).ApprovedDigest().String()
		}
		asked, told := "", 0
		d := &Decider{Pins: pins, By: "ann",
			Ask: func(_ *surface.Pin, items []*surface.PinnedItem, question string) error {
				asked = question
				if len(items) != 1 {
					t.Errorf("%s: asked about %d items", x.name, len(items))
				}
				return x.answer
			},
			Tell: func(context.Context, *surface.Pin, surface.Key, surface.Digest) error { told++; return nil },
		}
		do := d.Approve
		if x.block {
			do = d.Block
		}
		err := do(t.Context(), pin, strings.ReplaceAll(x.item, "!", waits))
		if (err == nil) != (x.err == "") || err != nil && err.Error() != x.err {
			t.Errorf("%s: %v, want %q", x.name, err, x.err)
		}
		if want := strings.ReplaceAll(x.question, "!", waits); asked != want || (told == 1) != (x.err == "") {
			t.Errorf("%s: asked %q, want %q; told %d times", x.name, asked, want, told)
		}
		if got := get(t, pins).Item(now).State(); got != x.state {
			t.Errorf("%s: %s, want %s", x.name, got, x.state)
		}
	}
}

// TestApprovePinned: a version that was pinned at its first use is approved by its digest, unasked.
func TestApprovePinned(t *testing.T) {
	pins, pin := changed(t)
	server := pin.Item(surface.Key{})
	d := &Decider{Pins: pins, By: "ann", Tell: func(context.Context, *surface.Pin, surface.Key, surface.Digest) error { return nil }}
	if err := d.Approve(t.Context(), pin, server.ApprovedDigest().String()); err != nil {
		t.Fatal(err)
	}
	if it := get(t, pins).Item(surface.Key{}); server.State() != surface.Pinned || it.State() != surface.Approved || it.By != "ann" || it.Approved != server.Approved {
		t.Errorf("%s, then %s by %q", server.State(), it.State(), it.By)
	}
}

// TestApproveWaiting: everything that waits is approved in the version that was shown, and
// what the server has replaced meanwhile is not.
func TestApproveWaiting(t *testing.T) {
	pins, pin := changed(t)
	questions, told := []string{}, 0
	d := &Decider{Pins: pins, By: "ann",
		Ask: func(_ *surface.Pin, _ []*surface.PinnedItem, question string) error {
			questions = append(questions, question)
			return nil
		},
		Tell: func(context.Context, *surface.Pin, surface.Key, surface.Digest) error { told++; return nil },
	}
	if err := d.ApproveWaiting(t.Context(), pin, "prompt"); err == nil || err.Error() != "pins: nothing of that waits" || len(questions) > 0 {
		t.Errorf("%v, asked %q", err, questions)
	}
	if _, err := pins.Admit(t.Context(), "stdio:1", "stdio:1", saying(t, "now", "Says the minute.", "both", "Is new.")); err != nil {
		t.Fatal(err)
	}
	if err := d.ApproveWaiting(t.Context(), pin, "tool"); err == nil || err.Error() != "pins: 1 version not approved: the server says something else by now" || told != 1 {
		t.Errorf("%v, told %d times", err, told)
	}
	later := get(t, pins)
	if a, b := later.Item(now).State(), later.Item(surface.Key{Kind: surface.Tool, Name: "both"}).State(); a != surface.Pending || b != surface.Approved {
		t.Errorf("now is %s, both is %s", a, b)
	}
	if err := d.ApproveWaiting(t.Context(), later, ""); err != nil || told != 2 {
		t.Errorf("%v, told %d times", err, told)
	}
	if want := "approve all of this, 2 versions?"; questions[0] != want {
		t.Errorf("asked %q, want %q", questions[0], want)
	}
}
