// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const binary = "/opt/pellucid"

// options has every remote server answer without a login.
func options(t *testing.T) Options {
	return Options{Binary: binary, Records: filepath.Join(t.TempDir(), "protect"), Ask: open}
}

func open(string) Login { return Open }

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func protect(t *testing.T, o Options, path string) *Change {
	t.Helper()
	c, err := o.Protect(path, Generic)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	return c
}

// entries is how single entries are rewritten; why, if not "", says that they are not.
var entries = []struct{ name, in, want, why string }{
	{"command and args", `{"command":"npx","args":["-y","srv"]}`,
		`{"command":"/opt/pellucid","args":["wrap", "--name", "s", "--", "npx", "-y","srv"]}`, ""},
	{"no args", `{"command": "srv"}`,
		`{"command": "/opt/pellucid", "args": ["wrap", "--name", "s", "--", "srv"]}`, ""},
	{"no args, lines", "{\n  \"command\": \"srv\"\n}",
		"{\n  \"command\": \"/opt/pellucid\",\n  \"args\": [\"wrap\", \"--name\", \"s\", \"--\", \"srv\"]\n}", ""},
	{"empty args", `{"command":"srv","args":[ ]}`,
		`{"command":"/opt/pellucid","args":["wrap", "--name", "s", "--", "srv" ]}`, ""},
	{"args on lines", "{\"command\":\"npx\",\n \"args\": [\n  \"-y\",\n  \"srv\"\n ]}",
		"{\"command\":\"/opt/pellucid\",\n \"args\": [\n  \"wrap\",\n  \"--name\",\n  \"s\",\n  \"--\",\n  \"npx\",\n  \"-y\",\n  \"srv\"\n ]}", ""},
	{"args before command", `{"args":["a"],"command":"srv"}`,
		`{"args":["wrap", "--name", "s", "--", "srv", "a"],"command":"/opt/pellucid"}`, ""},
	{"env is passed by name", `{"command":"srv","args":["a"],"env":{"TOKEN":"t0p","B":"2"}}`,
		`{"command":"/opt/pellucid","args":["wrap", "--name", "s", "--env", "TOKEN", "--env", "B", "--", "srv", "a"],"env":{"TOKEN":"t0p","B":"2"}}`, ""},
	{"unknown members and spelling stay", `{"x":1.50,"command":"\u0073rv","args":["\/a"],"timeout":1e3,"disabled":true}`,
		`{"x":1.50,"command":"/opt/pellucid","args":["wrap", "--name", "s", "--", "srv", "\/a"],"timeout":1e3,"disabled":true}`, ""},
	{"comments stay", "{/*a*/\"command\":/*b*/\"srv\",//c\n\"args\":[//d\n\"a\",],}",
		"{/*a*/\"command\":/*b*/\"/opt/pellucid\",//c\n\"args\":[\"wrap\", \"--name\", \"s\", \"--\", \"srv\",//d\n\"a\",],}", ""},
	{"older Zed", `{"command":{"path":"srv","args":["a"],"env":{"K":"v"}},"settings":{}}`,
		`{"command":{"path":"/opt/pellucid","args":["wrap", "--name", "s", "--env", "K", "--", "srv", "a"],"env":{"K":"v"}},"settings":{}}`, ""},
	{"url", `{"url":"https://a.example/mcp"}`,
		`{"command": "/opt/pellucid", "args": ["wrap", "--name", "s", "--url", "https://a.example/mcp"]}`, ""},
	{"url, type and headers", "{\n \"type\": \"http\",\n \"url\": \"https://a.example/mcp\",\n \"headers\": {\"Authorization\": \"Bearer t0p\", \"X-A\": \"${input:x}\"}\n}",
		"{\n \"type\": \"stdio\",\n \"command\": \"/opt/pellucid\",\n \"args\": [\"wrap\", \"--name\", \"s\", \"--url\", \"https://a.example/mcp\", " +
			"\"--header\", \"Authorization=env:PELLUCID_HEADER_AUTHORIZATION\", \"--header\", \"X-A=env:PELLUCID_HEADER_X_A\"],\n" +
			" \"env\": {\"PELLUCID_HEADER_AUTHORIZATION\": \"Bearer t0p\", \"PELLUCID_HEADER_X_A\": \"${input:x}\"}\n}", ""},
	{"url of the older transport", `{"type":"SSE","url":"https://a.example/x","headers":{"A":"1"}}`,
		`{"type":"stdio","command": "/opt/pellucid", "args": ["wrap", "--name", "s", "--url", "https://a.example/x", "--transport", "sse", "--header", "A=env:PELLUCID_HEADER_A"],"env":{"PELLUCID_HEADER_A":"1"}}`, ""},
	{"headers of one variable", `{"url":"https://a.example","headers":{"X-A":"1","x_a":"2"}}`,
		`{"command": "/opt/pellucid", "args": ["wrap", "--name", "s", "--url", "https://a.example", "--header", "X-A=env:PELLUCID_HEADER_X_A", "--header", "x_a=env:PELLUCID_HEADER_X_A_2"],"env":{"PELLUCID_HEADER_X_A":"1","PELLUCID_HEADER_X_A_2":"2"}}`, ""},
	{"url with a secret", `{"serverUrl":"https://a.example/mcp?key=t0p"}`,
		`{"command": "/opt/pellucid", "args": ["wrap", "--name", "s", "--url", "env:PELLUCID_URL"], "env": {"PELLUCID_URL": "https://a.example/mcp?key=t0p"}}`, ""},
	{"url with a secret, and headers", `{"url":"https://a.example/?k=t0p","headers":{"A":"1"}}`,
		`{"command": "/opt/pellucid", "args": ["wrap", "--name", "s", "--url", "env:PELLUCID_URL", "--header", "A=env:PELLUCID_HEADER_A"],"env":{"PELLUCID_URL": "https://a.example/?k=t0p", "PELLUCID_HEADER_A":"1"}}`, ""},
	{"url with a key in its path", `{"url":"https://a.example/s/0123456789abcdef0123456789/mcp"}`,
		`{"command": "/opt/pellucid", "args": ["wrap", "--name", "s", "--url", "env:PELLUCID_URL"], "env": {"PELLUCID_URL": "https://a.example/s/0123456789abcdef0123456789/mcp"}}`, ""},
	{"url that the client resolves", `{"url":"${env:HOST}/mcp","env":{}}`,
		`{"command": "/opt/pellucid", "args": ["wrap", "--name", "s", "--url", "env:PELLUCID_URL"],"env":{"PELLUCID_URL": "${env:HOST}/mcp"}}`, ""},

	{"wrapped by hand", `{"command":"pellucid","args":["wrap","--","srv"]}`, "", already},
	{"cmd.exe keeps its place", `{"command":"cmd","args":["/c","npx","-y","srv"]}`,
		`{"command":"/opt/pellucid","args":["wrap", "--name", "s", "--", "cmd", "/c","npx","-y","srv"]}`, ""},
	{"wrapped by hand, through cmd.exe", `{"command":"cmd.exe","args":["/d","/s","/c","pellucid","wrap","--","srv"]}`, "", already},
	{"wrapped by hand, in a word of cmd.exe", `{"command":"cmd","args":["/c","pellucid wrap --classify -- srv"]}`, "", already},
	{"wrapped by hand, elsewhere", `{"command":"Pellucid.EXE","args":["wrap","--","srv"]}`, "", already},
	{"websocket", `{"type":"ws","url":"wss://a.example/"}`, "", whySocket},
	{"password", `{"url":"https://u:p@a.example/"}`, "", whyUser},
	{"fragment", `{"url":"https://a.example/#x"}`, "", whyURL},
	{"not HTTP", `{"url":"ftp://a.example/"}`, "", whyURL},
	{"login", `{"url":"https://a.example/","oauth":{}}`, "", whyLogin},
	{"extension", `{"settings":{}}`, "", whyNothing},
	{"both", `{"command":"srv","url":"https://a.example/"}`, "", whyBoth},
	{"envFile", `{"command":"srv","envFile":".env"}`, "", whyEnvFile},
	{"odd variable", `{"command":"srv","env":{"--cwd":"/"}}`, "", whyVariable},
	{"odd header", `{"url":"https://a.example/","headers":{"A":"1","B=env:X":"1"}}`, "", whyVariable},
	{"empty header", `{"url":"https://a.example/","headers":{"A":""}}`, "", whyVariable},
	{"headers and env", `{"url":"https://a.example/","headers":{"A":"1"},"env":{"B":"1"}}`, "", whyEnvHeader},
	{"not an object", `"srv"`, "", whyShape},
	{"command is a list", `{"command":["a"]}`, "", whyShape},
	{"args is a string", `{"command":"srv","args":"a"}`, "", whyShape},
}

