// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
)

// machine is a home, a project and a state directory of the test's own.
func machine(t *testing.T) (home, state string) {
	t.Helper()
	home, state = t.TempDir(), t.TempDir()
	if err := errors.Join(os.Chmod(state, 0o700), privacy.Restrict(state)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("PELLUCID_STATE", state)
	t.Setenv(local.KeyVar, "")
	t.Chdir(t.TempDir())
	return home, state
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configuration listens where nothing else does, unless listen names an address.
func configuration(t *testing.T, listen, more string) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "p.yaml"), "version: 1\nlisten: "+listen+"\n"+more)
}

// examine returns the report as a person reads it.
func examine(t *testing.T, o Options) (text string, r *Report, refused bool) {
	t.Helper()
	o.Getenv = func(string) string { return "" }
	r, refused = Examine(t.Context(), o)
	var b strings.Builder
	if err := r.Write(&b, terminal.Palette{}); err != nil {
		t.Fatal(err)
	}
	return b.String(), r, refused
}

// holds checks that each line stands in the report, and whether all is well.
func holds(t *testing.T, name, text string, r *Report, ok bool, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains("\n"+text, "\n"+l) {
			t.Errorf("%s: no line %q in\n%s", name, l, text)
		}
	}
	if r.OK != ok {
		t.Errorf("%s: ok %v, want %v:\n%s", name, r.OK, ok, text)
	}
}

// TestFresh: an installation that was never used is well, and nothing is made.
func TestFresh(t *testing.T) {
	_, state := machine(t)
	text, r, refused := examine(t, Options{Config: configuration(t, "127.0.0.1:0", "")})
	holds(t, "fresh", text, r, true, "ok       version    ", "ok       state      "+state+"\n", "ok       key        none yet: it is made on first use\n",
		"ok       config     ", "ok       store      none yet: it is made on first use\n", "ok       port       127.0.0.1:0 is free\n",
		"ok       clients    no client's configuration was found\n")
	if made, err := os.ReadDir(state); err != nil || len(made) > 0 || refused {
		t.Errorf("%v was made, %v, refused %v", made, err, refused)
	}
	if text, r, refused := examine(t, Options{}); refused {
		t.Errorf("%s", text)
	} else if holds(t, "no configuration", text, &Report{}, false, "ok       config     none: defaults\n"); r.Checks[0].Name != "version" {
		t.Errorf("%+v", r)
	}
}

// TestState: an open directory is a warning, a damaged key a failure.
func TestState(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are not those of Windows")
	}
	_, state := machine(t)
	config := configuration(t, "127.0.0.1:0", "")
	write(t, filepath.Join(state, "install.key"), "short")
	text, r, _ := examine(t, Options{Config: config})
	holds(t, "key", text, r, false, "failed   key        ")
	write(t, filepath.Join(state, "install.key"), strings.Repeat("k", 32))
	text, r, _ = examine(t, Options{Config: config})
	holds(t, "key", text, r, true, "ok       key        for its owner alone: back it up, fences cannot be checked without it\n")
	if os.Geteuid() != 0 { // root may write everywhere
		locked := filepath.Join(t.TempDir(), "locked")
		if err := os.Mkdir(locked, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PELLUCID_STATE", locked)
		text, r, _ = examine(t, Options{Config: config})
		holds(t, "read-only", text, r, false, "run pellucid as the user that owns it")
	}
	t.Setenv("PELLUCID_STATE", write(t, filepath.Join(t.TempDir(), "file"), ""))
	text, r, _ = examine(t, Options{Config: config})
	holds(t, "no directory", text, r, false, "failed   state      ")
	if strings.Contains(text, "clients") || strings.Contains(text, " key ") {
		t.Errorf("looked at what needs the directory:\n%s", text)
	}
}

