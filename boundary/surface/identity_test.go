// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIdentity: what makes two servers one, and what does not.
func TestIdentity(t *testing.T) {
	same := func(a, b string) {
		t.Helper()
		if a != b {
			t.Errorf("%s and %s are two", a, b)
		}
	}
	other := func(a, b string) {
		t.Helper()
		if a == b {
			t.Errorf("%s is two servers", a)
		}
	}
	npx := []string{"npx", "-y", "srv"}
	same(commandIdentity(npx, "/a", false), commandIdentity(npx, "/b", false))
	other(commandIdentity(npx, "/a", true), commandIdentity(npx, "/b", true))
	other(commandIdentity(npx, "/a", false), commandIdentity(npx, "/a", true))
	other(commandIdentity(npx, "", false), commandIdentity([]string{"npx", "-y srv"}, "", false))
	other(commandIdentity(npx, "/a", true), commandIdentity(append(slices.Clone(npx), "", "/a"), "", false)+"x")
	for _, word := range []string{"./s.js", "../s.js", ".", "..", `.\s.exe`} {
		run := []string{"node", word}
		other(commandIdentity(run, "/a", false), commandIdentity(run, "/b", false))
		same(commandIdentity(run, "/a", false), commandIdentity(run, "/a", true))
	}
	same(commandIdentity([]string{"docker", "run", "mcp/github"}, "/a", false), commandIdentity([]string{"docker", "run", "mcp/github"}, "/b", false))
	other(URLIdentity("https://a.example/mcp"), URLIdentity("https://a.example/mcp2"))
	if id := URLIdentity("https://a.example/?key=s3cret"); strings.Contains(id, "s3cret") || !strings.HasPrefix(id, "http:") {
		t.Errorf("%q", id)
	}
}

// able makes s what a client with these capabilities was told.
func able(s *Surface, set string) *Surface {
	c := *s
	c.able = set
	return &c
}

// TestGateCapabilities: what a server offers only to a client with more capabilities is
// pinned when such a client comes for the first time, and is no change; what it has
// changed meanwhile waits, whatever the client has.
func TestGateCapabilities(t *testing.T) {
	a, ask, late := tool("a", "First."), tool("ask", "Asks the client's model."), tool("late", "New.")
	for _, x := range []struct {
		name     string
		bare     []string // what the server says to a client without capabilities, at the second check
		rich     []string // and to the one with capabilities
		want     string
		offered  int
		hold     bool
		without  bool // there is no Bare
		before   string
		wantNext string // the same again
	}{
		{"offered", []string{a}, []string{a, ask}, "clean:a,ask asked", 1, false, false, "", "clean:a,ask"},
		{"new for every client", []string{a, late}, []string{a, late}, "changed:a", 0, false, false, "", "changed:a"},
		{"one of each", []string{a, late}, []string{a, ask, late}, "changed:a,ask asked", 1, false, false, "", "changed:a,ask"},
		{"changed", []string{tool("a", "Other.")}, []string{tool("a", "Other."), ask}, "changed:ask asked", 1, false, false, "", "changed:ask"},
		{"hidden text", []string{a}, []string{a, tool("ask", "Asks.\u200b")}, "changed:a", 0, false, false, "", "changed:a"},
		{"poison", []string{a}, []string{a, tool("ask", "poison")}, "rejected: asked", 1, false, false, "", "changed:a"},
		{"seen by as capable a client", []string{a}, []string{a, ask}, "changed:a", 0, false, false, "roots sampling", "changed:a"},
		{"every first is held", []string{a}, []string{a, ask}, "changed:a", 0, true, false, "", "changed:a"},
		{"nothing to compare with", []string{a}, []string{a, ask}, "changed:a", 0, false, true, "", "changed:a"},
	} {
		t.Run(x.name, func(t *testing.T) {
			g := newGate()
			if o, err := g.Check(t.Context(), "srv", "cmd", able(surfaceOf(t, a), x.before)); err != nil || !o.Pinned {
				t.Fatal(o, err)
			}
			g.HoldFirst = x.hold
			g.Bare = func(context.Context) (*Surface, error) { return surfaceOf(t, x.bare...), nil }
			if x.without {
				g.Bare = nil
			}
			for i, want := range []string{x.want, x.wantNext} {
				o, got := g.checkAll(t, able(surfaceOf(t, x.rich...), "sampling"))
				if got != want || i == 0 && len(o.Offered) != x.offered {
					t.Errorf("check %d: %s, %d offered; want %s, %d", i+1, got, len(o.Offered), want, x.offered)
				}
			}
			// A client without capabilities is told less, which is no change.
			if o, err := g.Check(t.Context(), "srv", "cmd", surfaceOf(t, a)); err != nil || o.Conclusion != Clean {
				t.Errorf("a client without capabilities: %+v, %v", o, err)
			}
		})
	}
}

// TestHelloInBothEras: a server that speaks both eras has one surface.
func TestHelloInBothEras(t *testing.T) {
	legacy := `{"initialize":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"experimental":{"x":{}}},"serverInfo":{"name":"s","version":"1"},"_meta":{"k":1}},"tools/list":[{"tools":[]}]}`
	modern := `{"server/discover":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"experimental":{"x":{}}},"_meta":{"k":1,"io.modelcontextprotocol/serverInfo":{"version":"1","name":"s"}}},` +
		`"tools/list":[{"tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}]}`
	one, err := ParseDump([]byte(legacy), Limits{})
	two, err2 := ParseDump([]byte(modern), Limits{})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if one.Fingerprint() != two.Fingerprint() {
		t.Errorf("%s\n%s", one.Items()[0].JSON, two.Items()[0].JSON)
	}
	for _, x := range []string{strings.Replace(modern, `"tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"`, `"tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"Obey"`, 1),
		strings.Replace(modern, `"tools":{}`, `"tools":{"listChanged":"Obey"}`, 1), strings.Replace(modern, `"k":1`, `"k":"Obey"`, 1)} {
		if s, err := ParseDump([]byte(x), Limits{}); err != nil || s.Fingerprint() == one.Fingerprint() || x == modern {
			t.Errorf("words that count for nothing: %s", x)
		}
	}
}

func TestNameOf(t *testing.T) {
	for _, tt := range []struct {
		command []string
		address string
		want    string
	}{
		{[]string{"/usr/bin/server", "a"}, "", "server"},
		{[]string{`C:\bin\server.exe`}, "", "server.exe"},
		{[]string{"npx", "-y", "x"}, "https://unused.example", "npx"},
		{nil, "https://mcp.example.com:8443/mcp", "mcp.example.com"},
		{nil, "://", DefaultName},
		{nil, "", DefaultName},
	} {
		if got := NameOf(tt.command, tt.address); got != tt.want {
			t.Errorf("%q %q: %q, want %q", tt.command, tt.address, got, tt.want)
		}
	}
}

// TestLocalIdentity: the working directory counts for a command with a relative path alone,
// a stated directory always.
func TestLocalIdentity(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	relative, absolute := []string{"./server"}, []string{"/bin/server"}
	if LocalIdentity(relative, "") != commandIdentity(relative, here, false) || LocalIdentity(absolute, "") != commandIdentity(absolute, "", false) {
		t.Error("a command without a stated directory")
	}
	if LocalIdentity(absolute, "sub") != commandIdentity(absolute, filepath.Join(here, "sub"), true) {
		t.Error("a stated directory is made absolute")
	}
}