func TestEntries(t *testing.T) {
	for _, tt := range entries {
		t.Run(tt.name, func(t *testing.T) {
			const head, tail = "// mine\n{\"mcpServers\": {\"s\": ", "}, \"other\": [1.0]}\n"
			in := head + tt.in + tail
			o, path := options(t), write(t, in)
			c := protect(t, o, path)
			if len(c.Servers) != 1 {
				t.Fatalf("%d servers", len(c.Servers))
			}
			want := head + tt.want + tail
			if tt.why != "" {
				want = in
			}
			if diff := cmp.Diff(want, read(t, path)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			want = tt.why
			if got := c.Servers[0].Why; got != want && c.Servers[0].Action != Already {
				t.Errorf("why = %q, want %q", got, want)
			}
			if tt.why != "" {
				if _, err := o.undo(path); !errors.Is(err, errNoRecord) {
					t.Errorf("Undo: %v", err)
				}
				return
			}
			after := read(t, path)
			again := protect(t, o, path)
			if again.changes() || again.Servers[0].Action != Already || read(t, path) != after {
				t.Errorf("the second time: %v", again.Servers[0].Action)
			}
			undo(t, o, path)
			if diff := cmp.Diff(in, read(t, path)); diff != "" {
				t.Errorf("undone (-want +got):\n%s", diff)
			}
		})
	}
}

func undo(t *testing.T, o Options, path string) {
	t.Helper()
	c, err := o.undo(path)
	if err == nil {
		err = c.Apply()
	}
	if err != nil {
		t.Fatalf("undo: %v", err)
	}
}

const two = `{"mcpServers": {
  "a": {"command": "srv", "env": {"K": "v"}},
  "b": {"url": "https://b.example/mcp", "headers": {"A": "1"}}
}}`

// TestUndoLater: what a client or a person has done to the file since stays.
func TestUndoLater(t *testing.T) {
	for _, tt := range []struct {
		name    string
		edit    func(string) string
		want    string // "": as before, but for white space
		edited  bool
		forced  string
		garbage bool
	}{
		{name: "written anew", edit: reformat, want: two},
		{name: "a server more", edit: func(s string) string { return strings.Replace(s, `"a":`, `"c": {"command": "c"}, "a":`, 1) },
			want: strings.Replace(two, `"a":`, `"c": {"command": "c"}, "a":`, 1)},
		{name: "a server less", edit: func(s string) string { return s[:strings.Index(s, ",\n  \"b\"")] + "}}" },
			want: two[:strings.Index(two, ",\n  \"b\"")] + "}}"},
		{name: "another value", edit: func(s string) string { return strings.Replace(s, `"v"`, `"w"`, 1) },
			want: strings.Replace(two, `"v"`, `"w"`, 1)},
		{name: "another header", edit: func(s string) string { return strings.Replace(s, `"1"`, `"2"`, 1) }, want: strings.Replace(two, `"1"`, `"2"`, 1)},
		{name: "another URL", edit: func(s string) string { return strings.Replace(s, "b.example", "c.example", 1) }, edited: true, forced: two},
		{name: "a variable more", edit: func(s string) string { return strings.Replace(s, `"1"`, `"1", "B": "2"`, 1) }, edited: true, forced: two},
		{name: "another command", edit: func(s string) string { return strings.Replace(s, `"srv"`, `"other"`, 1) }, want: strings.Replace(two, `"srv"`, `"other"`, 1)},
		{name: "put back by hand", edit: func(string) string { return reformat(two) }, want: two},
		{name: "broken", edit: func(s string) string { return s[1:] }, garbage: true, forced: two},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, path := options(t), write(t, two)
			protect(t, o, path)
			if err := os.WriteFile(path, []byte(tt.edit(read(t, path))), 0o640); err != nil {
				t.Fatal(err)
			}
			_, err := o.undo(path)
			if errors.Is(err, errEdited) != tt.edited || errors.Is(err, ErrFormat) != tt.garbage {
				t.Fatalf("Undo: %v", err)
			}
			want := tt.want
			if err != nil {
				o.DangerouslyForce, want = true, tt.forced
			}
			undo(t, o, path)
			if diff := cmp.Diff(reformat(want), reformat(read(t, path))); diff != "" {
				t.Errorf("undone (-want +got):\n%s", diff)
			}
			if _, err := o.undo(path); !errors.Is(err, errNoRecord) {
				t.Errorf("Undo, again: %v", err)
			}
		})
	}
}

