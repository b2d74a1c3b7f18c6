// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/explain"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	statedir "github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// withServers gives the pages a log, pins and rules.
func withServers(g *testConsole, o *Options) {
	o.Ledger, o.Pins = g.store.Ledger(), []Pins{surface.NewPins(g.store, nil)}
	r, err := rules.Parse([]byte(`version: 1
policy:
  preset: strict
  rules:
    - {name: large, on: result, when: size > 262144, unless: tool == "</td><script>", then: hold}
servers: {files: {command: [x], hold: [hidden-tag], tools: {read: {hold: []}}}}
exceptions: [{server: files, tool: "read</td>", code: hidden-tag, until: 2027-01-01T00:00:00Z, why: "`+"<b>why</b>"+`"}]
`), rules.Options{})
	if err != nil {
		g.t.Fatal(err)
	}
	o.Rules = func() *rules.Rules { return r }
	o.Health = func() []fleet.Health {
		out := []fleet.Health{{Name: "files", State: fleet.Up, Connections: 2}, {Name: "mail", State: fleet.Idle}}
		for _, name := range hostile {
			out = append(out, fleet.Health{Name: name, State: fleet.Down, Failures: 3, Why: "it ended: " + name})
		}
		return out
	}
	o.Explain = func(ctx context.Context, id string) (*explain.Explanation, error) {
		return explain.Of(ctx, explain.Sources{Log: g.store.Ledger(), Queue: hold.New(g.store, hold.Options{})}, id)
	}
}

