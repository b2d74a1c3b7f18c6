// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"testing"

	"github.com/alecthomas/kong"
)

func quiet() *env {
	return &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }}
}

// TestVerbs checks that parse and runVerb can do without kong.Kong.Parse and kong.Context.Run:
// each verb has one of the two forms of Run, and no flag is of a kind that validate leaves out.
func TestVerbs(t *testing.T) {
	var c cli
	k, err := newParser(&c, quiet())
	if err != nil {
		t.Fatal(err)
	}
	verbs := 0
	err = kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
		switch n := n.(type) {
		case *kong.Node:
			if n.Type == kong.CommandNode && len(n.Children) == 0 {
				verbs++
				switch n.Target.Addr().Interface().(type) {
				case runner, tracedRunner:
				default:
					t.Errorf("%s has no Run(*env) error and no Run(*env, *kong.Context) error", n.FullPath())
				}
			}
		case *kong.Flag:
			if len(n.And) > 0 || len(n.LastWins) > 0 || n.Required && len(n.Xor) > 0 {
				t.Errorf("--%s: validate checks no and, no lastwins, and no required flag of a group", n.Name)
			}
		}
		return next(nil)
	})
	if err != nil || verbs < 40 {
		t.Errorf("%d verbs, %v", verbs, err)
	}
}

// TestParseErrors: what parse says of a wrong command line is what kong.Kong.Parse says.
func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // "": what kong says
	}{
		{[]string{"completion", "tcsh"}, `<shell> must be one of "bash","zsh","fish","powershell" but got "tcsh"`},
		{[]string{"completion"}, `expected "<shell>"`},
		{[]string{"wrap", "--profile", "some", "--", "x"}, `--profile must be one of "","faithful","mcp" but got "some"`},
		{[]string{"scrub", "--json", "--jsonl"}, "--json and --jsonl can't be used together"},
		{[]string{"pins"}, `expected one of "list", "diff", "approve", "block"`},
		{[]string{"store"}, `expected one of "migrate", "backup"`},
		{[]string{"attest", "sign"}, ""},
		{[]string{"forget"}, "forget: say what to forget: --principal NAME or --pin SERVER"},
		{[]string{"quarantine", "release"}, "quarantine release: give the id of an item, or --all with flags that select items"},
		{[]string{"quarantine", "revoke"}, ""},
		{[]string{"up", "nonsense"}, ""},
		{[]string{"--nonsense"}, ""},
		{[]string{"demo"}, ""},
		{[]string{"version", "--json"}, ""},
	} {
		var c, beside cli
		k, err := newParser(&c, quiet())
		if err != nil {
			t.Fatal(err)
		}
		reference, err := newParser(&beside, quiet())
		if err != nil {
			t.Fatal(err)
		}
		_, got := parse(k, tt.args)
		if tt.want != "" && text(got) != tt.want {
			t.Errorf("%q: %v, want %s", tt.args, got, tt.want)
		}
		_, want := reference.Parse(tt.args)
		if tt.want == "" && text(got) != text(want) {
			t.Errorf("%q: %v, kong says %v", tt.args, got, want)
		}
	}
	var c cli
	k, err := newParser(&c, quiet())
	if err != nil {
		t.Fatal(err)
	}
	exit := -1
	k.Exit = func(code int) { exit = code }
	if _, err := parse(k, []string{"version", "--help"}); err != nil || exit != 0 {
		t.Errorf("--help ends with %d, %v", exit, err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
