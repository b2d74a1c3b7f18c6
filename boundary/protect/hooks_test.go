// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// hookMachine is a machine with the folders of the hosts, and Claude Code's settings where src is not empty.
func hookMachine(t *testing.T, src string) (m Machine, settings string) {
	t.Helper()
	home := t.TempDir()
	for _, dir := range []string{".claude", ".codex", ".gemini", ".config/opencode"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	settings = filepath.Join(home, ".claude", "settings.json")
	if src != "" {
		if err := os.WriteFile(settings, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{OS: "linux", Home: home, Getenv: func(string) string { return "" }}, settings
}

func runHooks(t *testing.T, o Options, m Machine, client string, job Job) []HookReport {
	t.Helper()
	all, err := o.Hooks(m, client, job)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestHooks: the hooks stand beside those of others, a second run changes nothing, and undo restores every byte.
func TestHooks(t *testing.T) {
	for name, src := range map[string]string{
		"empty object":    "{}",
		"members":         "{\n  \"model\": \"x\"\n}\n",
		"one line":        `{"model":"x"}`,
		"hooks of other":  "{\r\n\t\"hooks\": {\r\n\t\t\"PostToolUse\": [\r\n\t\t\t{\"matcher\": \"Edit\", \"hooks\": []}\r\n\t\t],\r\n\t\t\"Stop\": []\r\n\t}\r\n}",
		"empty hooks":     `{"hooks": {"PreToolUse": []}, "z": 1.50}`,
		"comments":        "// mine\n{\n  /* a */ \"hooks\": {\n    \"PreToolUse\": [ /* none */ ], // b\n  },\n}\n",
		"byte order mark": "\xef\xbb\xbf{\"a\": 1}",
	} {
		t.Run(name, func(t *testing.T) {
			m, settings := hookMachine(t, src)
			o := options(t)
			if got := runHooks(t, o, m, "claude-code", Job{DryRun: true}); len(got) != 1 || got[0].Action != Hooked || !got[0].Changed || read(t, settings) != src {
				t.Fatalf("dry run: %+v", got)
			}
			runHooks(t, o, m, "claude-code", Job{})
			after := read(t, settings)
			f, err := parse([]byte(after), JSON, true)
			if err != nil {
				t.Fatalf("%v: %s", err, after)
			}
			for _, event := range hookings[0].events {
				list := f.root.get("hooks").get(event).list()
				if len(list) == 0 || !strings.HasSuffix(list[len(list)-1].get("hooks").list()[0].get("command").str(), " hook claude-code") {
					t.Errorf("%s: %s", event, after)
				}
			}
			if got := runHooks(t, o, m, "claude-code", Job{}); got[0].Action != Already || read(t, settings) != after {
				t.Errorf("again: %+v\n%s", got, read(t, settings))
			}
			o.Binary = filepath.Join(t.TempDir(), "moved") // the program moved: the hooks name the new path
			if runHooks(t, o, m, "claude-code", Job{}); strings.Count(read(t, settings), " hook claude-code") != 2 || !strings.Contains(read(t, settings), "moved") {
				t.Errorf("moved: %s", read(t, settings))
			}
			// What a person adds elsewhere stays.
			edited := strings.Replace(read(t, settings), "{", "{\"added\": 1, ", 1)
			if err := os.WriteFile(settings, []byte(edited), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := runHooks(t, o, m, "", Job{Undo: true}); len(got) != 1 || got[0].Action != Restored {
				t.Errorf("undo: %+v", got)
			}
			if got, want := read(t, settings), strings.Replace(src, "{", "{\"added\": 1, ", 1); got != want {
				t.Errorf("undo:\n got %q\nwant %q", got, want)
			}
			if got := runHooks(t, o, m, "", Job{Undo: true}); len(got) != 0 {
				t.Errorf("undo again: %+v", got)
			}
		})
	}
}

// TestHooksOfNewFiles: where a host has no such file it is made, and undo takes it away.
func TestHooksOfNewFiles(t *testing.T) {
	m, _ := hookMachine(t, "")
	o := options(t)
	if bare := o.CanHook(m); len(bare) != len(hookings) {
		t.Errorf("without hooks: %v", bare)
	}
	all := runHooks(t, o, m, "", Job{})
	if len(all) != len(hookings) {
		t.Fatalf("%+v", all)
	}
	for _, r := range all {
		if r.Action != Hooked || !strings.Contains(read(t, r.Path), "hook") {
			t.Errorf("%+v", r)
		}
	}
	if bare := o.CanHook(m); len(bare) != 0 {
		t.Errorf("with hooks: %v", bare)
	}
	runHooks(t, o, m, "", Job{Undo: true})
	for _, r := range all {
		if _, err := os.Lstat(r.Path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left", r.Path)
		}
	}
}

// TestHooksAreNotForced: a file that is no settings file, and hooks that were edited since, stay as they are.
func TestHooksAreNotForced(t *testing.T) {
	for _, src := range []string{"[]", `{"hooks": []}`, `{"hooks": {"PreToolUse": 1}}`, "{", "\xff"} {
		m, settings := hookMachine(t, src)
		if _, err := options(t).Hooks(m, "claude-code", Job{}); err == nil || read(t, settings) != src {
			t.Errorf("%q: %v, %q", src, err, read(t, settings))
		}
	}
	m, settings := hookMachine(t, "{}")
	o := options(t)
	runHooks(t, o, m, "claude-code", Job{})
	edited := strings.ReplaceAll(read(t, settings), `"timeout": 10`, `"timeout": 20`)
	if err := os.WriteFile(settings, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Hooks(m, "claude-code", Job{Undo: true}); !errors.Is(err, errHookEdited) || read(t, settings) != edited {
		t.Errorf("edited since: %v", err)
	}
	// What a person has taken out by hand is gone, and hooks may come again.
	byHand := `{"model": "x"}`
	if err := os.WriteFile(settings, []byte(byHand), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runHooks(t, o, m, "claude-code", Job{DryRun: true}); got[0].Action != Hooked || !strings.Contains(got[0].Adds, " hook claude-code") {
		t.Errorf("after taking out by hand: %+v", got)
	}
	if err := os.WriteFile(settings, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	o.DangerouslyForce = true
	if runHooks(t, o, m, "claude-code", Job{Undo: true}); read(t, settings) != "{}" {
		t.Errorf("by force: %s", read(t, settings))
	}
}

// TestHooksInRewrittenSettings: a host writes its settings anew, with white space of its own. The entries go by value.
func TestHooksInRewrittenSettings(t *testing.T) {
	for _, src := range []string{
		``, `{}`, `{"model":"x"}`, `{"model":"x","hooks":{"Stop":[]},"z":1}`,
		`{"hooks":{"PostToolUse":[{"matcher":"Edit","hooks":[]}]}}`,
	} {
		m, settings := hookMachine(t, src)
		o := options(t)
		runHooks(t, o, m, "claude-code", Job{})
		var v map[string]any
		if err := json.Unmarshal([]byte(read(t, settings)), &v); err != nil {
			t.Fatal(err)
		}
		v["added"] = true
		anew, err := json.MarshalIndent(v, "", "    ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(settings, anew, 0o600); err != nil {
			t.Fatal(err)
		}
		runHooks(t, o, m, "claude-code", Job{})
		if n := strings.Count(read(t, settings), " hook claude-code"); n != 2 {
			t.Errorf("%s: %d entries after a second run: %s", src, n, read(t, settings))
		}
		if err := os.WriteFile(settings, anew, 0o600); err != nil {
			t.Fatal(err)
		}
		runHooks(t, o, m, "claude-code", Job{Undo: true})
		want := map[string]any{}
		if src != "" {
			if err := json.Unmarshal([]byte(src), &want); err != nil {
				t.Fatal(err)
			}
		}
		want["added"] = true
		got := map[string]any{}
		if err := json.Unmarshal([]byte(read(t, settings)), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %s", src, err, read(t, settings))
		}
	}
}

// TestHookCommand: the path of the program is one word for the shell that runs the hook.
func TestHookCommand(t *testing.T) {
	for _, x := range []struct{ system, path, want string }{
		{"linux", "/usr/bin/pellucid", "/usr/bin/pellucid"},
		{"linux", "/home/jos\u00e9/a b/$x'y", `'/home/jos` + "\u00e9" + `/a b/$x'\''y'`},
		{"windows", `C:\tools\pellucid.exe`, "C:/tools/pellucid.exe"},
		{"windows", `C:\Program Files\pellucid.exe`, `"C:/Program Files/pellucid.exe"`},
	} {
		if got := shellWord(x.system, x.path); got != x.want {
			t.Errorf("%s: %s", x.path, got)
		}
	}
	if got := hookings[2].hookEntry("windows", []string{`C:\a b\p.exe`, "hook", "gemini-cli"}); !strings.Contains(got, `"& \"C:/a b/p.exe\" hook gemini-cli"`) {
		t.Error(got)
	}
}

// TestHookObstacles: a report says what keeps hooks from running, or from having the last word.
func TestHookObstacles(t *testing.T) {
	const rival = `{"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "python3 'RIVAL' --fast"}]}]}}`
	for _, x := range []struct{ name, host, file, src, want string }{
		{"nothing", "claude-code", "", "", ""},
		{"user", "claude-code", "HOME/.claude/settings.json", "// mine\n{\"disableAllHooks\": true}", "disableAllHooks in"},
		{"not off", "claude-code", "HOME/.claude/settings.json", `{"disableAllHooks": false}`, ""},
		{"a text", "claude-code", "HOME/.claude/settings.json", `{"disableAllHooks": "true"}`, ""},
		{"project", "claude-code", "DIR/.claude/settings.json", `{"disableAllHooks": true}`, "settings.json"},
		{"project of one person", "claude-code", "DIR/.claude/settings.local.json", `{"disableAllHooks": true}`, "settings.local.json"},
		{"not JSON", "claude-code", "DIR/.claude/settings.local.json", `{"disableAllHooks": true`, ""},
		{"hook that rewrites", "claude-code", "DIR/.claude/settings.json", rival, "only one of both counts"},
		{"Codex, not trusted", "codex", "", "", "trusted it"},
		{"Codex, off", "codex", "HOME/.codex/config.toml", "[features]\nhooks = false\n", "features.hooks in"},
		{"Gemini CLI, project", "gemini-cli", "DIR/.gemini/settings.json", `{"hooksConfig": {"enabled": false}}`, "hooksConfig.enabled in"},
		{"Gemini CLI, this hook", "gemini-cli", "DIR/.gemini/settings.json", `{"hooksConfig": {"disabled": ["x", "/usr/bin/pellucid-hook gemini-cli"]}}`, "hooksConfig.disabled in"},
		{"opencode", "opencode", "", "", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			m, _ := hookMachine(t, "")
			m.Dir = t.TempDir()
			script := filepath.Join(m.Dir, "hook.py")
			if err := os.WriteFile(script, []byte(`print({"updatedToolOutput": 1})`), 0o600); err != nil {
				t.Fatal(err)
			}
			if x.file != "" {
				file := strings.NewReplacer("HOME", m.Home, "DIR", m.Dir).Replace(x.file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(x.src, "RIVAL", strings.ReplaceAll(script, `\`, `\\`))), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o := options(t)
			for range 2 { // when they are written, and afterwards
				if got := runHooks(t, o, m, x.host, Job{})[0].Why; got != x.want && (x.want == "" || !strings.Contains(got, x.want)) {
					t.Errorf("%q, want %q", got, x.want)
				}
			}
		})
	}
	m, _ := hookMachine(t, "")
	m.Getenv = func(name string) string { return map[string]string{"OPENCODE_PURE": "1"}[name] }
	if got := runHooks(t, options(t), m, "opencode", Job{})[0].Why; !strings.Contains(got, "OPENCODE_PURE") {
		t.Error(got)
	}
}

// TestCodexTrust: the digest is the one that Codex 0.171 gave this entry (hooks/list of its app-server).
func TestCodexTrust(t *testing.T) {
	m, _ := hookMachine(t, "")
	o := options(t)
	o.Client = "pellucid-hook"
	path := runHooks(t, o, m, "codex", Job{})[0].Path
	const before, after = "c7e763f40363f89ff5d6293b3921a8038152d88cfbc9794a2a647f8f820bfdc0", "3716b2d04fdf4d58d3d8b5a19108c54ce66ea51967ae9878f02b15b70bd6a650"
	for config, trusted := range map[string]bool{
		"[hooks.state.'" + path + ":pre_tool_use:0:0']\ntrusted_hash = \"sha256:" + before + "\"\n[hooks.state.'" + path + ":post_tool_use:0:0']\ntrusted_hash = \"sha256:" + after + "\"\n":                  true,
		"[hooks.state.'" + path + ":pre_tool_use:0:0']\ntrusted_hash = \"sha256:" + before + "\"\n[hooks.state.'" + path + ":post_tool_use:0:0']\ntrusted_hash = \"sha256:" + after + "\"\nenabled = false\n": false,
		"[hooks.state.'" + path + ":pre_tool_use:0:0']\ntrusted_hash = \"sha256:" + before + "\"\n":                                                                                                           false,
		"": false,
	} {
		if err := os.WriteFile(filepath.Join(m.Home, ".codex", "config.toml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := runHooks(t, o, m, "codex", Job{})[0].Why; (got == "") != trusted {
			t.Errorf("%s: %q", config, got)
		}
	}
}