// TestUndoPart: what can be taken back is, what cannot is named and stays as a person has
// edited it, and can be forced later.
func TestUndoPart(t *testing.T) {
	const was = `{"mcpServers": {"a": {"command": "one"}, "b": {"command": "two", "args": ["x"]}, "c": {"command": "three"}}}`
	o, path := options(t), write(t, was)
	protect(t, o, path)
	now := strings.Replace(read(t, path), `"two", "x"`, `"two", "x", "--more", "-- y"`, 1)
	if !strings.Contains(now, "--more") {
		t.Fatal(now)
	}
	i := strings.Index(now, `"c": `)
	edited := now[:i] + `"c": {"command": "mine", "args": ["z"]}, "d": {"command": "four"}}}`
	if err := os.WriteFile(path, []byte(edited), 0o640); err != nil {
		t.Fatal(err)
	}
	c, err := o.undo(path)
	if !errors.Is(err, errEdited) || c.Count(Restored) != 2 || c.Count(Edited) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	want := `{"mcpServers": {"a": {"command": "one"}, "b": {"command": "two", "args": ["x", "--more", "-- y"]}, "c": {"command": "mine", "args": ["z"]}, "d": {"command": "four"}}}`
	if got := read(t, path); got != want {
		t.Errorf("undone: %s", got)
	}
	if _, err := o.undo(path); !errors.Is(err, errEdited) {
		t.Errorf("again: %v", err)
	}
	o.DangerouslyForce = true
	undo(t, o, path)
	if got := read(t, path); got != strings.Replace(want, `{"command": "mine", "args": ["z"]}`, `{"command": "three"}`, 1) {
		t.Errorf("forced: %s", got)
	}
}

