// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// problemsOf parses what must not be accepted.
func problemsOf(t *testing.T, src string) Problems {
	t.Helper()
	r, err := Parse([]byte(src), newFixed().options())
	var p Problems
	if r != nil || !errors.As(err, &p) || len(p) == 0 {
		t.Fatalf("%q: %v", src, err)
	}
	return p
}

// TestProblems holds every kind of mistake to its line and its words.
func TestProblems(t *testing.T) {
	const server = "version: 1\nservers:\n  a:\n    command: [x]\n"
	const remote = "version: 1\nservers:\n  a:\n    url: https://a.example/mcp\n"
	for _, x := range []struct{ src, want string }{
		// The console.
		{"version: 1\nlisten: 0.0.0.0:0\npublic_url: https://p.example\nauth: {oauth: {issuers: [https://i.example]}}\nconsole: {}\n", "line 5, column 1: console: needs grants: beyond loopback, only people with a grant may come in"},
		{"version: 1\npublic_url: https://p.example\nconsole: {grants: [{role: viewer, scope: a}]}\n", "line 3, column 1: console: needs openid here or auth above, so that people can sign in"},
		{"version: 1\nconsole: {grants: [{role: owner, scope: a}]}\n", "line 2, column 27: console.grants[0].role: want viewer, reviewer or admin: \"owner\""},
		{"version: 1\nconsole: {openid: {issuer: 'https://i.example', client_id: x}}\n", "line 2, column 11: console.openid: needs public_url, to which the provider leads the browser back"},

		// The file.
		{"", "version: is missing: want version: 1"},
		{"# nothing\n", "version: is missing: want version: 1"},
		{"[1]", "line 1, column 1: want an object that begins with version: 1, not a list"},
		{"x", "line 1, column 1: want an object that begins with version: 1, not a string"},
		{"listen: 127.0.0.1:1", "line 1, column 1: version: is missing: want version: 1"},
		{"version: 2\nfuture: 1", `line 1, column 10: version: this file is for a later version of Pellucid; this one knows version 1: "2"`},
		{"version: \"1\"", "line 1, column 10: version: want version: 1"},
		{"version: 01", "line 1, column 10: version: want version: 1"},
		{"version: 1.0", "line 1, column 10: version: want version: 1"},
		{"version: 1\nversion: 1", "line 2, column 1: version: stands here a second time"},
		{"version: 1\nlissten: x", "line 2, column 1: lissten: there is no such member: is listen meant?"},
		{"version: 1\n\"a\\eb\": x", `line 2, column 1: "a\x1bb": there is no such member`},
		{"version: 1\nservers:", "line 2, column 1: servers: there is no value: leave the member out"},
		{"version: 1\nguard:\n  values:\n    - name: a\n      when: double(arg.amount) > 1\n      then: ask", "line 5, column 20: guard.values[0].when: undeclared reference to 'arg' (did you mean 'args'?)"},
		{"version: 1\nguard:\n  lists: {payees: p.txt}\n  values:\n    - name: a\n      when: |\n        true &&\n        listed(\"payee\", args.to)\n      then: ask", "line 8, column 16: guard.values[0].when: want the name of one of guard.lists in quotes, not \"payee\""},
		{"version: 1\nguard: {values: [{name: a, when: 'true', then: ask, verdicts: [delegated]}]}", "line 2, column 53: guard.values[0].verdicts: is for a rule that says pass or mark: one that says ask is for every verdict"},
		{"version: 1\nguard: {values: [{name: a, when: 'true', then: deny}]}", "line 2, column 48: guard.values[0].then: want pass, mark, ask, hold or repair: \"deny\""},
		{"version: 1\nreplicas: {name: a, address: 10.0.0.7}", "line 2, column 30: replicas.address: want HOST:PORT at which the other replicas reach this one, such as 10.0.0.7:7421, or a reference to it"},
		{"version: 1\nreplicas: {name: a, address: 0.0.0.0:7421}", "line 2, column 30: replicas.address: want HOST:PORT at which the other replicas reach this one, such as 10.0.0.7:7421, or a reference to it"},
		{"version: 1\nreplicas: {name: a, address: 10.0.0.7:0}", "line 2, column 30: replicas.address: want HOST:PORT at which the other replicas reach this one, such as 10.0.0.7:7421, or a reference to it"},
		{"version: 1\nreplicas: {name: a, address: a.example:7421}", "line 2, column 30: replicas.address: is a host name: say with listen at which IP address this replica listens"},
		{"version: 1\nreplicas: {address: 10.0.0.7:7421}", "line 2, column 1: replicas.name: is needed with address: what the ids of this replica's sessions begin with, such as r2"},
		{"version: 1\nreplicas: {name: a.b, address: 10.0.0.7:7421}", "line 2, column 18: replicas.name: want up to 63 small letters, digits and hyphens, such as r2, or a reference to it"},
		{"version: 1\nreplicas: {listen: 0.0.0.0:7421}", "line 2, column 20: replicas.listen: needs address: where the other replicas reach this one"},
		{"version: 1\nguard: {task: all}", "line 2, column 15: guard.task: want user-turns, declared or both: \"all\""},
		{"version: 1\nguard: {upstream: api.example}", "line 2, column 19: guard.upstream: want an http or https URL"},
		{"version: 1\nguard: {capsules: {a: {no_calls: true}}}", "line 2, column 20: guard.capsules.a: want sources: the capsule holds no text without"},
		{"version: 1\nhttp: ~", "line 2, column 1: http: there is no value: leave the member out"},
		{"version: 1\nlisten: &a x", "line 2, column 9: anchors are not allowed"},
		{"version: 1\nlisten: *a", "line 2, column 9: aliases are not allowed: a string that begins with * stands in quotes"},
		{"version: 1\nlisten: !x y", "line 2, column 9: tags are not allowed: a string that begins with ! stands in quotes"},
		{"version: 1\nhttp:\n  <<: {}", "line 3, column 3: merge keys are not allowed"},
		{"version: 1\n? a\n: b", "line 2, column 1: complex keys are not allowed"},
		{"%YAML 1.2\n---\nversion: 1", "line 1, column 1: directives are not allowed"},
		{"version: 1\n---\nversion: 1", "there is more than one document in the file"},
		{"version: 1\n5: x", "line 2, column 1: a name that is a number: put it in quotes"},
		{"version: 1\nlisten: \"x", "line 2, column 9: this is not valid YAML: could not find end character of double-quoted text"},
		{"version: 1\nlisten: a\u202eb", "line 2, column 10: a hidden character, U+202E: write it as an escape in double quotes"},
		{"version: 1\n# \u00e9\ufe0f", "line 2, column 4: a hidden character, U+FE0F: write it as an escape in double quotes"},
		{"version: 1\n\xff: x", "line 2, column 1: this is no UTF-8"},
		{"version: 1\nlisten: a\rb", "line 2, column 10: a hidden character, U+000D: write it as an escape in double quotes"},
		{"version: 1\nx: " + strings.Repeat("[", 20) + strings.Repeat("]", 20), "line 2, column 16: this is nested too deeply"},
		{"version: 1\nx: \n  " + strings.Repeat("- ", 20), "line 3, column 27: this is nested too deeply"},
		{"version: 1\n#" + strings.Repeat("x", maxFile), fmt.Sprintf("the file is longer than %d bytes", maxFile)},

		// Values.
		{"version: 1\nlisten: 7420", "line 2, column 9: listen: want a string, not a number: put it in quotes"},
		{"version: 1\nlisten: [a]", "line 2, column 1: listen: want a string, not a list"},
		{"version: 1\nlisten: \"\"", "line 2, column 9: listen: is empty"},
		{"version: 1\nlisten: example.org:80", `line 2, column 9: listen: want HOST:PORT with an IP address or localhost, such as 127.0.0.1:7420: "example.org:80"`},
		{"version: 1\nlisten: 0.0.0.0:80\npublic_url: https://x.example", `line 2, column 9: listen: listens beyond loopback, which needs auth: "0.0.0.0:80"`},
		{"version: 1\nhttp: 1", "line 2, column 7: http: want an object, not a number"},
		{"version: 1\nhttp: {max_body: 32MB}", `line 2, column 18: http.max_body: want a size from 1KiB to 512MiB, such as 32MiB or 65536: "32MB"`},
		{"version: 1\nhttp: {max_body: 2GiB}", `line 2, column 18: http.max_body: want a size from 1KiB to 512MiB, such as 32MiB or 65536: "2GiB"`},
		{"version: 1\nhttp: {max_body: [1]}", "line 2, column 8: http.max_body: want a size, such as 32MiB, not a list"},
		{"version: 1\nhttp: {sessions: 0}", `line 2, column 18: http.sessions: want an integer from 1 to 1000000: "0"`},
		{"version: 1\nhttp: {sessions: 0x10}", `line 2, column 18: http.sessions: want an integer from 1 to 1000000: "0x10"`},
		{"version: 1\nhttp: {sessions: many}", "line 2, column 18: http.sessions: want a number, not a string"},
		{"version: 1\nhttp: {session_idle: 30}", `line 2, column 22: http.session_idle: want a duration from 1s to 168h, such as 90s or 10m: "30"`},
		{"version: 1\nhttp: {drain: -1s}", `line 2, column 15: http.drain: want a duration from 0s to 1h, such as 90s or 10m: "-1s"`},
		{"version: 1\nhttp: {rate: -1}", `line 2, column 14: http.rate: want a number from 0 to 1000000: "-1"`},
		{"version: 1\nhttp: {rate: .inf}", `line 2, column 14: http.rate: want a number from 0 to 1000000: ".inf"`},
		{"version: 1\nhttp: {hosts: [\"a b\"]}", `line 2, column 16: http.hosts[0]: want a host, such as mcp.example.org or 10.0.0.1:8080: "a b"`},
		{"version: 1\nhttp: {hosts: [a, a]}", `line 2, column 19: http.hosts[1]: stands here a second time: "a"`},
		{"version: 1\nhttp: {origins: [null-origin]}", `line 2, column 18: http.origins[0]: want an origin, such as https://app.example.org: "null-origin"`},
		{"version: 1\ntelemetry: {metrics: yes}", `line 2, column 22: telemetry.metrics: want true or false: "yes"`},
		{"version: 1\ntelemetry: {metrics: True}", `line 2, column 22: telemetry.metrics: want true or false: "True"`},
		{"version: 1\ntelemetry: {log: loud}", `line 2, column 18: telemetry.log: want debug, info, warn or error: "loud"`},
		{"version: 1\ndefaults: {hold: [made-up]}", `line 2, column 19: defaults.hold[0]: want the code of a finding: "made-up"`},
		{"version: 1\ndefaults: {classify: [x]}", `line 2, column 23: defaults.classify[0]: want the name of a classifier of this file, or local: "x"`},
		{"version: 1\ndefaults: {max_chars: 7}", `line 2, column 23: defaults.max_chars: want an integer from 8 to 33554432: "7"`},
		{"version: 1\ndefaults: {timeout: 25h}", `line 2, column 21: defaults.timeout: want a duration from 1s to 24h, such as 90s or 10m: "25h"`},
		{"version: 1\ndefaults: {allow: false}", "line 2, column 12: defaults.allow: there is no such member"},
		{"version: 1\ndefaults: {llm: {provider: x}}", "line 2, column 12: defaults.llm: there is no such member"},

		{"version: 1\ntokens: tokens.txt", "line 2, column 9: tokens: want file:PATH of a file of control tokens"},
		{"version: 1\ntokens: file:bad.txt", `line 2, column 9: tokens: file "bad.txt", line 1: this is no file of control tokens: pellucid scrub --tokens says why`},

		// Store, public_url, auth.
		{"version: 1\npublic_url: https://a.example&b", "line 2, column 13: public_url: has a host that no request can name"},
		{"version: 1\npublic_url: a.example", "line 2, column 13: public_url: want an https URL"},
		{"version: 1\nstore: env:MANY_LINES", "line 2, column 8: store: what it refers to is more than one line"},
		{"version: 1\nstore: \"file:\"", "line 2, column 8: store: want file:PATH, env:NAME or postgres://HOST/DATABASE"},
		{"version: 1\nstore: pellucid.db", "line 2, column 8: store: want file:PATH, env:NAME or postgres://HOST/DATABASE"},
		{"version: 1\nstore: postgres://u:p@h/d", "line 2, column 8: store: holds a password: give the URL as env:NAME"},
		{"version: 1\nstore: postgres://h/d?password=p", "line 2, column 8: store: holds a password: give the URL as env:NAME"},
		{"version: 1\nstore: env:NOT_SET", `line 2, column 8: store: variable "NOT_SET" is not set`},
		{"version: 1\npublic_url: http://a.example", "line 2, column 13: public_url: want an https URL; http is for loopback"},
		{"version: 1\npublic_url: https://u@a.example", "line 2, column 13: public_url: want a URL without a user, query or fragment"},
		{"version: 1\nauth: {}", "line 2, column 1: auth: says nothing: want tokens, oauth or both"},
		{"version: 1\nauth: {tokens: tokens.json}", "line 2, column 16: auth.tokens: want file:PATH or env:NAME of a token file"},
		{"version: 1\nauth: {tokens: file:/run/secrets/search}", "line 2, column 16: auth.tokens: token file: strictjson: "},
		{"version: 1\nauth: {tokens: env:LEADS_NOWHERE}", "line 2, column 16: auth.tokens: token file: tokens[0].token: the reference leads nowhere"},
		{"version: 1\nauth: {oauth: {}}", "line 2, column 8: auth.oauth.issuers: is missing"},
		{"version: 1\nauth: {oauth: {issuers: [https://i.example]}}", "line 2, column 8: auth.oauth: needs public_url, which tokens are issued for"},
		{"version: 1\npublic_url: https://a.example\nauth: {oauth: {issuers: [http://i.example]}}", `line 3, column 8: auth.oauth: issuers[0]: "http://i.example": `},
		{"version: 1\npublic_url: https://a.example\nauth: {oauth: {issuers: [https://a-very-long-name-of-an-issuer.example]}}", "line 3, column 26: auth.oauth.issuers[0]: the host is longer than the 32 bytes of a name: give the issuer a name"},

		// Servers.
		{"version: 1\nservers: {\"a/b\": {command: [x]}}", `line 2, column 11: servers."a/b": want a name of 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit`},
		{"version: 1\nservers: {a: {}}", "line 2, column 11: servers.a: want one of command, url and mcp_json"},
		{"version: 1\nservers: {a: x}", "line 2, column 14: servers.a: want an object, not a string"},
		{"version: 1\nservers: {a: {command: [x], url: \"https://x\"}}", "line 2, column 11: servers.a: has command and url: keep one"},
		{"version: 1\nservers: {a: {command: []}}", "line 2, column 15: servers.a.command: want the program, and its arguments"},
		{"version: 1\nservers: {a: {command: x y}}", "line 2, column 24: servers.a.command: want a list, not a string"},
		{"version: 1\nservers: {a: {command: [x, 5]}}", "line 2, column 28: servers.a.command[1]: want a string, not a number: put it in quotes"},
		{"version: 1\nservers: {a: {command: [x, sk-0123456789abcdef0123]}}", "line 2, column 28: servers.a.command[1]: this looks like a secret, which every user of the machine can read here: give it as env"},
		{"version: 1\nservers:\n  a: {command: [x]}\n  a: {command: [y]}", "line 4, column 3: servers.a: stands here a second time"},
		{"version: 1\nservers:\n  a: {command: [x]}\n  b: {command: [y], prefix: a}", "line 4, column 3: servers.b: has the prefix of server a: give it another"},
		{server + "    headers: {X: y}", "line 5, column 5: servers.a.headers: is for another kind of server: env, cwd and share go with a command, headers, transport and tls with a URL"},
		{remote + "    env: {X: y}", "line 5, column 5: servers.a.env: is for another kind of server: env, cwd and share go with a command, headers, transport and tls with a URL"},
		{server + "    env: {GITHUB_TOKEN: abc}", "line 5, column 25: servers.a.env.GITHUB_TOKEN: by its name this is a secret, and has to be a reference: env:NAME or file:PATH"},
		{server + "    env: {X: ghp_0123456789abcdefghij}", "line 5, column 14: servers.a.env.X: this looks like a secret, and has to be a reference: env:NAME or file:PATH"},
		{server + "    env: {PORT: 80}", "line 5, column 17: servers.a.env.PORT: want a string, not a number: put it in quotes"},
		{server + "    env: {\"A=B\": x}", `line 5, column 11: servers.a.env."A=B": not a name that can stand here`},
		{server + "    env: {T: file:none}", `line 5, column 14: servers.a.env.T: file "none" cannot be read: there is no such file`},
		{server + "    scopes: [s]", "line 3, column 3: servers.a: needs scopes, which no client has without auth"},
		{server + "    share: all", `line 5, column 12: servers.a.share: want session or shared: "all"`},
		{server + "    profil: mcp", "line 5, column 5: servers.a.profil: there is no such member: is profile meant?"},
		{server + "    frame: llm", "line 3, column 3: servers.a: frame: llm needs llm.provider"},
		{server + "    frame: llm\n    llm: {provider: \"a<b\"}", "line 3, column 3: servers.a: llm provider: want 1 to 64 of [A-Za-z0-9 ._+-]"},
		{server + "    llm: {tag: perplexity}", `line 5, column 16: servers.a.llm.tag: want NAME-response: "perplexity"`},
		{server + "    tools: {x: {profile: auto}}", `line 5, column 26: servers.a.tools.x.profile: want faithful, mcp or veritas-0.1: "auto"`},
		{server + "    tools: {x: {frame: llm}}", "line 5, column 13: servers.a.tools.x: frame: llm needs llm.provider"},
		{server + "    tools: {\"\": {allow: false}}", `line 5, column 13: servers.a.tools."": not a name that can stand here`},
		{remote + "    headers: {Authorization: Bearer x}", "line 5, column 30: servers.a.headers.Authorization: by its name this is a secret, and has to be a reference: env:NAME or file:PATH"},
		{remote + "    headers: {Host: x}", "line 5, column 15: servers.a.headers.Host: not a name that can stand here"},
		{remote + "    headers: {mcp-session-id: x}", "line 5, column 15: servers.a.headers.mcp-session-id: not a name that can stand here"},
		{remote + "    headers: {X-A: \"a\\nb\"}", "line 5, column 5: servers.a.headers: the value of X-A holds what a header cannot"},
		{remote + "    headers: {x-a: b, X-A: c}", "line 5, column 23: servers.a.headers.X-A: stands here a second time"},
		{"version: 1\nservers: {a: {url: \"https://u:p@h\"}}", "line 2, column 20: servers.a.url: holds credentials: give them as a header, by reference"},
		{"version: 1\nservers: {a: {url: \"https://h?apiKey=x\"}}", "line 2, column 20: servers.a.url: its query holds what looks like a secret: give the whole URL as env:NAME or file:PATH"},
		{"version: 1\nservers: {a: {url: \"http://localhost:7420/mcp/b\"}}", "line 2, column 20: servers.a.url: is this gateway itself"},
		{"version: 1\nservers: {a: {mcp_json: ~/none.json}}", `line 2, column 25: servers.a.mcp_json: file "~/none.json" cannot be read: there is no such file`},
		{"version: 1\nservers: {a: {mcp_json: ~/.config/claude/claude_desktop_config.json}}", `line 2, column 25: servers.a.mcp_json: file "~/.config/claude/claude_desktop_config.json": it has no server called "a"`},
		{"version: 1\nservers: {github: {mcp_json: ~/.config/claude/claude_desktop_config.json, headers: {X: y}}}", "line 2, column 75: servers.github.headers: is for another kind of server: env, cwd and share go with a command, headers, transport and tls with a URL"},

		// Exceptions.
		{server + "exceptions:\n  - {server: b, code: nfkc, until: 2026-01-01T00:00:00Z, why: x}", `line 6, column 14: exceptions[0].server: want the name of a server of this file: "b"`},
		{server + "exceptions:\n  - {server: a, code: x, until: 2026-01-01T00:00:00Z, why: x}", `line 6, column 23: exceptions[0].code: want the code of a finding: "x"`},
		{server + "exceptions:\n  - {server: a, code: nfkc, until: 2026-01-01, why: x}", `line 6, column 36: exceptions[0].until: want a time, such as 2026-12-31T00:00:00Z: "2026-01-01"`},
		{server + "exceptions:\n  - {server: a, code: nfkc, until: 2026-01-01T1:00:00.00Z, why: x}", `line 6, column 36: exceptions[0].until: want a time, such as 2026-12-31T00:00:00Z: "2026-01-01T1:00:00.00Z"`},
		{server + "exceptions:\n  - {server: a, tool: \"x*\", code: nfkc, until: 2026-01-01T00:00:00Z, why: x}", `line 6, column 23: exceptions[0].tool: want the name of a tool, not a pattern: "x*"`},
		{server + "exceptions:\n  - {server: a, code: nfkc}", "line 6, column 5: exceptions[0].until: is missing"},
		{server + "exceptions: {}", "line 5, column 1: exceptions: want a list, not an object"},
	} {
		p := problemsOf(t, x.src)
		if got := p[0].String(); got != x.want && !(strings.HasSuffix(x.want, ": ") && strings.HasPrefix(got, x.want)) {
			t.Errorf("%.120q\n got %s\nwant %s", x.src, got, x.want)
		}
	}
}

