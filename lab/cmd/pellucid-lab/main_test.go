// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pellucid-lab": main})
}

func TestScripts(t *testing.T) {
	data, _ := filepath.Abs("../../../../shared/data")
	if dir := os.Getenv("PELLUCID_DATA"); dir != "" {
		data = dir
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TEST_DATA", data)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "data" {
				return false, errors.New("no such condition")
			}
			_, err := os.Stat(filepath.Join(data, "corpora"))
			return err == nil, nil
		},
	})
}

// TestExitCodes: what a program that calls this one branches on.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"corpora", "--data", "absent"}, 1},
		{[]string{"corpora", "stray"}, 2},
		{[]string{"scrub", "--rounds", "0"}, 2},
		{[]string{"gateway", "--pause", "2s"}, 2},
		{[]string{"ccr", "--tracks", "XY"}, 2},
		{[]string{"ccr", "--live", "nowhere"}, 2},
		{[]string{"ccr", "--traces", "absent"}, 1},
		{[]string{"calibrate", "context.json"}, 2},
		{[]string{"calibrate", "--url", "http://127.0.0.1:1/v1", "--answers", "1", "context.json"}, 2},
		{[]string{"nothing"}, 2},
		{nil, 2},
	} {
		silent, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		if got := run(c.args, &env{Stdout: silent, Stderr: silent, Getenv: os.Getenv}); got != c.want {
			t.Errorf("%q: %d, want %d", c.args, got, c.want)
		}
	}
}
