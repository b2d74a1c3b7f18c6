// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

const twoTOML = `# mine
[mcp_servers.a]
command = "srv" # a
args = ["x"]
[mcp_servers.b]
url = "https://b.example/mcp"
http_headers = {A = "1"}
`

const twoYAML = `# mine
extensions:
  a:
    cmd: srv # a
    args: [x]
    type: stdio
  b:
    type: streamable_http
    uri: https://b.example/mcp
    headers:
      A: "1"
`

const tokenTOML = `[mcp_servers.b]
url = "https://b.example/mcp" # here
bearer_token_env_var = "TOKEN"
`

const secretTOML = `[mcp_servers.b]
url = "https://b.example/mcp?key=s3cret"
tool_timeout_sec = 3
`

const envsYAML = `extensions:
  b:
    type: sse
    uri: https://b.example/mcp # here
    headers: {A: "1"}
    envs:
      B: "2"
`

// rewritten is a file as a client writes it that decodes and encodes all of it.
func rewritten(t *testing.T, path, s string) string {
	t.Helper()
	v := map[string]any{}
	var out []byte
	var err error
	if filepath.Ext(path) == ".toml" {
		if err = toml.Unmarshal([]byte(s), &v); err == nil {
			out, err = toml.Marshal(v)
		}
	} else if err = yaml.Unmarshal([]byte(s), &v); err == nil {
		out, err = yaml.Marshal(v)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return string(out)
}

func values(t *testing.T, path, s string) map[string]any {
	t.Helper()
	v := map[string]any{}
	var err error
	if filepath.Ext(path) == ".toml" {
		err = toml.Unmarshal([]byte(s), &v)
	} else {
		err = yaml.Unmarshal([]byte(s), &v)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return v
}

// TestUndoLines: what a client or a person has done to a file in TOML or YAML since stays, each
// entry is restored by itself, and what cannot be is named.
func TestUndoLines(t *testing.T) {
	replace := func(pairs ...string) func(string) string {
		return func(s string) string {
			for i := 0; i < len(pairs); i += 2 {
				if !strings.Contains(s, pairs[i]) {
					t.Errorf("no %q in\n%s", pairs[i], s)
				}
			}
			return strings.NewReplacer(pairs...).Replace(s)
		}
	}
	for _, x := range []struct {
		name, file, before string
		edit               func(string) string
		want               string // the values of it are compared where the client has written the file anew
		edited             string // the entry that is left
	}{
		{"another member", "c.toml", twoTOML, replace("# a", "# a\nenabled = false"), strings.Replace(twoTOML, "# a", "# a\nenabled = false", 1), ""},
		{"more arguments", "c.toml", twoTOML, replace(`"x"]`, `"x", '--more']`), strings.Replace(twoTOML, `["x"]`, `["x", '--more']`, 1), ""},
		{"another server", "c.toml", twoTOML, replace("# mine", "# mine\n[mcp_servers.c]\ncommand='c'"), strings.Replace(twoTOML, "# mine", "# mine\n[mcp_servers.c]\ncommand='c'", 1), ""},
		{"one replaced", "c.toml", twoTOML, replace(binary+`" # a`, `mine" # a`), strings.Replace(twoTOML, `"srv" # a`+"\nargs = [\"x\"]", "\"mine\" # a\nargs = [\"wrap\", \"--name\", \"a\", \"--\", \"srv\", \"x\"]", 1), "a"},
		{"a header changed", "c.toml", twoTOML, replace(`"1"`, `"2"`), strings.Replace(twoTOML, `"1"`, `"2"`, 1), ""},
		{"a remote disabled", "c.toml", twoTOML, func(s string) string { return s + "enabled = false\n" }, twoTOML + "enabled = false\n", ""},
		{"a token's variable", "c.toml", tokenTOML, func(s string) string { return s + "enabled = false\n" }, tokenTOML + "enabled = false\n", ""},
		{"a secret URL", "c.toml", secretTOML, replace("s3cret", "0ther"), strings.Replace(secretTOML, "s3cret", "0ther", 1), ""},
		{"the URL changed", "c.toml", twoTOML, replace("b.example", "c.example"), strings.Replace(twoTOML, "url = \"https://b.example/mcp\"\nhttp_headers = {A = \"1\"}",
			"command = \"/opt/pellucid\"\nargs = [\"wrap\", \"--name\", \"b\", \"--url\", \"https://c.example/mcp\", \"--header\", \"A=env:PELLUCID_HEADER_A\"]\nenv = {PELLUCID_HEADER_A = \"1\"}", 1), "b"},
		{"a header changed", "c.yaml", twoYAML, replace(`PELLUCID_HEADER_A: "1"`, `PELLUCID_HEADER_A: "2"`), strings.Replace(twoYAML, `"1"`, `"2"`, 1), ""},
		{"a remote disabled", "c.yaml", twoYAML, func(s string) string { return s + "    enabled: false\n" }, twoYAML + "    enabled: false\n", ""},
		{"a remote with variables", "c.yaml", envsYAML, func(s string) string { return s + "    enabled: false\n" }, envsYAML + "    enabled: false\n", ""},
		{"put back by hand", "c.toml", twoTOML, func(string) string { return strings.ReplaceAll(twoTOML, `"srv"`, `'srv'`) }, strings.ReplaceAll(twoTOML, `"srv"`, `'srv'`), ""},
		{"written anew", "c.toml", twoTOML, nil, twoTOML, ""},
		{"another member", "c.yaml", twoYAML, replace("# a", "# a\n    enabled: false"), strings.Replace(twoYAML, "# a", "# a\n    enabled: false", 1), ""},
		{"more arguments", "c.yaml", twoYAML, replace(" x]", " x, --more]"), strings.Replace(twoYAML, "[x]", `["x", "--more"]`, 1), ""},
		{"one gone", "c.yaml", twoYAML, func(s string) string { return s[:strings.Index(s, "  b:")] }, twoYAML[:strings.Index(twoYAML, "  b:")], ""},
		{"one replaced", "c.yaml", twoYAML, replace(`"`+binary+`" # a`, "mine # a"), strings.Replace(twoYAML, "srv # a\n    args: [x]", "mine # a\n    args: [\"wrap\", \"--name\", \"a\", \"--\", \"srv\", x]", 1), "a"},
		{"written anew", "c.yaml", twoYAML, nil, twoYAML, ""},
	} {
		t.Run(x.file+" "+x.name, func(t *testing.T) {
			o, path := options(t), filepath.Join(t.TempDir(), x.file)
			if err := os.WriteFile(path, []byte(x.before), 0o600); err != nil {
				t.Fatal(err)
			}
			files := []Target{{Path: path, Format: Generic}}
			if _, err := o.Run(files, Job{}); err != nil {
				t.Fatal(err)
			}
			anew := x.edit == nil
			if anew {
				x.edit = func(s string) string { return rewritten(t, path, s) }
			}
			if err := os.WriteFile(path, []byte(x.edit(read(t, path))), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := o.Run(files, Job{Undo: true})
			if (x.edited != "") != errors.Is(err, errEdited) || x.edited == "" && err != nil {
				t.Fatalf("undo: %v", err)
			}
			for _, s := range r.Files[0].Servers {
				if (s.Action == Edited) != (s.Name == x.edited) {
					t.Errorf("%s: %s", s.Name, s.Action)
				}
			}
			got := read(t, path)
			if anew {
				if diff := cmp.Diff(values(t, path, x.want), values(t, path, got)); diff != "" {
					t.Errorf("values (-want +got):\n%s\n%s", diff, got)
				}
			} else if diff := cmp.Diff(x.want, got); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			if x.edited != "" {
				o.DangerouslyForce = true
				if _, err := o.Run(files, Job{Undo: true}); err != nil || !reflect.DeepEqual(values(t, path, x.before), values(t, path, read(t, path))) {
					t.Errorf("forced: %v\n%s", err, read(t, path))
				}
			}
		})
	}
}

// TestDamaged: a file that cannot be read is refused with one error that holds nothing of it, and
// is not written; --force puts the back-up in its place.
func TestDamaged(t *testing.T) {
	for _, x := range []struct{ file, before, damaged string }{
		{"c.toml", twoTOML, "s3cret = [\n"}, {"c.toml", twoTOML, twoTOML + "[mcp_servers.a]\n"}, {"c.toml", twoTOML, "a = 1\na = 2\n"},
		{"c.toml", twoTOML, "s = \"\xff\"\n"}, {"c.toml", twoTOML, "x = \"" + strings.Repeat("y", maxLines) + "\"\n"},
		{"c.yaml", twoYAML, "s3cret: [\n"}, {"c.yaml", twoYAML, twoYAML + "---\nb: 1\n"}, {"c.yaml", twoYAML, "a: 1\na: 2\n"}, {"c.yaml", twoYAML, "- a\n"},
		{"c.json", two, "{"}, {"c.json", two, `{"mcpServers": {"a": {}, "a": {}}}`}, {"c.json", two, "\x00"},
	} {
		o, path := options(t), filepath.Join(t.TempDir(), x.file)
		if err := os.WriteFile(path, []byte(x.before), 0o600); err != nil {
			t.Fatal(err)
		}
		files := []Target{{Path: path, Format: Generic}}
		if _, err := o.Run(files, Job{}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(x.damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, undo := range []bool{false, true} {
			_, err := o.Run(files, Job{Undo: undo})
			if !errors.Is(err, ErrFormat) || strings.Contains(err.Error(), "s3cret") || len(err.Error()) > 400 {
				t.Errorf("%s %.20q: %v", x.file, x.damaged, err)
			}
		}
		if read(t, path) != x.damaged {
			t.Errorf("%s %.20q was written", x.file, x.damaged)
		}
		o.DangerouslyForce = true
		if _, err := o.Run(files, Job{Undo: true}); err != nil || read(t, path) != x.before {
			t.Errorf("%s %.20q, forced: %v", x.file, x.damaged, err)
		}
	}
}

// TestLeftAlone: entries that cannot be edited in place are left alone with a reason, and the
// others of the file are not.
func TestLeftAlone(t *testing.T) {
	for _, x := range []struct{ file, before, why string }{
		{"c.toml", "[mcp_servers.x]\ncommand = 'srv'\n[other]\n[mcp_servers.x.env]\nA = '1'\n[mcp_servers.y]\ncommand = 'srv'\n", whyParts},
		{"c.toml", "[[mcp_servers.x]]\ncommand = 'srv'\n[mcp_servers.y]\ncommand = 'srv'\n", whyShape},
		{"c.toml", "[mcp_servers]\nx = {url='https://x.example/', bearer_token_env_var='A', env_http_headers={B='C'}}\ny = {command='srv'}\n", whyShape},
		{"c.toml", "[mcp_servers]\nx = {command='srv', args=[1]}\ny = {command='srv'}\n", whyShape},
		{"c.toml", "[mcp_servers]\nx = {url='https://x.example/', scopes=['a']}\ny = {command='srv'}\n", whyLogin},
		{"c.yaml", "extensions:\n  x: &x {cmd: srv}\n  y: {cmd: srv}\n", whyParts},
		{"c.yaml", "b: &b {A: '1'}\nextensions:\n  x:\n    cmd: srv\n    envs: *b\n  y: {cmd: srv}\n", whyParts},
		{"c.yaml", "b: &b {A: '1'}\nextensions:\n  x:\n    <<: *b\n    cmd: srv\n  y: {cmd: srv}\n", whyParts},
		{"c.yaml", "extensions:\n  x:\n    cmd: !!str srv\n  y: {cmd: srv}\n", whyParts},
		{"c.yaml", "extensions:\n  x: {uri: 'https://x.example/', headers: {A: $TOKEN}}\n  y: {cmd: srv}\n", whyFilled},
		{"c.yaml", "mcpServers:\n- {name: x, command: srv}\n- {name: x, command: srv}\n- {name: y, command: srv}\n", whyName},
		{"c.yaml", "mcpServers:\n- {name: x, url: 'https://x.example/', apiKey: a}\n- {name: y, command: srv}\n", whyKey},
		{"c.json", `{"mcp": {"x": {"type": "remote", "url": "https://x.example/", "oauth": {}}, "y": {"type": "local", "command": ["srv"]}}}`, whyLogin},
		{"c.json", `{"mcp": {"x": {"type": "local", "command": []}, "y": {"type": "local", "command": ["srv"]}}}`, whyShape},
	} {
		o, path := options(t), filepath.Join(t.TempDir(), x.file)
		if err := os.WriteFile(path, []byte(x.before), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := o.Run([]Target{{Path: path, Format: Generic}}, Job{})
		if err != nil {
			t.Errorf("%s: %v", x.before, err)
			continue
		}
		for _, s := range r.Files[0].Servers {
			if want := map[bool]Effect{true: Skipped, false: Wrapped}[s.Name == "x"]; s.Action != want || s.Name == "x" && s.Why != x.why {
				t.Errorf("%s%s: %s: %q, want %q", x.before, s.Name, s.Action, s.Why, x.why)
			}
		}
	}
}

// TestReadOnly: where nothing can be written, the error says so, and a dry run works.
func TestReadOnly(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 && !noWrite(t) {
		t.Skip("this user writes everywhere")
	}
	o := options(t)
	dir := t.TempDir()
	files := []Target{{Path: filepath.Join(dir, "c.toml"), Format: Generic}}
	if err := errors.Join(os.WriteFile(files[0].Path, []byte(twoTOML), 0o400), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if _, err := o.Run(files, Job{DryRun: true}); err != nil {
		t.Error(err)
	}
	if r, err := o.Run(files, Job{}); err == nil || r.Files[0].Changed || r.Files[0].Error == "" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := o.undo(files[0].Path); !errors.Is(err, errNoRecord) || read(t, files[0].Path) != twoTOML {
		t.Errorf("a record of what did not happen: %v", err)
	}
}

// noWrite reports whether the modes of directories hold for this user.
func noWrite(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	return os.WriteFile(filepath.Join(dir, "f"), nil, 0o600) != nil
}

// TestOthers: clients that are on the machine and cannot be protected are found.
func TestOthers(t *testing.T) {
	top := t.TempDir()
	for _, path := range []string{"home/.config/JetBrains/Idea2026.2/options/llm.mcpServers.xml", "home/.kiro/settings/mcp.json", "home/.config/Claude/Claude Extensions/x"} {
		path = filepath.Join(top, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, o := range Others(machineOf(top)) {
		if got = append(got, o.Name); o.Advice == "" || !strings.HasPrefix(o.Path, top) {
			t.Errorf("%+v", o)
		}
	}
	if diff := cmp.Diff([]string{"JetBrains AI Assistant", "Claude Desktop extensions", "Kiro"}, got); diff != "" {
		t.Error(diff)
	}
}
