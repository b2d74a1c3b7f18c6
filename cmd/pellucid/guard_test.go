// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGuardTwoPersons: the guard takes from the configuration that a release needs two persons.
func TestGuardTwoPersons(t *testing.T) {
	for _, want := range []bool{true, false} {
		config := "version: 1\nguard: {upstream: \"https://api.example.com/v1\"}\n"
		if want {
			config += "quarantine: {two_persons: true}\n"
		}
		file := filepath.Join(t.TempDir(), "pellucid.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := (&guardServeCmd{Config: file}).settings(&env{Getenv: os.Getenv})
		if err != nil || set.TwoPersons != want {
			t.Errorf("%+v, %v; want %v", set, err, want)
		}
	}
}
