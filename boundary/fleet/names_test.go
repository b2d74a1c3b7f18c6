// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func TestOuter(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, tc := range []struct{ server, name, want string }{
		{"files", "read", "files_read"},
		{"a_b", "c", "a-b_c"},
		{"a", "b_c", "a_b_c"},
		{"a.b", "c.d", "a-b_c_d_51f0c1f5"},
		{"a.b", "c/d", "a-b_c_d_51f0c1f5"},
		{"files", "\u65e5\u672c", "files____01234567"},
		{"files", strings.Repeat("x", 58), "files_" + long[:58]},
		{"files", strings.Repeat("x", 59), "files_" + long[:49] + "_b1b9c8a0"},
		{strings.Repeat("s", 64), "read", strings.Repeat("s", 31) + "-01234567_read"},
		{strings.Repeat("s", 40), "a_tool_of_a_long_name_and_prefix", strings.Repeat("s", 40) + "_a_tool_of_a_lo_01234567"},
		{"files", "", "files_"},
		{"files", "x_0123abcd", "files_x_0123abcd_05c12ac1"},
		{"files", "x_0123ABCD", "files_x_0123ABCD"},
		{"files", "0123abcd", "files_0123abcd_4be96fb1"},
		{"files", long, "files_" + long[:49] + "_b1b9c8a0"},
		{"files", long + "y", "files_" + long[:49] + "_9d1c5b2f"},
	} {
		got, _ := outer(tc.server, prefixOf(&Server{Name: tc.server}), tc.name)
		if digits.ReplaceAllString(got, "") != digits.ReplaceAllString(tc.want, "") || len(got) != len(tc.want) || !forModels.MatchString(got) {
			t.Errorf("%s %q: %q, want %q", tc.server, tc.name, got, tc.want)
		}
	}
}

// forModels is what the interfaces of models take for the name of a tool.
var (
	digits    = regexp.MustCompile(`[0-9a-f]{8}`)
	forModels = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// TestOuterNamesOne: a name stands for one tool of one server, whatever others there
// are, and is found again.
func TestOuterNamesOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type tool struct{ server, name string }
		whose := map[string]tool{}
		tables := map[string]names{}
		name := rapid.OneOf(rapid.StringMatching(`[ab_]{0,6}(_[0-9a-f]{8})?`), rapid.StringN(0, 200, 300))
		servers := rapid.SliceOfNDistinct(rapid.OneOf(rapid.StringMatching(`[ab][ab_.-]{0,3}`), rapid.StringMatching(`[ab]{60}[ab_.-]{0,4}`)), 1, 4,
			func(s string) string { return prefixOf(&Server{Name: s}) }).Draw(t, "servers")
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			server := rapid.SampledFrom(servers).Draw(t, "server")
			prefix := prefixOf(&Server{Name: server})
			if tables[server] == nil {
				tables[server] = names{}
			}
			own := tool{server, name.Draw(t, "name")}
			out := tables[server].add(server, prefix, own.name)
			if out == "" {
				t.Fatalf("%q of %s has no name", own.name, server)
			}
			if !forModels.MatchString(out) {
				t.Fatalf("%q", out)
			}
			if other, there := whose[out]; there && other != own {
				t.Fatalf("%q stands for %q and %q", out, other, own)
			}
			whose[out] = own
		}
		for out, own := range whose {
			for _, server := range servers {
				inner, known := tables[server].inner(prefixOf(&Server{Name: server}), out)
				if known != (server == own.server) || known && inner != own.name {
					t.Fatalf("%q is %q of %s (%v), want %q", out, inner, server, known, own)
				}
			}
		}
	})
}

// FuzzCursor: whatever a client says that our cursor is.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{`"eyJhIjoiYiJ9"`, `"e30"`, `""`, `1`, `null`, `"eyJhIjoxfQ"`, `"eyJhIjoiYiIsImEiOiJjIn0"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var doc strictjson.Doc
		if doc.Reset(b, strictjson.Limits{}) != nil {
			return
		}
		u := &union{}
		cursors, ok := u.cursors(doc.Root())
		if !ok || cursors == nil {
			return
		}
		g := &pages{more: cursors}
		for name := range cursors {
			g.names = append(g.names, name)
		}
		if err := doc.Reset(strictjson.AppendQuote(nil, g.cursor()), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		again, ok := u.cursors(doc.Root())
		if !ok || len(again) != len(cursors) {
			t.Fatalf("%q becomes %q", cursors, again)
		}
	})
}

// TestClaimedName: the name in the claim outlives the bytes in which the client wrote it.
func TestClaimedName(t *testing.T) {
	b := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one_echo"}}`)
	m, err := wire.Decode(b, ServerLimits)
	if err != nil {
		t.Fatal(err)
	}
	inner, _ := names{}.inner("one", m.Params.Get("name").Text())
	c := claimed(&wire.Claim{Name: "one_echo"}, inner)
	buf := new(reuse.Buffer)
	buf.Set(b)
	m.Owning(buf).Release()
	for i := range b { // as the next message does
		b[i] = '!'
	}
	if c.Name != "echo" {
		t.Errorf("%q", c.Name)
	}
}

// TestNameCollision: a server that finds two names with one digest has the second one left out.
func TestNameCollision(t *testing.T) {
	n := names{}
	out := n.add("s", "s", "a.b")
	if again := n.add("s", "s", "a.b"); out == "" || again != out {
		t.Errorf("%q, then %q", out, again)
	}
	n[out] = "another"
	if got := n.add("s", "s", "a.b"); got != "" {
		t.Errorf("%q stands for two names", got)
	}
}

// TestWarnOnceBound: what a server lists cannot make the memory of its warnings grow.
func TestWarnOnceBound(t *testing.T) {
	f := New(Options{})
	defer f.Close(t.Context())
	for i := range 2 * maxWarned {
		f.warnOnce("x", "s", "tools/list", strconv.Itoa(i), "")
	}
	if len(f.warned) != maxWarned {
		t.Errorf("%d entries are kept", len(f.warned))
	}
}