func reformat(s string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(s), "", "  ") != nil {
		return s
	}
	return b.String()
}

// TestAgain: a server that came later, and a program that has moved.
func TestAgain(t *testing.T) {
	o, path := options(t), write(t, two)
	protect(t, o, path)
	more := strings.Replace(read(t, path), "{\n", "{\n  \"c\": {\"command\": \"c\"},\n", 1)
	if err := os.WriteFile(path, []byte(more), 0o640); err != nil {
		t.Fatal(err)
	}
	o.Binary = "/new/pellucid"
	if c := protect(t, o, path); c.Count(Wrapped) != 3 {
		t.Errorf("%d wrapped", c.Count(Wrapped))
	}
	if got := read(t, path); strings.Contains(got, "/opt/") || strings.Count(got, "/new/pellucid") != 3 {
		t.Errorf("file: %s", got)
	}
	undo(t, o, path)
	want := strings.Replace(two, "{\n", "{\n  \"c\": {\"command\": \"c\"},\n", 1)
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}

// TestFlagsSurviveAgain: another run takes no argument of wrap away that the operator has written
// into an entry, and says so where it differs from a flag of the run.
func TestFlagsSurviveAgain(t *testing.T) {
	for name, in := range map[string]string{
		"mcp.json":    `{"mcpServers":{"a":{"command":"srv","args":["x"]},"b":{"command":"b"}}}`,
		"config.toml": "[mcp_servers.a]\ncommand = \"srv\"\nargs = [\"x\"]\n[mcp_servers.b]\ncommand = \"b\"\n",
		"config.yaml": "extensions:\n  a:\n    cmd: srv\n    args: [x]\n  b:\n    cmd: b\n",
	} {
		o, path := options(t), filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(in), 0o640); err != nil {
			t.Fatal(err)
		}
		protect(t, o, path)
		edited := strings.Replace(read(t, path), `"--name", "a"`, `"--name", "a", "--policy", "strict"`, 1)
		edited = strings.Replace(edited, `"x"`, `"y"`, 1)
		if err := os.WriteFile(path, []byte(edited), 0o640); err != nil {
			t.Fatal(err)
		}
		if c := protect(t, o, path); c.changes() || c.Count(Already) != 2 {
			t.Errorf("%s: %d already, file:\n%s", name, c.Count(Already), read(t, path))
		}
		o.Flags.Policy = "observe"
		c := protect(t, o, path)
		if got := read(t, path); c.Servers[0].Why != whyFlags || !strings.Contains(got, `"--policy", "strict"`) || !strings.Contains(got, `"--policy", "observe"`) {
			t.Errorf("%s: %+v, file:\n%s", name, c.Servers[0], got)
		}
		o.Flags = Flags{}
		if c := protect(t, o, path); c.changes() || c.Count(Already) != 2 {
			t.Errorf("%s: the flags of an earlier run count against an entry: %+v", name, c.Servers)
		}
		undo(t, o, path)
		if got := read(t, path); strings.Contains(got, "wrap") || !strings.Contains(got, "srv") {
			t.Errorf("%s: undone:\n%s", name, got)
		}
	}
}