// TestConfig: what is refused is told with its line; the rest is looked at all the same.
func TestConfig(t *testing.T) {
	machine(t)
	text, r, refused := examine(t, Options{Config: configuration(t, "127.0.0.1:0", "nonsense: \"\\u202e\"\n")})
	holds(t, "bad", text, r, false, "failed   config     ", "ok       store      none yet")
	if !refused || !strings.Contains(text, "line 3") || strings.ContainsRune(text, '\u202e') {
		t.Errorf("refused %v:\n%s", refused, text)
	}
	if _, _, refused := examine(t, Options{Config: filepath.Join(t.TempDir(), "none.yaml")}); !refused {
		t.Error("a configuration that is not there is not refused")
	}
	write(t, "pellucid.yaml", "version: 2\n")
	if _, _, refused := examine(t, Options{}); !refused {
		t.Error("the configuration of the working directory is not read")
	}
}

// TestStores: the store of the flag, of the configuration, or of the state directory.
func TestStores(t *testing.T) {
	_, state := machine(t)
	db := filepath.Join(t.TempDir(), "a.db")
	s, err := storage.Open(t.Context(), db, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	b, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	plain := configuration(t, "127.0.0.1:0", "")
	for _, x := range []struct {
		name string
		o    Options
		ok   bool
		line string
	}{
		{"flag", Options{Config: plain, DB: install.Database(db)}, true, "ok       store      " + install.StoreName(db) + ": reachable, schema "},
		{"configuration", Options{Config: configuration(t, "127.0.0.1:0", "store: file:"+db+"\n")}, true, "ok       store      " + install.StoreName(db) + ": reachable, schema "},
		{"none yet", Options{Config: plain, DB: install.Database(filepath.Join(t.TempDir(), "none.db"))}, true, "ok       store      "},
		{"damaged", Options{Config: plain, DB: install.Database(write(t, filepath.Join(t.TempDir(), "bad.db"), strings.Repeat("no database ", 1000)))}, false, "failed   store      "},
	} {
		text, r, _ := examine(t, x.o)
		holds(t, x.name, text, r, x.ok, x.line)
	}
	write(t, filepath.Join(state, "pellucid.db"), string(b))
	write(t, filepath.Join(state, "ground.db"), string(b))
	text, r, _ := examine(t, Options{Config: plain})
	holds(t, "state directory", text, r, true, "ok       store      pellucid.db: reachable", "ok       store      ground.db: reachable")
}

// TestPort tells a running gateway from another server.
func TestPort(t *testing.T) {
	machine(t)
	for code, want := range map[int]string{http.StatusOK: "ok       port       ", http.StatusNotFound: "failed   port       "} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				w.WriteHeader(code)
			}
		}))
		defer s.Close()
		text, r, _ := examine(t, Options{Config: configuration(t, s.Listener.Addr().String(), "")})
		holds(t, http.StatusText(code), text, r, code == http.StatusOK, want+s.Listener.Addr().String())
	}
}

// TestClients counts the servers of each client that run behind the boundary.
func TestClients(t *testing.T) {
	home, _ := machine(t)
	config := configuration(t, "127.0.0.1:0", "")
	path := filepath.Join(home, ".cursor", "mcp.json")
	for _, x := range []struct{ name, content, line string }{
		{"none", `{"mcpServers":{}}`, "ok       cursor     no servers: " + path},
		{"not behind it", `{"mcpServers":{"a":{"command":"srv"},"b":{"url":"https://b.example/mcp","oauth":{}}}}`, "warning  cursor     0 of 2 servers behind the boundary: " + path + ": run pellucid protect\n"},
		{"cannot be", `{"mcpServers":{"b":{"url":"https://b.example/mcp","oauth":{}}}}`, "warning  cursor     0 of 1 server behind the boundary: " + path + ": pellucid protect --dry-run says why not the others\n"},
		{"damaged", `{`, "warning  cursor     protect: "},
	} {
		write(t, path, x.content)
		text, r, _ := examine(t, Options{Config: config})
		holds(t, x.name, text, r, true, x.line)
	}
	opt, err := install.ProtectOptions(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, `{"mcpServers":{"a":{"command":"srv"}}}`)
	change, err := opt.Protect(path, protect.Generic)
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Apply(); err != nil {
		t.Fatal(err)
	}
	text, r, _ := examine(t, Options{Config: config})
	holds(t, "behind it", text, r, true, "ok       cursor     1 of 1 server behind the boundary: "+path+"\n")
}

