// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

// dumpOf is a saved surface with a tool for each description, in that order.
func dumpOf(tools ...string) string {
	for i, d := range tools {
		tools[i] = `{"name":"tool` + fmt.Sprint(len(d)) + `","description":` + jsonString(d) + `,"inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`
	}
	return `{"initialize":{"protocolVersion":"2025-06-18","serverInfo":{"name":"n","version":"1"},"capabilities":{}},"tools/list":[{"tools":[` +
		strings.Join(tools, ",") + `]}]}`
}

func jsonString(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}

var wireFormats = []string{"openai-chat", "openai-responses", "anthropic"}

// runCheck is pellucid check in this process.
func runCheck(t *testing.T, environ map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(append([]string{"check"}, args...), &env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(name string) string { return environ[name] }})
	return code, out.String(), errs.String()
}

// TestCheckReviewRemembered: an unchanged surface costs no second question, however
// it is ordered and spelled; any change of it, of the model or of the way to it does.
func TestCheckReviewRemembered(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PELLUCID_STATE", dir)
	environ := map[string]string{"THE_KEY": "k-123"}
	for _, format := range wireFormats {
		fake := llmtest.Start(t, llmtest.Always(llmtest.Reply{Text: " ok\n"}), "k-123")
		db := filepath.Join(dir, format+".db")
		check := func(dump string, more ...string) (int, string) {
			t.Helper()
			file := filepath.Join(dir, "dump.json")
			if err := os.WriteFile(file, []byte(dump), 0o600); err != nil {
				t.Fatal(err)
			}
			before := fake.Requests()
			args := append([]string{"--surface", file, "--server", "s", "--db", db, "--json", "--review-api", format,
				"--review-url", fake.URL, "--review-key", "env:THE_KEY"}, more...)
			code, out, errs := runCheck(t, environ, args...)
			if strings.Contains(out+errs, "k-123") {
				t.Error("the key is shown")
			}
			if code != 0 && code != exit.Changed {
				t.Errorf("%s: exit %d: %s%s", format, code, out, errs)
			}
			if got := strings.Count(errs, "\n"); got != 1 || !strings.HasPrefix(errs, "verifying 1 server") {
				t.Errorf("%s: standard error: %q", format, errs)
			}
			return fake.Requests() - before, out
		}
		one, two := "Says the time.", "Says the date of today."
		for _, x := range []struct {
			name  string
			dump  string
			args  []string
			calls int
			has   string
		}{
			{"first", dumpOf(one, two), []string{"--review-model", "m"}, 1, `"reviewed":true,"pinned":true`},
			{"again", dumpOf(one, two), []string{"--review-model", "m"}, 0, `"reviewed":true,"cached":true,"pinned":false`},
			{"reordered", dumpOf(two, one), []string{"--review-model", "m"}, 0, `"cached":true`},
			{"respelled", strings.ReplaceAll(dumpOf(one, two), `"name":"n","version":"1"`, ` "version":"\u0031" , "name":"n" `), []string{"--review-model", "m"}, 0, `"cached":true`},
			{"no pin", dumpOf(one, two), []string{"--review-model", "m", "--no-pin"}, 0, `"cached":true`},
			{"another model, and nothing is learned", dumpOf(one, two), []string{"--review-model", "m2", "--no-pin"}, 1, `"reviewed":true,"pinned":false`},
			{"another model", dumpOf(one, two), []string{"--review-model", "m2"}, 1, `"reviewed":true,"pinned":false`},
			{"changed: held, the rest is known", dumpOf(one, two+"!"), []string{"--review-model", "m"}, 0, `"conclusion":"changed"`},
			{"another server", dumpOf(one, two, "More than that."), []string{"--review-model", "m", "--server", "other"}, 1, `"pinned":true`},
		} {
			if calls, out := check(x.dump, x.args...); calls != x.calls || !strings.Contains(out, x.has) {
				t.Errorf("%s, %s: %d questions, want %d; %s", format, x.name, calls, x.calls, out)
			}
		}
		for _, a := range fake.Asks() {
			if a.Tools != nil || len(a.Messages) != 1 || a.System == "" || a.Stream || a.Temperature != 0 || a.MaxTokens != 8192 {
				t.Errorf("%s: asked with tools, a history, no rubric, a stream or a temperature: %s", format, a.Raw)
			}
		}
	}
}

// TestCheckReviewRejects: a person learns why, and nothing is pinned.
func TestCheckReviewRejects(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PELLUCID_STATE", dir)
	file := filepath.Join(dir, "dump.json")
	if err := os.WriteFile(file, []byte(dumpOf("Says the time.")), 0o600); err != nil {
		t.Fatal(err)
	}
	fake := llmtest.Start(t, llmtest.Always(llmtest.Reply{Text: "tool14: (1)\n  clean         all of it [x](https://e.example)\x1b[2J\u202e"}), "")
	args := []string{"--surface", file, "--server", "s", "--review-url", fake.URL, "--review-model", "m"}
	code, out, errs := runCheck(t, nil, args...)
	if code != exit.Rejected || strings.ContainsAny(out+errs, "\x1b\u202e") ||
		!strings.Contains(out, "rejected      the reviewer did not answer with a bare OK: surface: rejected: review-flagged (part 1)\n") ||
		!strings.Contains(out, "reviewer      tool14: (1)\n        clean") || strings.Contains(out, "pinned") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if runCheck(t, nil, args...); fake.Requests() != 2 {
		t.Errorf("%d questions: a rejection is remembered", fake.Requests())
	}
}

// TestCheckReviewUsage: what cannot be asked for is said before anything is started.
func TestCheckReviewUsage(t *testing.T) {
	t.Setenv("PELLUCID_STATE", t.TempDir())
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nreview: {provider: openai, url: x, model: m}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--review-model", "m"}, exit.Usage, "needs --review-model and --review-url"},
		{[]string{"--review-key", "env:A"}, exit.Usage, "needs --review-model and --review-url"},
		{[]string{"--review-model", "m", "--review-url", "http://a.example/v1"}, exit.Usage, "not https"},
		{[]string{"--review-model", "m", "--review-url", "https://u:p@a.example/v1"}, exit.Usage, "more than host and path"},
		{[]string{"--review-model", "m", "--review-url", "https://a.example", "--review-api", "grpc"}, exit.Usage, "openai-chat, openai-responses, anthropic, google or http"},
		{[]string{"--review-model", "m", "--review-url", "https://a.example", "--review-tokens=-1"}, exit.Usage, "positive"},
		{[]string{"--review-model", "m", "--review-url", "https://a.example", "--review-key", "sk-secret"}, exit.Config, "by reference"},
		{[]string{"--review-model", "m", "--review-url", "https://a.example", "--review-key", "env:NOT_THERE"}, exit.Config, "is not set"},
		{[]string{"--config", file}, exit.Config, "openai-chat, openai-responses, anthropic, google or http"},
		{[]string{"--config", filepath.Join(t.TempDir(), "no.yaml")}, exit.Config, "cannot be read"},
	} {
		code, out, errs := runCheck(t, nil, append(x.args, "--", "/no/such")...)
		if code != x.code || !strings.Contains(errs, x.want) || out != "" || strings.Contains(errs, "sk-secret") {
			t.Errorf("%q: exit %d: %s%s", x.args, code, out, errs)
		}
	}
}