// TestFlagsWithoutRecord: an entry that was put behind Pellucid by hand does not get the flags of a
// run, and the run says so.
func TestFlagsWithoutRecord(t *testing.T) {
	for flags, want := range map[Flags]Effect{
		{}: Already, {Policy: "strict"}: Already, {Hold: "secret"}: Already, {Profile: "mcp"}: Skipped,
		{Policy: "observe"}: Skipped, {Policy: Without}: Skipped, {Evidence: Without}: Already,
	} {
		o := options(t)
		o.Flags = flags
		path := write(t, `{"mcpServers":{"a":{"command":"pellucid","args":["wrap","--policy","strict","--set","hold=secret","--","srv","--profile","mcp"]}}}`)
		if c := protect(t, o, path); c.Servers[0].Action != want {
			t.Errorf("%+v: %+v, want %s", flags, c.Servers[0], want)
		}
	}
}

// TestOwnVariables: an entry cannot say where the program that is put before it keeps its state.
// What an operator sets in an entry that is behind it stays.
func TestOwnVariables(t *testing.T) {
	for _, entry := range []string{`{"command":"srv","env":{"XDG_CONFIG_HOME":"."}}`, `{"command":"srv","env":{"HOME":"."}}`, `{"command":"srv","env":{"PELLUCID_STATE":"./state"}}`, `{"url":"https://a.example/","env":{"pellucid_db":"x"}}`} {
		in := `{"mcpServers":{"a":` + entry + `}}`
		path := write(t, in)
		if c := protect(t, options(t), path); c.Servers[0].Why != whyOurs || read(t, path) != in {
			t.Errorf("%s: %+v", entry, c.Servers[0])
		}
	}
	o, path := options(t), write(t, `{"mcpServers":{"a":{"command":"srv","env":{"A":"1"}}}}`)
	protect(t, o, path)
	if err := os.WriteFile(path, []byte(strings.Replace(read(t, path), `"A":"1"`, `"A":"1","PELLUCID_STATE":"/s"`, 1)), 0o640); err != nil {
		t.Fatal(err)
	}
	if protect(t, o, path); !strings.Contains(read(t, path), `"wrap"`) {
		t.Errorf("no longer behind the program: %s", read(t, path))
	}
}

