// SPDX-License-Identifier: Apache-2.0

// Package scripttest runs the scripts that test the verbs of a program.
package scripttest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Run runs the scripts in testdata/script of the package under test, which is two folders below the root.
func Run(t *testing.T) {
	data, _ := filepath.Abs("../../../shared/data")
	examples, _ := filepath.Abs("../../docs/examples")
	if dir := os.Getenv("PELLUCID_DATA"); dir != "" {
		data = dir
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("PELLUCID_UPDATE_SCRIPTS") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TEST_DATA", data)
			env.Setenv("EXAMPLES", examples)
			env.Setenv("HIDDEN", "https://e.example/\u202e")
			env.Setenv("ESC", "\x1b[31m\u202e")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "data" {
				return false, errors.New("no such condition")
			}
			_, err := os.Stat(filepath.Join(data, "corpora"))
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   cmdExits,
			"bytes":   cmdBytes,
			"holds":   cmdHolds,
			"capture": cmdCapture,
			"until":   cmdUntil,
		},
	})
}

// cmdUntil runs a program again and again until it ends with code 0:
//
//	until PROGRAM ARG...
//
// A test waits with it for what another program makes.
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: until PROGRAM ARG...")
	}
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = ts.Exec(args[0], args[1:]...); err == nil {
			return
		}
	}
	ts.Fatalf("within a minute: %v", err)
}

// cmdExits runs a program that must end with one certain code:
//
//	exits CODE PROGRAM ARG...
//
// It reads what the last "stdin" command named.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if ee, ok := err.(*exec.ExitError); ok {
		got = ee.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cmdBytes writes the bytes that a Go string literal stands for:
//
//	bytes FILE LITERAL [TIMES]
func cmdBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: bytes FILE LITERAL [TIMES]")
	}
	s, err := unquote(args[1])
	ts.Check(err)
	times := 1
	if len(args) == 3 {
		times, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(s, times)), 0o666))
}

// unquote returns what a Go string literal stands for; the quotes around it are
// left out, those in it stand as they are.
func unquote(s string) (string, error) {
	return strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
}

// cmdHolds compares a file, or stdout, with a Go string literal:
//
//	holds FILE LITERAL
func cmdHolds(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: holds FILE LITERAL")
	}
	want, err := unquote(args[1])
	ts.Check(err)
	if got := ts.ReadFile(args[0]); (got == want) == neg {
		ts.Fatalf("%s is %+q", args[0], got)
	}
}

// cmdCapture keeps what a group of a regular expression matches in the last stdout:
//
//	capture VARIABLE REGEXP
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture VARIABLE REGEXP")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("no match for %q with one group", args[1])
	}
	ts.Setenv(args[0], m[1])
}
