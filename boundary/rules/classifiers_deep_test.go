// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

func TestDeepModel(t *testing.T) {
	// Without its file the fast model judges alone.
	dir := t.TempDir()
	o := newFixed().options()
	o.Dir = dir
	src := "version: 1\nclassifiers: {local: {provider: local, deep: {file: m.bin}}}"
	r, err := Parse([]byte(src), o)
	if err != nil {
		t.Fatal(err)
	}
	of, err := r.Classifiers[Local].Service()
	if _, fast := of.(local.Classifier); !fast || err != nil {
		t.Errorf("without the file: %T, %v", of, err)
	}
	file, model, err := r.Classifiers[Local].Deep()
	if file != filepath.Join(dir, "m.bin") || model != nil || err != nil {
		t.Errorf("without the file: %s, %v, %v", file, model, err)
	}
	// A file that is not the published one, or not the one that is named, is refused.
	if err := os.WriteFile(file, []byte("PELLUCID-DEEP\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("ab", 32)
	for _, src := range []string{src, strings.Replace(src, "m.bin", "m.bin, digest: \""+digest+"\"", 1)} {
		if _, err := Parse([]byte(src), o); err == nil || !strings.Contains(err.Error(), "the file is not the one whose digest is known") {
			t.Errorf("%s: %v", src, err)
		}
	}
	// One that has the digest and is no model is refused too.
	sum := sha256.Sum256([]byte("PELLUCID-DEEP\x00\x00\x00"))
	own := strings.Replace(src, "m.bin", `m.bin, digest: "sha256:`+hex.EncodeToString(sum[:])+`"`, 1)
	if _, err := Parse([]byte(own), o); err == nil || !strings.Contains(err.Error(), "not a model of this form") {
		t.Errorf("%v", err)
	}
	for src, want := range map[string]string{
		"{x: {provider: local, deep: {}}}":                                 "classifiers.x.deep.file: is missing",
		"{x: {provider: local, deep: {file: a, digest: abc}}}":             "want sha256: and 64 lower-case hex digits",
		"{x: {provider: lakera, url: https://a.example, deep: {file: a}}}": "there is no such member",
	} {
		if p := problemsOf(t, "version: 1\nclassifiers: "+src); !strings.Contains(p.Error(), want) {
			t.Errorf("%s: %v", src, p)
		}
	}
}