// TestEditedSurvivesAgain: protecting anew must not lose the original of an entry
// that cannot be restored at present.
func TestEditedSurvivesAgain(t *testing.T) {
	o, path := options(t), write(t, two)
	protect(t, o, path)
	edited := strings.Replace(strings.Replace(read(t, path), `"b": {`, `"c": {"command": "c"}, "b": {`, 1), "b.example", "x.example", 1)
	if err := os.WriteFile(path, []byte(edited), 0o640); err != nil {
		t.Fatal(err)
	}
	protect(t, o, path)
	o.DangerouslyForce = true
	undo(t, o, path)
	if got, want := read(t, path), strings.Replace(two, `"b": {`, `"c": {"command": "c"}, "b": {`, 1); got != want {
		t.Errorf("undone: %s", got)
	}
}

func TestPlaces(t *testing.T) {
	const in = `{"mcpServers":{"a":{"command":"a"}},"projects":{"/p":{"mcpServers":{"a":{"command":"a"}},"history":["\ud800 cut"]},"/q":{}},
"servers":{"b b":{"command":"b"},"\u202e":{"command":"b"}},"mcp":{"servers":{"b-b":{"command":"c"}}},"context_servers":{"d":{"command":"d"}}}`
	o, path := options(t), write(t, in)
	c := protect(t, o, path)
	if c.Count(Wrapped) != 6 || len(c.Servers) != 6 {
		t.Fatalf("servers: %+v", c.Servers)
	}
	got := read(t, path)
	for _, name := range []string{`"--name", "a"`, `"--name", "b-b"`, `"--name", "server"`, `"--name", "b-b-2"`, `"--name", "d"`, `"--name", "a-2"`} {
		if !strings.Contains(got, name) {
			t.Errorf("no %s in %s", name, got)
		}
	}
	undo(t, o, path)
	if read(t, path) != in {
		t.Error("not restored")
	}
}

func TestSkip(t *testing.T) {
	o, path := options(t), write(t, two)
	o.Skip = []string{"b"}
	if c := protect(t, o, path); c.Count(Skipped) != 1 || c.Count(Wrapped) != 1 {
		t.Errorf("servers: %+v", c.Servers)
	}
}

func TestRefused(t *testing.T) {
	for name, in := range map[string]string{
		"no JSON": `{"mcpServers"`, "twice": `{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}`, "a list": `[]`, "empty": ``,
	} {
		path := write(t, in)
		if _, err := options(t).Protect(path, Generic); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, in := range map[string]string{"mcp.json": "\xff\xfe{\x00}\x00", "mcp.yaml": "\xfe\xff\x00a\x00:", "mcp.toml": "a\x00=\x00"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := options(t).Protect(path, Generic); !errors.Is(err, ErrFormat) || !strings.HasSuffix(err.Error(), ": it is UTF-16: save it as UTF-8") {
			t.Errorf("%s in UTF-16: %v", name, err)
		}
	}
	path := write(t, "{} // c")
	if _, err := options(t).Protect(path, Format{}); !errors.Is(err, ErrFormat) {
		t.Errorf("a comment where the client reads none: %v", err)
	}
	if _, err := options(t).Protect(t.TempDir(), Generic); err == nil {
		t.Error("a directory was taken")
	}
}

func TestWrite(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links are of unix")
	}
	o, path := options(t), write(t, two)
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	c, err := o.Protect(link, Generic)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is a link no more")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o604 {
		t.Errorf("mode %v", info.Mode())
	}
	records, err := os.ReadDir(o.Records)
	if err != nil || len(records) != 2 {
		t.Fatalf("records: %v, %v", records, err)
	}
	for _, r := range records {
		if info, _ := r.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", r.Name(), info.Mode())
		}
	}
	if got := read(t, o.backup(link)); got != two {
		t.Errorf("back-up: %s", got)
	}
}

