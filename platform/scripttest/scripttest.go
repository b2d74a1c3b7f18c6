// SPDX-License-Identifier: Apache-2.0

// Package scripttest runs the scripts that test the verbs of a program.
package scripttest

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// AsUser is the main function of a program, whose user has the home that a script says, on Windows too.
func AsUser(main func()) func() {
	return func() {
		if home := os.Getenv("HOME"); runtime.GOOS == "windows" && home != "" {
			os.Setenv("USERPROFILE", home)
			os.Setenv("APPDATA", cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")))
		}
		main()
	}
}

// noFile matches what this system says of a file that is not there.
func noFile() string {
	if runtime.GOOS == "windows" {
		return `(The system cannot find the (file|path) specified|(File|Path) not found)\.`
	}
	return "no such file or directory"
}

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
			env.Setenv("NO_FILE", noFile())
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
			"replace": cmdReplace,
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
//
// Before the name of a file, >> has them written behind what it has.
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
	name, isMore := strings.CutPrefix(args[0], ">>")
	all := strings.Repeat(s, times)
	if isMore {
		all = ts.ReadFile(name) + all
	}
	ts.Check(os.WriteFile(ts.MkAbs(name), []byte(all), 0o600))
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

// cmdReplace replaces what a regular expression matches in a file:
//
//	replace FILE REGEXP TEXT
func cmdReplace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE REGEXP TEXT")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	before := ts.ReadFile(args[0])
	after := re.ReplaceAllString(before, args[2])
	if after == before {
		ts.Fatalf("no match for %q", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(after), 0o600))
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
