// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const everything = `
version: 1
listen: localhost:1
store: postgres://u@h/d
replicas: {name: r1, address: "replica-1.example:7421", listen: 0.0.0.0:7421}
public_url: https://a.example/base
http: {hosts: [a, b], origins: [https://o.example], trusted_proxies: [10.0.0.0/8, 192.0.2.7], max_body: 1025, sessions: 1, session_idle: 90s, session_life: 48h, rate: 0.25, burst: 2, concurrency: 3, drain: 0s}
limits: {memory: 64MiB, children: 9, children_per_server: 8, children_per_principal: 7}
auth:
  tokens: file:tokens.json
  oauth: {issuers: [{url: https://i.example, name: i, jwks: https://i.example/k, dangerously_untyped: true}], audience: aud, scopes: [s], algorithms: [ES256]}
console:
  grants: [{role: viewer, scope: staff}, {role: reviewer, scope: "mail team", servers: [one, two]}, {role: admin, scope: pellucid-admins}]
  openid: {issuer: https://id.example, client_id: pellucid, client_secret: env:LAB, scopes: [profile], name: sub, groups: roles, dangerously_http_on_loopback: true}
telemetry: {metrics: false, log: warn, log_format: json}
review: {provider: anthropic, url: https://api.example/v1, model: m-1, key: env:LAB, reasoning: true, timeout: 90s, tokens: 16000}
guard:
  upstream: https://p.example/v1
  key: env:LAB
  mode: audit
  fail: open
  buffer: true
  pass: ["GET /v1/files/*?limit&after"]
  guess: false
  untrusted_tools: ["x_*"]
  shared_hosts: [git.example]
  attenuate_below: 0.25
  capsules: {staff: {sources: ["hr/*", "?/read_staff"], forbidden: [salary, "annual review"], no_calls: true}}
  planner: {model: {provider: anthropic, url: https://p.example, model: m-2, key: env:LAB}, examples: plans.json, confirm: true, always: false, ahead: true}
  verdicts: {delegated: pass, conflict: hold, cannot-tell: ask}
  readers: false
  tools: {"send_*": {privilege: 0.9, critical: [to], free: [memo]}, "*": {privilege: 0}, pay: {}}
  lists: {payees: payees.txt, hosts: "file:/etc/hosts.txt"}
  values:
    - {name: large, tool: "send_*", when: "double(args.amount) > 1000", then: hold}
    - {name: known, when: 'listed("payees", args.recipient)', then: pass, verdicts: [delegated, conflict]}
  task: both
  budget: {calls: 20, concurrency: 2, time: 90s, factor: 4, min_tokens: 100}
  strategy: stratified
  refine: true
  calibration: cal.json
  severity: {low: 0, medium: 0.2, high: 0.4, critical: 1}
  blame: 0
  quarantine: {scope: server, from: 0.125, for: 36h}
  context: true
classifiers:
  local: {limit: 0.5, mode: enforce, fail: open, deep: {file: m/deep.bin, digest: "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"}}
  a: {provider: azure, url: https://a.example, key: env:LAB, api_version: 2025-09-01, mode: shadow, fail: closed, flagged: withhold, limit: 0.25}
  b: {provider: bedrock, url: https://b.example, region: r-1, guardrail: "arn:aws:x/y", version: "2", access_key: env:LAB, secret_key: env:LAB, session_token: env:LAB, timeout: 1s}
  n: {provider: nemo, url: http://127.0.0.1:1, config: c, model: m, chars: 1000000, calls: 3}
  m: {provider: model-armor, url: https://m.example, key: env:LAB, project: p, location: l, template: t, all_tools: true}
  l: {provider: lakera, url: https://l.example, key: env:LAB, project: p, concurrent: 2}
  h: {provider: http, url: http://h.example, model: piguard-1, texts: 4, text_chars: 500, dangerously_plain_http: true, max_bytes: 64KiB}
  j: {provider: judge, url: https://j.example/v1, model: m-1, format: anthropic, key: env:LAB, reasoning: true, text_chars: 6000}
webhooks:
  oncall: {url: env:HOOK_URL, secrets: ["env:NEXT_HOOK", "env:HOOK"], events: [call.held, source.blocked]}
  chat: {url: http://chat.internal.example/hook, secrets: ["env:HOOK"], dangerously_private_network: true, dangerously_plain_http: true}
defaults: {profile: mcp, frame: meta, validate: off, unverifiable: hold, max_chars: 8, timeout: 1h30m, hold: [nfkc, confusable], classify: [local, b], capture: [delivered, arguments], capture_of: [withheld]}
captures: {for: 36h, total: 2MiB}
quarantine: {two_persons: true}
servers:
  one:
    command: ["x \u202e", "", "\U0001F600"]
    env: {A: "", TOKEN: env:LAB, "odd.name": "b\\c\"d"}
    cwd: /w
    share: shared
    prefix: o
    scopes: [s, "t:u"]
    dangerously_allow_sampling: true
    frame: llm
    llm: {provider: A B+, grounded: true, source: src, model: {t: m, "u v": ""}}
    tools:
      "a*": {allow: false, profile: faithful, control_tokens: remove, classify: [], capture: [], capture_of: [passed, dropped]}
      t: {llm: {tag: other-response, model: ""}}
  two: {url: env:KEYED_URL, headers: {authorization: file:/run/secrets/search, X-B: c}, transport: sse, fence: [prompts, any-type], structured: text, tools: {q: {fence: [], structured: keep}}, control_tokens: keep, admission: {pins: audit, wide: true, hidden: reject}}
  github: {mcp_json: ~/.config/claude/claude_desktop_config.json}
exceptions:
  - {server: one, code: nfkc, until: 2026-12-31T01:00:00.5+01:00, why: "x \u0007"}
  - {server: two, tool: t, code: nfkc, until: 2026-12-31T00:00:00Z, why: y}
`

// TestEffective: what is shown means the same when it is read again.
func TestEffective(t *testing.T) {
	example, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "pellucid.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{"version: 1", "version: 1\nhttp: {rate: 0}", everything, string(example)} {
		r := parse(t, src)
		again := parse(t, string(r.Effective()))
		if diff := cmp.Diff(string(r.Effective()), string(again.Effective())); diff != "" {
			t.Error(diff)
		}
		if !Equal(r, again) || r.Version() != again.Version() || !cmp.Equal(Diff(r, again), Difference{}) {
			t.Errorf("read again it is another: %+v", Diff(r, again))
		}
		if strings.Contains(string(r.Effective()), secret) {
			t.Errorf("a secret is shown:\n%s", r.Effective())
		}
	}
}

func TestEffectiveGolden(t *testing.T) {
	wantGolden(t, "effective.yaml", string(parse(t, everything).Effective()))
}

// TestQuoted: any string comes through a dump as it is.
func TestQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.ReplaceAll(rapid.StringN(1, 40, 200).Draw(t, "s"), "\x00", "")
		if s == "" || isReference(s) || secretText(s) {
			return
		}
		src := fmt.Sprintf("version: 1\nservers: {a: {command: [%s, z], env: {A: %s}}}", quoted(s), quoted(s))
		r, err := Parse([]byte(src), newFixed().options())
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		a := r.Server("a")
		if a.Command[0] != s || a.Env[0].Value.Reveal() != s {
			t.Fatalf("%q became %q and %q", s, a.Command[0], a.Env[0].Value.Reveal())
		}
	})
}

// TestVersion: evidence tells rules apart, whatever they look like, and says
// nothing of a secret.
func TestVersion(t *testing.T) {
	const src = "version: 1\nservers: {a: {command: [x], env: {TOKEN: env:LAB}}, b: {command: [y]}}"
	r := parse(t, src)
	if v := r.Version(); !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(v) {
		t.Error(v)
	}
	for _, same := range []string{src + " # x", "servers: {b: {command: [y]}, a: {env: {TOKEN: env:LAB}, command: [x]}}\nversion: 1", src + "\nlisten: 127.0.0.1:7420"} {
		if parse(t, same).Version() != r.Version() {
			t.Errorf("another version: %s", same)
		}
	}
	if parse(t, strings.Replace(src, "[y]", "[z]", 1)).Version() == r.Version() {
		t.Error("the same version for other rules")
	}
	w := newFixed()
	w.env["LAB"] = "another"
	other, err := Parse([]byte(src), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if other.Version() != r.Version() || Equal(r, other) {
		t.Error("a secret that has changed makes another version, or goes unnoticed")
	}
	if d := Diff(r, other); len(d.Ended) != 1 || d.Ended[0] != "a" {
		t.Errorf("%+v", d)
	}
}

func TestDiff(t *testing.T) {
	const src = "version: 1\nauth: {tokens: file:tokens.json}\nservers:\n  a: {command: [x], timeout: 1m}\n  b: {url: \"https://b.example\", headers: {X: y}}\n"
	old := parse(t, src)
	for _, x := range []struct {
		from, to string
		want     Difference
	}{
		{"", "", Difference{}},
		{"[x]", "[x, y]", Difference{Ended: []string{"a"}}},
		{"a: {", "c: {", Difference{Ended: []string{"a"}, Added: []string{"c"}}},
		{"timeout: 1m", "timeout: 2m", Difference{Ruled: []string{"a"}}},
		{"timeout: 1m", "tools: {x: {allow: false}}", Difference{Ruled: []string{"a"}}},
		{"timeout: 1m", "env: {A: b}, timeout: 1m", Difference{Ended: []string{"a"}}},
		{"timeout: 1m", "share: shared, timeout: 1m", Difference{Ended: []string{"a"}}},
		{"X: y", "X: z", Difference{Ended: []string{"b"}}},
		{"b.example", "c.example", Difference{Ended: []string{"b"}}},
		{"version: 1\n", "version: 1\ndefaults: {max_chars: 9}\n", Difference{Ruled: []string{"a", "b"}}},
		{"version: 1\n", "version: 1\nlisten: 127.0.0.1:1\nhttp: {rate: 1}\ntelemetry: {log: debug}\nstore: file:x\npublic_url: https://x.example\n",
			Difference{Sections: []string{"listen", "store", "public_url", "http", "telemetry"}, Restart: []string{"listen", "store", "telemetry.log"}}},
		{"version: 1\n", "version: 1\nreview: {provider: anthropic, url: https://a.example, model: m}\n", Difference{Sections: []string{"review"}}},
		{"version: 1\n", "version: 1\nlimits: {children: 9}\n", Difference{Sections: []string{"limits"}, Restart: []string{"limits.children"}}},
		{"version: 1\n", "version: 1\nhttp: {max_body: 1MiB, rate: 1, drain: 1s}\n", Difference{Sections: []string{"http"}, Restart: []string{"http.max_body"}}},
		{"version: 1\n", "version: 1\nlimits: {children: 256, memory: 512MiB}\nevidence: {mode: best-effort}\n", Difference{}},
		{"version: 1\n", "version: 1\nlimits: {children: 9}\nevidence: {mode: off}\nguard: {buffer: true}\n",
			Difference{Sections: []string{"limits", "evidence", "guard"}, Restart: []string{"limits.children", "evidence.mode"}}},
		{"auth: {tokens: file:tokens.json}", "", Difference{Sections: []string{"auth"}}},
		{"servers:", "exceptions: [{server: a, code: nfkc, until: 2026-01-01T00:00:00Z, why: x}]\nservers:", Difference{Ruled: []string{"a"}}},
	} {
		is := parse(t, strings.Replace(src, x.from, x.to, 1))
		got := Diff(old, is)
		if diff := cmp.Diff(x.want, got); diff != "" || cmp.Equal(got, Difference{}) != Equal(old, is) {
			t.Errorf("%q for %q: %s", x.to, x.from, diff)
		}
	}
	w := newFixed()
	w.files["/etc/p/tokens.json"] = strings.ReplaceAll(w.files["/etc/p/tokens.json"], "lab", "someone")
	other, err := Parse([]byte(src), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Difference{Sections: []string{"auth"}}, Diff(old, other)); diff != "" || Equal(old, other) {
		t.Errorf("another token file: %s", diff)
	}
}