// TestMeanwhile: a file that changes between the plan and the write is left alone.
func TestMeanwhile(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"other bytes":   func(p string) error { return os.WriteFile(p, []byte("{}"), 0o640) },
		"other file":    func(p string) error { return os.Rename(filepath.Join(filepath.Dir(p), "new"), p) },
		"no file":       os.Remove,
		"same but anew": func(p string) error { return errors.Join(os.Remove(p), os.WriteFile(p, []byte(two), 0o640)) },
	} {
		t.Run(name, func(t *testing.T) {
			o, path := options(t), write(t, two)
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), "new"), []byte("{}"), 0o640); err != nil {
				t.Fatal(err)
			}
			c, err := o.Protect(path, Generic)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			if err := c.Apply(); !errors.Is(err, errChanged) && name != "same but anew" {
				t.Errorf("Apply: %v", err)
			}
			if after, _ := os.ReadFile(path); name != "same but anew" && !bytes.Equal(before, after) {
				t.Errorf("it was written: %s", after)
			}
			if _, err := o.undo(path); name == "other bytes" && !errors.Is(err, errNoRecord) {
				t.Errorf("there is a record of what did not happen: %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*"))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestMeanwhileAgain: a second run that fails leaves the record of the first.
func TestMeanwhileAgain(t *testing.T) {
	o, path := options(t), write(t, two)
	protect(t, o, path)
	moved := o
	moved.Binary = "/new/pellucid"
	c, err := moved.Protect(path, Generic)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(read(t, path)+"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(); !errors.Is(err, errChanged) {
		t.Fatalf("Apply: %v", err)
	}
	undo(t, o, path)
	if got := read(t, path); got != two+"\n" {
		t.Errorf("undone: %s", got)
	}
}

