// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

func TestClassifiers(t *testing.T) {
	r := parse(t, "version: 1\nservers: {s: {url: https://s.example}}")
	l := r.Classifiers[Local]
	if len(r.Classifiers) != 1 || l == nil || l.Mode != policy.Shadow || len(r.Server("s").Tool("t").Classifiers) > 0 {
		t.Fatalf("by default %+v for %v", l, r.Server("s").Tool("t").Classifiers)
	}
	full := parse(t, `version: 1
servers:
  s:
    url: https://s.example
    classify: [shields, local]
    tools:
      quiet: {classify: []}
defaults: {classify: [shields]}
classifiers:
  shields: {provider: azure, url: https://a.example, key: env:LAB, fail: open, timeout: 300ms}
`)
	x := full.Classifiers["shields"]
	if x.Mode != policy.Enforce || x.Fail != classify.FailOpen || x.timeout != 300*time.Millisecond || x.Key.Reveal() != secret {
		t.Errorf("%+v", x)
	}
	s := full.Server("s")
	if got := s.Tool("other").Classifiers; !slices.Equal(got, []string{"shields", "local"}) {
		t.Errorf("of the server: %v", got)
	}
	if got := s.Tool("quiet").Classifiers; len(got) != 0 {
		t.Errorf("of the tool: %v", got)
	}
	if all := s.All(); len(all) != 2 || all[0] != s.Tool("") || all[1] != s.Tool("quiet") || s.Rules()[1] != s.Rule("quiet") {
		t.Errorf("all: %+v", all)
	}
	for name, c := range full.Classifiers {
		of, err := c.Service()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := classify.New(c.Options(of, nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if shown := fmt.Sprintf("%+v %s", x, full.Effective()); strings.Contains(shown, "text:"+secret) || strings.Contains(string(full.Effective()), secret) {
		t.Error("the key is shown")
	}
	// Another key is another configuration of the same version.
	w := newFixed()
	w.env["LAB"] = "another"
	src := "version: 1\nclassifiers: {x: {provider: lakera, url: https://a.example, key: env:LAB}}"
	other, err := Parse([]byte(src), w.options())
	if err != nil {
		t.Fatal(err)
	}
	one := parse(t, src)
	if d := Diff(one, other); !slices.Equal(d.Sections, []string{"classifiers"}) || Equal(one, other) || one.Version() != other.Version() {
		t.Errorf("another key: %+v", d)
	}
}

// Every provider can be made, and every one refuses what is another's.
func TestProviders(t *testing.T) {
	r := parse(t, everything)
	seen := map[string]bool{}
	for name, c := range r.Classifiers {
		seen[c.Provider] = true
		if c.IsJudge() {
			e, err := c.Endpoint()
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			e.Close()
			continue
		}
		if _, err := c.Service(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range classifierProviders {
		if !seen[p] {
			t.Errorf("no example of %s", p)
		}
	}
}

// A rate of false alarms is a limit of the model of the program.
func TestFalseAlarms(t *testing.T) {
	r := parse(t, "version: 1\nclassifiers: {x: {provider: local, false_alarms: 20}, y: {provider: local, false_alarms: 500}, z: {provider: local, limit: 0.4}}")
	few, many := r.Classifiers["x"].Options(nil, nil).Limit, r.Classifiers["y"].Options(nil, nil).Limit
	if want, _ := local.Default().LimitFor(20); few != float64(want) || many >= few || many <= 0 || r.Classifiers["z"].Options(nil, nil).Limit != 0.4 {
		t.Errorf("limits %v and %v", few, many)
	}
}

func TestClassifierProblems(t *testing.T) {
	for _, x := range []struct{ src, want string }{
		{"{x: {}}", "classifiers.x.provider: is missing"},
		{"{x: {provider: azur}}", "want azure, bedrock, http, judge, lakera, local, model-armor or nemo"},
		{"{x: {provider: azure, url: https://a.example}}", "classifiers.x.key: is missing"},
		{"{x: {provider: azure, url: https://a.example, key: sk-live-secret}}", "is a secret, and has to be a reference"},
		{"{x: {provider: azure, url: http://a.example, key: env:LAB}}", "https"},
		{"{x: {provider: azure, url: https://a.example, key: env:LAB, guardrail: g}}", "classifiers.x.guardrail: there is no such member"},
		{"{x: {provider: local, key: env:LAB}}", "classifiers.x.key: there is no such member"},
		{"{local: {provider: azure, url: https://a.example, key: env:LAB}}", "the name local is that of the model"},
		{"{x: {provider: local, mode: audit}}", "want enforce or shadow"},
		{"{x: {provider: local, fail: pass}}", "want hold, open or closed"},
		{"{x: {provider: local, flagged: pass}}", "want hold or withhold"},
		{"{x: {provider: local, limit: 1.5}}", "want a number from 0 to 1"},
		{"{x: {provider: local, false_alarms: 5}}", "classifiers.x.false_alarms: want an integer from 10 to 1000"},
		{"{x: {provider: local, false_alarms: many}}", "classifiers.x.false_alarms"},
		{"{x: {provider: local, false_alarms: 100, limit: 0.5}}", "stands beside limit: give one of them"},
		{"{x: {provider: azure, url: https://a.example, key: env:LAB, false_alarms: 100}}", "classifiers.x.false_alarms: there is no such member"},
		{"{x: {provider: local, timeout: 2h}}", "want a duration from 10ms to 1m"},
		{"{x: {provider: judge, url: https://a.example, model: m, format: soap}}", "want openai-chat, openai-responses, anthropic or google"},
		{"{x: {provider: onnx, model_file: m.onnx, injection: [A]}}", "classifiers.x.provider: ONNX models are no longer run: serve the model over HTTP"},
		{"{\"a b\": {provider: local}}", "not a name that can stand here"},
	} {
		p := problemsOf(t, "version: 1\nclassifiers: "+x.src)
		if shown := p.Error(); !strings.Contains(shown, x.want) || strings.Contains(shown, "sk-live") {
			t.Errorf("%s: %s", x.src, shown)
		}
	}
	if p := problemsOf(t, "version: 1\nclassifiers: {x: {provider: azure, mode: x, fail: x, limit: 2, timeout: 1}, y: {provider: z}}\ndefaults: {classify: [nobody]}"); len(p) != 8 {
		t.Errorf("not all at once: %v", p)
	}
}

// TestClassifyAlso: what else is judged of a server that has classifiers is all by default, may be
// chosen for a server, and is nothing of a tool.
func TestClassifyAlso(t *testing.T) {
	r := parse(t, `version: 1
defaults: {classify: [local], classify_also: [logs, prompts]}
servers:
  a: {url: "https://s.example"}
  b: {url: "https://s.example", classify_also: []}
  c: {url: "https://s.example", classify: []}
`)
	for server, want := range map[string]string{"a": "logs prompts", "b": "", "c": ""} {
		var got []string
		for _, kind := range gateway.Elsewheres {
			if names := r.Server(server).Also(kind); len(names) > 0 {
				got = append(got, string(kind))
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", server, got)
		}
	}
	all := parse(t, `{version: 1, servers: {a: {url: "https://s.example", classify: [local]}}}`)
	for _, kind := range gateway.Elsewheres {
		if !slices.Equal(all.Server("a").Also(kind), []string{Local}) {
			t.Errorf("%s is not judged", kind)
		}
	}
	if len(all.Server("a").Also(gateway.InDescriptions)) > 0 {
		t.Error("descriptions are messages")
	}
	for src, want := range map[string]string{
		"version: 1\ndefaults: {classify_also: [tools]}":                                "defaults.classify_also[0]: want prompts",
		"version: 1\nservers: {a: {command: [x], tools: {t: {classify_also: [logs]}}}}": "there is no such member",
	} {
		if p := problemsOf(t, src); len(p) != 1 || !strings.Contains(fmt.Sprint(p), want) {
			t.Errorf("%s: %v", src, p)
		}
	}
}
