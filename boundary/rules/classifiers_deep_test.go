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
	// Without a file at the default place the fast model judges alone; one that is named has to be there.
	dir := t.TempDir()
	o := newFixed().options()
	o.Dir = dir
	src := "version: 1\nclassifiers: {local: {provider: local, deep: {}}}"
	r, err := Parse([]byte(src), o)
	if err != nil {
		t.Fatal(err)
	}
	of, err := r.Classifiers[Local].Service()
	if _, fast := of.(local.Classifier); !fast || err != nil {
		t.Errorf("without the file: %T, %v", of, err)
	}
	file, model, err := r.Classifiers[Local].Deep()
	if filepath.Base(file) != "detector.safetensors" || model != nil || err != nil {
		t.Errorf("without the file: %s, %v, %v", file, model, err)
	}
	src = strings.Replace(src, "deep: {}", "deep: {file: m.bin}", 1)
	if _, err := Parse([]byte(src), o); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file that is named: %v", err)
	}
	file = filepath.Join(dir, "m.bin")
	// A file that is not the published one, or not the one that is named, is refused.
	if err := os.WriteFile(file, []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("ab", 32)
	for _, src := range []string{src, strings.Replace(src, "m.bin", "m.bin, digest: \""+digest+"\"", 1)} {
		if _, err := Parse([]byte(src), o); err == nil || !strings.Contains(err.Error(), "the file is not the one whose digest is known") {
			t.Errorf("%s: %v", src, err)
		}
	}
	// One that has the digest and is no model is refused too.
	sum := sha256.Sum256([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	own := strings.Replace(src, "m.bin", `m.bin, digest: "sha256:`+hex.EncodeToString(sum[:])+`"`, 1)
	if _, err := Parse([]byte(own), o); err == nil || !strings.Contains(err.Error(), "not a model of this form") {
		t.Errorf("%v", err)
	}
	parse(t, "version: 1\nclassifiers: {x: {provider: local, mode: enforce, false_alarms: 25, deep: {}}}")
	for src, want := range map[string]string{
		"{x: {provider: local, mode: enforce, deep: {}}}":                   "classifiers.x.mode: enforce with the deep model needs false_alarms of at most 25",
		"{x: {provider: local, mode: enforce, false_alarms: 26, deep: {}}}": "classifiers.x.mode: enforce with the deep model needs",
		"{x: {provider: local, mode: enforce, limit: 0.1, deep: {}}}":       "classifiers.x.mode: enforce with the deep model needs",
		"{x: {provider: local, false_alarms: 501, deep: {}}}":               "classifiers.x.false_alarms: of the deep model it is known from 10 to 500",
		"{x: {provider: local, deep: {windows: 0}}}":                        "classifiers.x.deep.windows: want an integer from 1 to 1024",
		"{x: {provider: local, deep: {file: a, digest: abc}}}":              "want sha256: and 64 lower-case hex digits",
		"{x: {provider: lakera, url: https://a.example, deep: {file: a}}}":  "there is no such member",
	} {
		if p := problemsOf(t, "version: 1\nclassifiers: "+src); !strings.Contains(p.Error(), want) {
			t.Errorf("%s: %v", src, p)
		}
	}
}