// TestStaleClientFile: a file that the installed client does not read is never reported as being in order.
func TestStaleClientFile(t *testing.T) {
	home, _ := machine(t)
	opt, err := install.ProtectOptions(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	stale, read := filepath.Join(home, "stale.json"), filepath.Join(home, "read.json")
	for _, c := range []struct {
		servers string
		wants   []string
	}{
		{`{}`, []string{"ok no servers: " + read + ", the file that the installed app reads"}},
		{`{"a":{"command":"pellucid","args":["wrap","--","srv"]}}`, []string{"ok 1 of 1 server behind the boundary: " + read + ", the file that the installed app reads"}},
		{`{"a":{"command":"srv"}}`, []string{"warning 0 of 1 server behind the boundary: " + read + ", the file that the installed app reads: run pellucid protect",
			"warning 0 of 1 server behind the boundary: " + stale + ": run pellucid protect"}},
	} {
		x := &examiner{}
		for path, instead := range map[string]string{read: "", stale: read} {
			write(t, path, `{"mcpServers":`+c.servers+`}`)
			x.clientFile(opt, protect.Target{Client: "claude-desktop", Path: path, Format: protect.Generic, ReadInstead: instead}, path == read)
		}
		var got []string
		for _, check := range x.report.Checks {
			got = append(got, check.Status+" "+check.Says)
		}
		want := append(c.wants, "warning the installed app reads "+read+" in the place of "+stale+": configure its servers there")
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: %q, want %q", c.servers, got, want)
		}
	}
}

// TestOtherClients: a client whose servers protect does not reach is named, with what to do, and
// clients with files in TOML and YAML are counted like others.
func TestOtherClients(t *testing.T) {
	home, _ := machine(t)
	config := configuration(t, "127.0.0.1:0", "")
	kiro := write(t, filepath.Join(home, ".kiro", "settings", "mcp.json"), "{}")
	warp := filepath.Dir(write(t, filepath.Join(home, ".warp", "x"), ""))
	codex := write(t, filepath.Join(home, ".codex", "config.toml"), "[mcp_servers.a]\ncommand = 'srv'\n")
	settings := ".config"
	if runtime.GOOS == "windows" {
		settings = `AppData\Roaming`
	}
	goose := write(t, filepath.Join(home, settings, "goose", "config.yaml"), "extensions: {\n")
	text, r, _ := examine(t, Options{Config: config})
	holds(t, "others", text, r, true,
		"warning  clients    Kiro is on this machine ("+kiro+"), and protect does not change it: name its file: pellucid protect --file "+terminal.ShellWord(kiro)+"\n",
		"warning  clients    Warp is on this machine ("+warp+"), and protect does not change it: it keeps its servers in its own settings: ",
		"warning  codex      0 of 1 server behind the boundary: "+codex+": run pellucid protect\n",
		"warning  goose      protect: "+strconv.Quote(goose)+": not a configuration that can be edited safely: it is not valid YAML: line 1\n")
}

// TestSampling: servers that asked for it in the journal and were refused, escaped.
func TestSampling(t *testing.T) {
	_, state := machine(t)
	write(t, filepath.Join(state, "decisions.jsonl"), `{"server":"read","method":"sampling/createMessage","kind":"request","verdict":"passed"}
{"server":"read","method":"tools/call","kind":"call","verdict":"dropped"}
{"server":"deep\u202e","method":"sampling/createMessage","kind":"request","verdict":"dropped"}
{"server":"deep\u202e","method":"sampling/createMessage","kind":"request","verdict":"dropped"}
`)
	text, r, _ := examine(t, Options{Config: configuration(t, "127.0.0.1:0", "")})
	holds(t, "sampling", text, r, true, `warning  sampling   server "deep\u202e" asked for it and was refused: dangerously_allow_sampling: true in its configuration`)
	if strings.Contains(text, `"read"`) || strings.Count(text, "sampling   ") != 1 {
		t.Errorf("%s", text)
	}
}

