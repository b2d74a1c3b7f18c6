// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// ofTeam has what one server depends on, and what it does not.
const ofTeam = `version: 1
public_url: https://mcp.example.org
auth: {tokens: env:ALL_TOKENS}
http: {hosts: [mcp.example.org]}
telemetry: {log: warn}
evidence: {mode: required}
policy: {preset: strict}
classifiers:
  cloud: {provider: azure, url: https://cloud.example, key: env:CLOUD_KEY}
  unused: {provider: azure, url: https://unused.example, key: env:UNUSED_KEY}
defaults: {timeout: 3m, hold: [role-marker]}
servers:
  mine: {command: [srv, -x], env: {MODE: fast}, classify: [cloud], prefix: m, scopes: [team], tools: {"read_*": {frame: meta}}}
  far: {url: https://far.example/mcp, headers: {Authorization: env:FAR_TOKEN}, tls: {ca: file:none.pem}}
exceptions:
  - {server: mine, tool: read_x, code: role-marker, until: 2036-12-31T00:00:00Z, why: x}
  - {server: far, code: role-marker, until: 2036-12-31T00:00:00Z, why: x}
`

func loadOne(t *testing.T, src string, one One) (*Rules, Problems, error) {
	t.Helper()
	path := ""
	if src != "" {
		path = filepath.Join(t.TempDir(), "pellucid.yaml")
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return LoadOne(path, Options{Getenv: func(name string) (string, bool) { return "k", name == "CLOUD_KEY" }}, one)
}

// set reads settings as --set does.
func set(specs ...string) (all []Setting) {
	for _, spec := range specs {
		path, value, _ := strings.Cut(spec, "=")
		all = append(all, Setting{"--set", path, value})
	}
	return all
}

// TestLoadOne: a server depends on its own entry and on what that names. Secrets of others need
// not be there, and mistakes elsewhere are told and change nothing.
func TestLoadOne(t *testing.T) {
	r, elsewhere, err := loadOne(t, ofTeam, One{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Server("mine")
	if len(r.Servers) != 1 || !slices.Equal(s.Command, []string{"srv", "-x"}) || s.Rule("a").Timeout != 3*time.Minute || s.Rule("read_a").Frame != frame.KindMeta ||
		r.Evidence.Mode != Required || r.Policy == nil || r.Telemetry.LogLevel.String() != "WARN" || len(s.Rule("read_x").Except) != 1 || len(r.Exceptions) != 1 {
		t.Errorf("%+v", s)
	}
	if r.Classifiers["cloud"] == nil || r.Classifiers[Local] == nil || r.Classifiers["unused"] != nil {
		t.Errorf("classifiers: %v", r.Classifiers)
	}
	if len(elsewhere) != 1 || elsewhere[0].path != "servers.far.tls.ca" {
		t.Errorf("elsewhere: %v", elsewhere)
	}
	if text := string(r.Effective()); strings.Contains(text, "far") || !strings.Contains(text, "strict") {
		t.Errorf("effective:\n%s", text)
	}
	// A server of the command line has the defaults, and of its entry what is for a server of its kind.
	r, _, err = loadOne(t, ofTeam, One{Name: "far", Command: []string{"srv", "-x"}})
	if err != nil || r.Server("far").Headers != nil || r.Server("far").URL.text != "" || r.Server("far").Rule("a").Timeout != 3*time.Minute {
		t.Errorf("%v", err)
	}
	r, _, err = loadOne(t, ofTeam, One{Name: "mine", Command: []string{"srv", "-x"}, Settings: set("env={}")})
	if err != nil || r.Server("mine").Command != nil || len(r.Server("mine").Env) != 0 {
		t.Errorf("%v", err)
	}
	if _, _, err := loadOne(t, ofTeam, One{Name: "none"}); !errors.Is(err, ErrNoServer) {
		t.Errorf("%v", err)
	}
	r, elsewhere, err = loadOne(t, "", One{Name: "@scope/x", URL: "https://x.example"})
	if err != nil || elsewhere != nil || r.Evidence.Mode != NoEvidence || r.Server("@scope/x").Rule("").MaxChars != 1<<20 {
		t.Errorf("no file: %v", err)
	}
	for spec, want := range map[string]string{ // a mistake of an entry that counts is one of the server
		"env: {T: env:T}": "servers.mine.env: needs the command or url", "headers: {A: b}": "servers.mine.headers: needs",
		"tls: {ca: file:x}": "servers.mine.tls: needs", "admission: {pins: off}": "servers.mine.admission: needs", "dangerously_allow_sampling: true": "needs",
		"frame: meta": "servers.mine.frame: needs", "hold: []": "servers.mine.hold: needs", "tools: {a: {validate: audit}}": "servers.mine.tools.a.validate: needs",
		"validate: 'off'": "servers.mine.validate: needs", "classify: []": "servers.mine.classify: needs", "control_tokens: keep": "servers.mine.control_tokens: needs",
	} {
		if _, _, err := loadOne(t, "version: 1\nservers: {mine: {"+spec+"}}", One{Name: "mine", Command: []string{"x"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
	r, elsewhere, err = loadOne(t, "version: 1\nservers: {mine: {timeout: 7s}, other: {profile: mcp}}", One{Name: "mine", URL: "https://x.example", Settings: set("admission.pins=audit")})
	if err != nil || len(elsewhere) != 0 || r.Foreign || r.Server("mine").Rule("a").Timeout != 7*time.Second {
		t.Errorf("an entry without a command: %v, %v", elsewhere, err)
	}
	r, _, err = loadOne(t, ofTeam, One{Name: "mine", Policy: &Policy{}})
	if err != nil || r.Policy.Rules != nil {
		t.Errorf("the policy of the command line: %v", err)
	}
}

// TestForeign: what the file says of a server, secrets first of all, goes to the command or URL that it names
// and to nothing else of that name.
func TestForeign(t *testing.T) {
	const src = `version: 1
servers:
  cmd: {command: [sh, real.sh], cwd: /srv, env: {MODE: secret}, frame: meta, admission: {pins: off}}
  web: {url: "https://api.example/mcp?key=1", headers: {X-A: secret}, frame: meta}
  ref: {url: env:CLOUD_KEY, headers: {X-A: secret}, frame: meta}
  file: {mcp_json: none.json, frame: meta}
exceptions:
  - {server: cmd, code: role-marker, until: 2036-12-31T00:00:00Z, why: x}
`
	for _, x := range []struct {
		one     One
		foreign bool
	}{
		{One{Name: "cmd", Command: []string{"sh", "real.sh"}}, false},
		{One{Name: "cmd", Command: []string{"sh", "real.sh"}, Dir: "/srv/"}, false},
		{One{Name: "cmd", Command: []string{"sh", "real.sh"}, Dir: "/other"}, true},
		{One{Name: "cmd", Command: []string{"sh", "evil.sh"}}, true},
		{One{Name: "cmd", Command: []string{"sh", "real.sh", "x"}}, true},
		{One{Name: "cmd", URL: "https://api.example/mcp"}, true},
		{One{Name: "web", URL: "https://api.example/mcp"}, false},
		{One{Name: "web", URL: "https://api.example/mcp/../x"}, true},
		{One{Name: "web", URL: "http://api.example/mcp"}, true},
		{One{Name: "web", URL: "https://api.example.evil/mcp"}, true},
		{One{Name: "web", Command: []string{"sh", "real.sh"}}, true},
		{One{Name: "ref", URL: "k"}, false},
		{One{Name: "ref", URL: "https://evil.example"}, true},
		{One{Name: "file", URL: "https://evil.example"}, true},
		{One{Name: "new", URL: "https://evil.example"}, false},
	} {
		r, _, err := loadOne(t, src, x.one)
		if err != nil {
			t.Errorf("%+v: %v", x.one, err)
			continue
		}
		s := r.Server(x.one.Name)
		used := s.Rule("a").Frame == frame.KindMeta
		if r.Foreign != x.foreign || used == (x.foreign || x.one.Name == "new") || x.foreign && (s.Env != nil || s.Headers != nil || s.Cwd != "" || s.Admission.Pins != newRules().admission.Pins || len(r.Exceptions) != 0) {
			t.Errorf("%+v: foreign %v, %+v", x.one, r.Foreign, s)
		}
	}
}

// TestLoadOneRefused: a mistake in what the server depends on is told with its line.
func TestLoadOneRefused(t *testing.T) {
	for src, want := range map[string]string{
		"version: 2\n": "later version", "nonsense": "want an object", "version: 1\n\t": "valid YAML",
		"version: 1\ndefaults: {timeout: soon}": "line 2, column 21: defaults.timeout: want a duration",
		"version: 1\nservers: {mine: {command: [srv, -x], classify: [cloud]}}\nclassifiers: {cloud: {provider: azure, url: https://c.example, key: env:NOT_SET}}": "classifiers.cloud.key: variable \"NOT_SET\" is not set",
		"version: 1\nservers: {mine: {command: [srv, -x], classify: [none]}}":                                                                                     "servers.mine.classify[0]: want the name of a classifier",
		"version: 1\npolicy: {preset: none, rules: [{name: a}]}":                                                                                                  "policy.rules[0].",
		"version: 1\nservers: {mine: {}}\nservers: {mine: {}}":                                                                                                    "stands here a second time",
	} {
		if _, _, err := loadOne(t, src, One{Name: "mine", Command: []string{"srv", "-x"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", src, err)
		}
	}
}

// TestSettings: a setting goes before the file, and takes the file's own words and errors.
func TestSettings(t *testing.T) {
	r, _, err := loadOne(t, ofTeam, One{Name: "mine", Command: []string{"srv", "-x"}, Settings: set("timeout=5s", "hold=hidden-tag,hidden-bidi", "tools.read_*.max_chars=9",
		"llm.provider=Some AI", "frame=llm", "llm.model=", "pin=12", "fence=all", "admission.wide=false", "evidence.mode=off", "defaults.profile=mcp",
		"quarantine.two_persons=true", "captures.total=2MiB", "servers.mine.validate=off")})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Server("mine")
	if g := s.Rule("a"); g.Timeout != 5*time.Second || !slices.Equal(g.Hold, []finding.Code{finding.HiddenBidi, finding.HiddenTag}) || !g.LLM.Search || !g.Framing.Resources ||
		g.Mode != policy.Off || s.Rule("read_a").MaxChars != 9 || s.Rule("read_a").Frame != frame.KindMeta {
		t.Errorf("%+v", g)
	}
	if r, _, err := loadOne(t, ofTeam, One{Name: "mine", Command: []string{"x"}, Settings: set("hold=")}); err != nil || len(r.Server("mine").Rule("a").Hold) != 0 {
		t.Errorf("an empty list: %v", err)
	}
	if s.Pin != "12" || s.Admission.Wide || r.Evidence.Mode != NoEvidence || !r.TwoPersons || r.Captures.Total != 2<<20 {
		t.Errorf("%+v", r)
	}
	for spec, want := range map[string]string{
		"max_char=5":                  "--set max_char: there is no such member: is max_chars meant?",
		"max_chars=1":                 `--set max_chars: want an integer from 8 to 33554432: "1"`,
		"max_chars=many":              "--set max_chars: want a number, not a string",
		"evidence.mod=off":            "--set evidence.mod: there is no such member: is mode meant?",
		"hold=nonsense":               `--set hold[0]: want the code of a finding: "nonsense"`,
		"command=x":                   "--set command: is not set here",
		"prefix=x":                    "--set prefix: is not set here",
		"listen=127.0.0.1:1":          "--set listen: is not a setting of this server: pellucid up reads it in its configuration",
		"servers.far.timeout=1s":      "--set servers.far.timeout: is not a setting of this server",
		"timeout.x=1":                 "--set timeout.x: there is no such member",
		"=1":                          "--set : want PATH=VALUE",
		"version=2":                   "--set version: is that of a file",
		"tools=[":                     "--set tools: the value is not valid",
		"frame=llm":                   "servers.mine: frame: llm needs llm.provider",
		"tools={a: {frame: x}}":       "--set tools.a.frame: want fence, meta or llm",
		"transport=sse":               "--set transport: is for another kind of server",
		"exceptions=[{server: mine}]": "--set exceptions[0].code: is missing",
		"defaults=x":                  "--set defaults: want an object",
	} {
		_, _, err := loadOne(t, "", One{Name: "mine", Command: []string{"srv", "-x"}, Settings: set(spec)})
		var p Problems
		if !errors.As(err, &p) || !p.OfCommandLine() || !strings.HasPrefix(p[0].String(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
	_, _, err = loadOne(t, "version: 1\nservers: {mine: {frame: llm}}\n", One{Name: "mine", Command: []string{"srv", "-x"}, Settings: set("timeout=9s")})
	var p Problems
	if !errors.As(err, &p) || p.OfCommandLine() {
		t.Errorf("a mistake of the file is one of the command line: %v", err)
	}
}

// FuzzSettings: any setting is taken or refused as one of the command line.
func FuzzSettings(f *testing.F) {
	for _, spec := range []string{"hold=a,b", "tools.a.frame=meta", "policy.rules=[{name: a}]", "classifiers.local.deep={}", "a..b=", "review.model={", "exceptions=[[]]", "evidence=~"} {
		path, value, _ := strings.Cut(spec, "=")
		f.Add(path, value)
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		o := newFixed().options()
		_, _, err := LoadOne("", o, One{Name: "mine", Command: []string{"srv", "-x"}, Settings: []Setting{{"--set", path, value}}})
		var p Problems
		if err != nil && (!errors.As(err, &p) || !p.OfCommandLine()) {
			t.Errorf("%v", err)
		}
	})
}