// TestDiffMasks: no secret stands in what is shown.
func TestDiffMasks(t *testing.T) {
	in := `{"primaryApiKey": "s3cret-0", "mcpServers": {
  "a": {"command": "srv", "args": ["--api-key", "s3cret-1", "--token=s3cret-2", "-e", "API_KEY=s3cret-3", "dGhpcyBpcyBhIHNlY3JldDEyMzQ=", "plain",
    "{\"token\": \"s3cret-10\"}", "{'Authorization': 's3cret-11'}"],
    "env": {"TOKEN": "s3cret-4"}, // was s3cret-5
    "password": "s3cret-6"},
  "c": {"command": "TOKEN=s3cret-12 srv"},
  "b": {"url": "https://b.example/s3cret-7-0123456789abcdef/mcp?key=s3cret-8", "headers": {"Authorization": "Bearer s3cret-9"}}
}}`
	path := write(t, in)
	c, err := options(t).Protect(path, Generic)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(c.diff(), "\n")
	if strings.Contains(got, "s3cret") || strings.Contains(got, "dGhpcyB") {
		t.Errorf("a secret is shown:\n%s", got)
	}
	for _, want := range []string{`@@ "mcpServers" / "a" @@`, `"plain"`, `"TOKEN": "********"`, `"env:PELLUCID_URL"`, `"Authorization=env:PELLUCID_HEADER_AUTHORIZATION"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestLocate(t *testing.T) {
	for _, tt := range []struct {
		os, client, path string
		env              map[string]string
	}{
		{"linux", "claude-desktop", "home/.config/Claude/claude_desktop_config.json", nil},
		{"linux", "claude-desktop", "xdg/Claude/claude_desktop_config.json", map[string]string{"XDG_CONFIG_HOME": "xdg"}},
		{"darwin", "claude-desktop", "home/Library/Application Support/Claude/claude_desktop_config.json", nil},
		{"windows", "claude-desktop", "roaming/Claude/claude_desktop_config.json", map[string]string{"APPDATA": "roaming"}},
		{"windows", "claude-desktop", "local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json", map[string]string{"LOCALAPPDATA": "local"}},
		{"windows", "claude-desktop", "home/AppData/Local/Packages/Claude_x/LocalCache/Roaming/Claude/claude_desktop_config.json", nil},
		{"linux", "claude-code", "home/.claude.json", nil},
		{"linux", "claude-code", "cc/.claude.json", map[string]string{"CLAUDE_CONFIG_DIR": "cc"}},
		{"linux", "claude-code", "dir/.mcp.json", nil},
		{"windows", "cursor", "home/.cursor/mcp.json", nil},
		{"darwin", "cursor", "dir/.cursor/mcp.json", nil},
		{"linux", "vscode", "home/.config/Code/User/mcp.json", nil},
		{"linux", "vscode", "home/.config/Code/User/profiles/-3a[b]/mcp.json", nil},
		{"darwin", "vscode", "home/Library/Application Support/Code - Insiders/User/mcp.json", nil},
		{"windows", "vscode", "home/AppData/Roaming/Code/User/mcp.json", nil},
		{"linux", "vscode", "dir/.vscode/mcp.json", nil},
		{"darwin", "windsurf", "home/.codeium/windsurf/mcp_config.json", nil},
		{"linux", "zed", "home/.config/zed/settings.json", nil},
		{"darwin", "zed", "home/.config/zed/settings.json", nil},
		{"windows", "zed", "roaming/zed/settings.json", map[string]string{"APPDATA": "roaming"}},
	} {
		t.Run(tt.os+" "+tt.path, func(t *testing.T) {
			top := t.TempDir()
			path := filepath.Join(top, filepath.FromSlash(tt.path))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			m := Machine{OS: tt.os, Home: filepath.Join(top, "home"), Dir: filepath.Join(top, "dir"), Getenv: func(name string) string {
				if v := tt.env[name]; v != "" {
					return filepath.Join(top, v)
				}
				return ""
			}}
			all := Locate(m, "")
			if len(all) != 1 || all[0].Path != path || all[0].Client != tt.client || all[0].project != strings.HasPrefix(tt.path, "dir/") {
				t.Errorf("Locate = %+v", all)
			}
			if other := Locate(m, "no such client"); len(other) > 0 {
				t.Errorf("Locate of another = %+v", other)
			}
		})
	}
}

// TestLocatePackage: where Claude Desktop is a package of Windows, its own file is named as the one that it reads, also
// before it is there.
func TestLocatePackage(t *testing.T) {
	m := Machine{OS: "windows", Home: t.TempDir(), Getenv: func(string) string { return "" }}
	at := func(path string) string { return filepath.Join(m.Home, "AppData", filepath.FromSlash(path)) }
	put := func(path string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(path)), 0o700), os.WriteFile(at(path), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	found := func() (all []string) {
		for _, target := range Locate(m, "claude-desktop") {
			all = append(all, target.Path, target.ReadInstead)
		}
		return all
	}
	const own, packaged = "Roaming/Claude/claude_desktop_config.json", "Local/Packages/Claude_b/LocalCache/Roaming/Claude/claude_desktop_config.json"
	put(own)
	put("Local/Packages/NotClaude_x/LocalCache/Roaming/Claude/claude_desktop_config.json")
	for _, step := range []struct {
		put  string
		want []string
	}{
		{own, []string{at(own), ""}},
		{"Local/Packages/Claude_b/SystemAppData/x", []string{at(own), at(packaged)}},
		{packaged, []string{at(packaged), "", at(own), at(packaged)}},
		{"Local/Packages/Claude_a/LocalCache/x", []string{at(packaged), "", at(own), at(packaged)}},
	} {
		put(step.put)
		if diff := cmp.Diff(step.want, found()); diff != "" {
			t.Errorf("with %s (-want +got):\n%s", step.put, diff)
		}
	}
	put("Local/Packages/Claude_b/LocalCache/Roaming/Claude/Claude Extensions/x")
	if all := Others(m); len(all) != 1 || all[0].Name != "Claude Desktop extensions" {
		t.Errorf("Others = %+v", all)
	}
}