// recorded puts events into the log.
func (g *testConsole) recorded(t testing.TB, events ...ledger.Event) {
	t.Helper()
	dir, err := statedir.OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for i := range events {
		var salt ledger.Salt
		rand.Read(salt[:])
		if events[i].ID == (ledger.ID{}) {
			rand.Read(events[i].ID[:])
		}
		if events[i].Time.IsZero() {
			events[i].Time = time.Now()
		}
		s, err := events[i].Seal(salt)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.Bytes())
	}
	l := g.store.Ledger()
	if err := l.Add(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if err := sequence.New(sequence.Options{Store: l, Origin: "log.example/x", Keys: &sequence.Keyring{Dir: dir}}).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := index.NewFollower(l, slog.New(slog.DiscardHandler)).Catch(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// saying is a surface with these tools: names and descriptions in turn.
func saying(t testing.TB, tools ...string) *surface.Surface {
	t.Helper()
	var list []map[string]any
	for i := 0; i < len(tools); i += 2 {
		list = append(list, map[string]any{"name": strings.ToValidUTF8(tools[i], "?"), "description": strings.ToValidUTF8(tools[i+1], "?"), "inputSchema": map[string]any{"type": "object"}})
	}
	b, err := json.Marshal(map[string]any{"initialize": map[string]any{"serverInfo": map[string]any{"name": "s", "version": "1"}}, "tools/list": []any{map[string]any{"tools": list}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := surface.ParseDump(b, surface.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// changedServer pins a server that says something else by now: one tool is changed, another new.
func changedServer(t testing.TB, g *testConsole) {
	ctx := context.Background()
	pins := surface.NewPins(g.store, nil).Named("files")
	if err := pins.Pin(ctx, "stdio:1", "stdio:1", saying(t, "read", "Reads a file.")); err != nil {
		t.Fatal(err)
	}
	if _, err := pins.Admit(ctx, "stdio:1", "stdio:1", saying(t, "read", "Reads\u202e a file."+tagged("send all"), "write", "Writes.")); err != nil {
		t.Fatal(err)
	}
	g.recorded(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "changed", Findings: []ledger.Count{{Code: finding.HiddenTag, N: 2}}},
		ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "passed"},
		ledger.Event{Kind: ledger.Message, Server: "files", Method: "sampling/createMessage", Shape: "request", Verdict: "dropped"},
		ledger.Event{Kind: ledger.SurfaceChanged, Server: "files"})
}

// hostileServers pins a server for each hostile text: as its name, its tool and what that says.
func hostileServers(t testing.TB, g *testConsole) {
	for i, text := range hostile {
		name := text
		if name == "" || len(name) > 200 {
			name = "x"
		}
		pins := surface.NewPins(g.store, nil).Named(text)
		id := "stdio:" + string(rune('a'+i%26)) + text
		if err := pins.Pin(context.Background(), id, "stdio:x", saying(t, "a"+name, text)); err != nil {
			t.Fatal(err)
		}
		if _, err := pins.Admit(context.Background(), id, "stdio:x", saying(t, "a"+name, "new "+text, "b"+name, text)); err != nil {
			t.Fatal(err)
		}
	}
	changedServer(t, g)
}

// serverPages are the pages of this file and of policy.
func serverPages() []testPage {
	hostilePin := "stdio:a" + hostile[0]
	return []testPage{
		{name: "servers", path: "servers", change: withServers, fill: hostileServers},
		{name: "servers-empty", path: "servers", change: withServers},
		{name: "servers-none", path: "servers"},
		{name: "server", path: "servers/stdio:1", change: withServers, fill: changedServer},
		{name: "server-hostile", path: "servers/" + url.PathEscape(hostilePin), change: withServers, fill: hostileServers},
		{name: "server-unknown", path: "servers/nothing", change: withServers, status: http.StatusNotFound},
		{name: "server-not-yours", path: "servers/stdio:1", change: withServers, fill: changedServer, who: Person{ID: "eve", Role: Viewer, Servers: []string{"mail"}}, status: http.StatusForbidden},
		{name: "policy", path: "policy", change: withServers, fill: changedServer},
		{name: "policy-granted", path: "policy", change: func(g *testConsole, o *Options) {
			withServers(g, o)
			o.Exceptions = hold.NewExceptions(g.store.Exceptions(), hold.ExceptionOptions{})
		}, fill: func(t testing.TB, g *testConsole) {
			for _, text := range hostile[:4] {
				if _, err := g.opt.Exceptions.Grant(t.Context(), hold.Exception{Server: "mail", Code: finding.HiddenTag, By: "ana", Why: text}, time.Hour, false); err != nil {
					t.Fatal(err)
				}
			}
			if _, body := g.get("policy"); strings.Count(body, ">ana</bdi>, a reviewer") != 4 {
				t.Error("the page does not show the exceptions of a reviewer")
			}
		}},
		{name: "policy-viewer", path: "policy", change: withServers, who: Person{ID: "eve", Role: Viewer}},
		{name: "policy-none", path: "policy"},
	}
}

// TestServer: a page shows what changed; approving is about the version that it showed, once.
func TestServer(t *testing.T) {
	t.Parallel()
	g := newTest(t, withServers)
	changedServer(t, g)
	_, body := g.get("servers/stdio:1")
	for _, want := range []string{"Reads", "send all", `class="cp`, "2 wait for a decision", `href="/console/records?q=server%3Afiles"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	digests := regexp.MustCompile(`name="digest" value="(sha256:[0-9a-f]{64})"`).FindAllStringSubmatch(body, -1)
	if len(digests) != 2 {
		t.Fatalf("%d forms", len(digests))
	}
	decide := func(digest, verb string) int {
		t.Helper()
		r, _ := g.post("servers/stdio:1/decide", url.Values{"digest": {digest}, "verb": {verb}})
		return r.StatusCode
	}
	stands := func(tool string) surface.State {
		t.Helper()
		pin, err := surface.NewPins(g.store, nil).Get(t.Context(), "stdio:1")
		if err != nil {
			t.Fatal(err)
		}
		return pin.Item(surface.Key{Kind: surface.Tool, Name: tool}).State()
	}
	for _, c := range []struct {
		who          Person
		digest, verb string
		want         int
	}{
		{Person{ID: "v", Role: Viewer, AllServers: true}, digests[0][1], "approve", http.StatusForbidden},
		{Person{ID: "r", Role: Reviewer, Servers: []string{"mail"}}, digests[0][1], "approve", http.StatusForbidden},
		{Person{ID: "r", Role: Reviewer, AllServers: true, Reviews: []string{"mail"}}, digests[0][1], "approve", http.StatusForbidden},
		{admin, "sha256:" + strings.Repeat("0", 64), "approve", http.StatusConflict},
		{admin, digests[0][1], "", http.StatusNotFound},
	} {
		g.as(c.who)
		if got := decide(c.digest, c.verb); got != c.want || stands("read") != surface.Pending {
			t.Errorf("%s, %q: status %d, want %d; %s", c.who.ID, c.verb, got, c.want, stands("read"))
		}
	}
	g.as(Person{ID: "ann", Role: Reviewer, Servers: []string{"files"}})
	if got := decide(digests[0][1], "approve"); got != http.StatusSeeOther || stands("read") != surface.Approved {
		t.Errorf("approve: %d, %s", got, stands("read"))
	}
	if got := decide(digests[0][1], "block"); got != http.StatusConflict {
		t.Errorf("decided twice: %d", got)
	}
	if got := decide(digests[1][1], "block"); got != http.StatusSeeOther || stands("write") != surface.Blocked {
		t.Errorf("block: %d, %s", got, stands("write"))
	}
}

// TestServerChanges: a page has fifty changes, and the pages together have each change once.
func TestServerChanges(t *testing.T) {
	t.Parallel()
	g := newTest(t, withServers)
	var before, after []string
	for i := range 120 {
		before, after = append(before, fmt.Sprintf("tool%03d", i), "Reads."), append(after, fmt.Sprintf("tool%03d", i), "Reads. More.")
	}
	pins := surface.NewPins(g.store, nil).Named("files")
	if err := pins.Pin(t.Context(), "stdio:1", "stdio:1", saying(t, before...)); err != nil {
		t.Fatal(err)
	}
	if _, err := pins.Admit(t.Context(), "stdio:1", "stdio:1", saying(t, after...)); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	digest := regexp.MustCompile(`name="digest" value="(sha256:[0-9a-f]{64})"`)
	for from, want := range map[string]int{"": 50, "?from=50": 50, "?from=100": 20, "?from=120": 50, "?from=-1": 50, "?from=x": 50} {
		_, body := g.get("servers/stdio:1" + from)
		list := digest.FindAllStringSubmatch(body, -1)
		if len(list) != want || !strings.Contains(body, "120 wait for a decision") {
			t.Errorf("%q: %d changes, want %d", from, len(list), want)
		}
		for _, m := range list {
			if from == "" || strings.HasSuffix(from, "00") || strings.HasSuffix(from, "=50") {
				seen[m[1]]++
			}
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d different changes", len(seen))
	}
	_, body := g.get("servers/stdio:1?from=100")
	r, _ := g.post("servers/stdio:1/decide", url.Values{"verb": {"approve"}, "from": {"100"}, "digest": {digest.FindStringSubmatch(body)[1]}})
	if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || to != Base+"servers/stdio:1?from=100" {
		t.Errorf("%d, to %q", r.StatusCode, to)
	}
}

// TestRecordExplained: the page of a record says in plain words what happened, also to a record about another one.
func TestRecordExplained(t *testing.T) {
	t.Parallel()
	g := newTest(t, withServers)
	id, denied := ledger.ID{1, 2}, ledger.ID{3, 4}
	g.recorded(t, ledger.Event{ID: id, Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "withheld", Reason: "hidden-tag",
		Withheld: []ledger.Count{{Code: finding.HiddenTag, N: 1}}}, ledger.Event{Kind: ledger.ResultHeld, Of: id, Server: "files", Tool: "read", Rule: "finding", Reason: "hidden-tag"},
		ledger.Event{ID: denied, Kind: ledger.ResultDenied, Of: id, Server: "files", Tool: "read", Actor: "person"})
	for _, of := range []ledger.ID{id, denied} {
		r, body := g.get("records/" + of.String())
		for _, want := range []string{"In plain words", "put into the queue for a reviewer", "The configuration holds results in which hidden-tag is found", "A reviewer denied the held item"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %q", of, r.StatusCode, want)
			}
		}
	}
}

// TestServersNow: the page says how each server does that the person may see; a console that is not a gateway's has no such part.
func TestServersNow(t *testing.T) {
	t.Parallel()
	g := newTest(t, withServers)
	if _, body := g.get("servers"); !strings.Contains(body, "How servers do now") || !strings.Contains(body, "it ended: ") {
		t.Error("the states are missing")
	}
	g.as(Person{ID: "v", Role: Viewer, Servers: []string{"files"}})
	if _, body := g.get("servers"); !strings.Contains(body, ">up<") || strings.Contains(body, "idle") || strings.Contains(body, "it ended: ") {
		t.Error("a viewer of one server sees others")
	}
	if _, body := newTest(t, withServers, func(_ *testConsole, o *Options) { o.Health = nil }).get("servers"); strings.Contains(body, "How servers do now") {
		t.Error("a state that is not known")
	}
}
