// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/rand"
	"io/fs"
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

// TestEvidencePublished: witnesses are compiled and dumped, and what they lack is said. Former members say what to do now.
func TestEvidencePublished(t *testing.T) {
	const w1, w2 = "w.example/1+a66cf740+BM7MFQfcHd1ylZUcKQiI8JWtuQRNG3PWlubfBl1oO9T8", "w.example/2+63ada459+BGt5xX5qCVI5KCwEgY6WES8/A6QAG6l6VkwjhSo/HqX8"
	o := Options{Getenv: func(name string) (string, bool) {
		return "", false
	}, ReadFile: func(name string) ([]byte, error) {
		if v := map[string]string{"/p": "witness A " + w1 + " https://w1.example/\nquorum A\n", "/bad": "quorum X\n"}[name]; v != "" {
			return []byte(v), nil
		}
		return nil, fs.ErrNotExist
	}}
	for src, want := range map[string]string{
		"{witnesses: {list: [{key: " + w1 + ", url: https://w1.example}, {key: " + w2 + ", url: https://w2.example/a}], quorum: 1, every: 1s}}": "",
		"{witnesses: {policy: /p}}":                                                    "",
		"{standby: go-on}":                                                             "",
		"{witnesses: {policy: /none}}":                                                 "cannot be read",
		"{witnesses: {}}":                                                              "no witness has a URL",
		"{witnesses: {policy: file:/bad}}":                                             "the quorum is not defined before",
		"{witnesses: {policy: /p, quorum: 1}}":                                         "has policy and list",
		"{witnesses: {list: [{key: nonsense, url: https://w1.example}]}}":              "a witness's verifier key",
		"{witnesses: {list: [{key: " + w1 + ", url: http://w1.example}]}}":             "its host is not this machine",
		"{witnesses: {list: [{key: " + w1 + ", url: https://w1.example}], quorum: 2}}": "greater than the number of witnesses",
		"{witnesses: {list: [{key: " + w1 + ", url: https://a.example}, {key: " + w1 + ", url: https://b.example}]}}": "a key stands there twice",
		"{mirror: {path: /srv/log}}":      "pellucid ledger export writes the same files",
		"{export: [{name: a, path: /x}]}": "pellucid ledger export --follow",
		"{kms: {key: env:W}}":             "evidence.key: file:PATH",
		"{standby: perhaps}":              "evidence.standby",
	} {
		r, err := Parse([]byte("version: 1\nevidence: "+src+"\n"), o)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", src, err)
		case want == "":
			if again, err := Parse([]byte(r.Effective()), o); err != nil || again.Version() != r.Version() {
				t.Errorf("%s: the dump is not the same: %v\n%s", src, err, r.Effective())
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v", src, err)
		}
	}
}