// wantGolden holds got to a file of testdata, or writes it.
func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// TestListing shows a whole file of mistakes as people see it.
func TestListing(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("testdata", "mistakes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wantGolden(t, "mistakes.txt", problemsOf(t, string(src)).Error()+"\n")
}

func TestManyProblems(t *testing.T) {
	p := problemsOf(t, "version: 1\nhttp:\n"+strings.Repeat("  x: 1\n", 5000))
	if len(p) != maxProblems+1 || p[maxProblems].Fault != "more problems follow" {
		t.Errorf("%d problems, the last: %v", len(p), p[len(p)-1])
	}
	if !slices.IsSortedFunc(p[:maxProblems], func(a, b Problem) int { return a.line - b.line }) {
		t.Error("not in the order of the file")
	}
}

// TestNoSecretIsShown puts a secret wherever a mistake can be made.
func TestNoSecretIsShown(t *testing.T) {
	const server = "version: 1\nservers:\n  a:\n"
	for _, src := range []string{
		"version: 1\nstore: " + secret,
		"version: 1\nstore: postgres://u:" + secret + "@h/d",
		"version: 1\npublic_url: https://" + secret + "@h",
		"version: 1\nauth: {tokens: " + secret + "}",
		server + "    command: [x, sk-" + secret + "]",
		server + "    command: [x]\n    env: {TOKEN: " + secret + "}",
		server + "    command: [x]\n    env: {A: \"Bearer " + secret + "\"}",
		server + "    command: [x]\n    env:\n      TOKEN: \"" + secret,
		server + "    command: [x]\n    env:\n      TOKEN: " + secret + ": x",
		server + "    command: [x]\n    env:\n      TOKEN: [" + secret + "]",
		server + "    command: [x]\n    enw: {TOKEN: " + secret + "}",
		server + "    url: https://u:" + secret + "@h",
		server + "    url: https://h/?token=" + secret,
		server + "    url: h" + secret,
		server + "    url: https://h\n    headers: {Authorization: Bearer " + secret + "}",
		server + "    url: https://h\n    headers: {X: \"" + secret + "\\n\"}",
		server + "    url: env:LAB",
	} {
		if got := problemsOf(t, src).Error(); strings.Contains(got, secret) || strings.Contains(got, secret[:12]) {
			t.Errorf("%s", got)
		}
	}
}
