// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestResults: what a policy decides of each case, for a person.
func TestResults(t *testing.T) {
	x, err := parsePolicyTest([]byte(`policy: {preset: standard}
cases:
  - name: "clean\u202e"
    event: {hints: {read_only: true}}
    want: allow
  - name: call
    event: {direction: call, server: files, tool: write, trust: {tool: 0.3}}
    want: {action: deny, rule: some-rule, would: ask}
  - name: no rule
    event: {findings: {hidden-tag: 3}, trust: {tool: 0.3}}
    want: {action: allow, rule: ""}
`), newFixed().options())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	passed := ""
	for r := range x.Results() {
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
		passed += map[bool]string{true: "+", false: "-"}[r.Passed]
	}
	want := "ok    clean\u2039U+202E RIGHT-TO-LEFT OVERRIDE\u203a\n" +
		"FAIL  call (line 6)\n      want deny, rule some-rule, would ask\n      got  ask, rule distrusted-privileged\n" +
		"FAIL  no rule (line 9)\n      want allow, no rule\n      got  hold, rule distrusted-hidden\n"
	if passed != "+--" || b.String() != want {
		t.Errorf("%s:\n%s\nwant\n%s", passed, &b, want)
	}
	for range x.Results() { // a caller that has seen enough
		break
	}
}

// TestLoadPolicyTest: a file is read, and every error names it, quoted.
func TestLoadPolicyTest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if x, err := LoadPolicyTest(filepath.Join("..", "..", "docs", "examples", "policy", "policy_cases.yaml")); err != nil || len(x.Cases) == 0 {
		t.Errorf("the example: %v", err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "a\u202e"):                      "no such file or directory",
		write("long.yaml", strings.Repeat("#", maxFile+1)): "longer than ",
		write("bad.yaml", "cases: []"):                     "want either policy, or config",
	} {
		_, err := LoadPolicyTest(name)
		if err == nil || !strings.HasPrefix(err.Error(), "policy: ") || !strings.Contains(err.Error(), strconv.QuoteToASCII(name)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+q: %v", name, err)
		}
	}
}
