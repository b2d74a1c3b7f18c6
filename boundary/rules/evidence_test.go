// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/rand"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

func TestEvidence(t *testing.T) {
	key, _, err := note.GenerateKey(rand.Reader, "log.example/a")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Getenv: func(name string) (string, bool) {
		v, ok := map[string]string{"KEY": key, "NONE": "hunter2"}[name]
		return v, ok
	}}
	for src, want := range map[string]string{
		"{}":               "",
		"{mode: required}": "",
		"{mode: off}":      "",
		"{key: 'env:KEY'}": "",
		"{key: 'env:KEY', origin: log.example/a}": "",
		"{mode: sometimes}":                       "mode",
		"{origin: 'a b'}":                         "origin",
		"{origin: a+b}":                           "origin",
		"{key: 'env:NONE'}":                       "does not hold a log's private key",
		"{key: hunter2}":                          "has to be a reference",
		"{key: 'env:KEY', origin: other}":         "of another log",
		"{bucket: x}":                             "bucket",
	} {
		r, err := Parse([]byte("version: 1\nevidence: "+src+"\n"), o)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", src, err)
		case want == "":
			if given := strings.Contains(src, "KEY"); (r.Evidence.Signer() != nil) != given {
				t.Errorf("%s: signer %v", src, r.Evidence.Signer())
			}
			if strings.Contains(string(r.Effective()), "PRIVATE") {
				t.Errorf("%s: the key stands in the dump", src)
			}
		case err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") && !strings.Contains(src, "hunter2"):
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}