// TestSamplingInStore: the records of a store are looked at as well.
func TestSamplingInStore(t *testing.T) {
	machine(t)
	db := install.Database(filepath.Join(t.TempDir(), "a.db"))
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.Open(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	kept := install.OpenRecords(s, dir, &rules.Evidence{Mode: rules.Required}, time.Hour, slog.New(slog.DiscardHandler))
	for _, d := range []gateway.Decision{
		{Server: "read", Method: mcpmsg.Sample, Kind: "request", Verdict: gateway.Passed},
		{Server: "deep", Method: mcpmsg.Sample, Kind: "request", Verdict: gateway.Dropped},
		{Server: "call", Method: mcpmsg.CallTool, Kind: "request", Verdict: gateway.Dropped},
	} {
		if err := kept.Record(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := kept.Seq.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept.Close()
	text, r, _ := examine(t, Options{Config: configuration(t, "127.0.0.1:0", ""), DB: db})
	holds(t, "sampling", text, r, true, `warning  sampling   server "deep" asked for it and was refused: `)
	if strings.Count(text, "sampling   ") != 1 {
		t.Errorf("%s", text)
	}
}

// TestClassifiers: doctor says what judges the text of each server, once for servers of which the same is to be said.
func TestClassifiers(t *testing.T) {
	machine(t)
	text, _, _ := examine(t, Options{Config: configuration(t, "127.0.0.1:0", `servers:
  a: {command: [x], classify: [local]}
  b: {command: [x], classify: [local]}
  c: {command: [x], admission: {descriptions: "off"}}
  d: {command: [x], classify: [local], classify_also: [logs], admission: {descriptions: hold}}
`)})
	for _, want := range []string{
		`"a", "b": local (shadow) judge results, and in shadow mode prompts, resources, completions, sampling, elicitation, progress, logs, errors; descriptions: warn`,
		`"c": no classifier judges results; descriptions: off`, `"d": local (shadow) judge results, and in shadow mode logs; descriptions: hold`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestNames: tools and prompts that have another name at /mcp than PREFIX_NAME are said.
func TestNames(t *testing.T) {
	machine(t)
	db := install.Database(filepath.Join(t.TempDir(), "a.db"))
	s, err := install.OpenPins(t.Context(), db, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen, err := surface.ParseDump([]byte(`{"initialize":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}},
		"tools/list":[{"tools":[{"name":"a.b","inputSchema":{"type":"object"}},{"name":"plain","inputSchema":{"type":"object"}}]}],
		"prompts/list":[{"prompts":[{"name":"p/q"}]}],"resources/list":[{"resources":[{"uri":"a:b.c","name":"r"}]}]}`), surface.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := surface.NewPins(s, nil).Pin(t.Context(), "stdio:7", "stdio:7", seen); err != nil {
		t.Fatal(err)
	}
	text, r, _ := examine(t, Options{Config: configuration(t, "127.0.0.1:0", "servers:\n  my_db: {command: [x], pin: \"stdio:7\"}\n  other: {command: [y]}\n"), DB: db})
	a, _ := fleet.NameOf("my_db", "", "a.b")
	p, _ := fleet.NameOf("my_db", "", "p/q")
	holds(t, "names", text, r, true, `ok       names      "my_db": in the names at /mcp, "a.b" is `+a+`, "p/q" is `+p+"\n")
	if strings.Contains(text, "plain") || strings.Count(text, "names   ") != 1 {
		t.Errorf("%s", text)
	}
}
