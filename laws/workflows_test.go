// SPDX-License-Identifier: Apache-2.0

package pellucid_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestWorkflows: a workflow may only read unless one of its jobs says more, names a version of every
// action, gives no expression to a shell, and runs targets that the Makefile has.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	makefile := string(readFile(t, "Makefile"))
	for _, file := range files {
		for _, wrong := range wrongWorkflow(t, readFile(t, file), makefile) {
			t.Errorf("%s: %s", file, wrong)
		}
	}
}

var makeTarget = regexp.MustCompile(`(?m)^make ([a-z-]+)`)

func wrongWorkflow(t *testing.T, b []byte, makefile string) (wrong []string) {
	t.Helper()
	var w struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Steps []struct{ Uses, Run string }
			Uses  string
		}
	}
	if err := yaml.Unmarshal(b, &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		wrong = append(wrong, "permissions of the whole workflow are not contents: read")
	}
	for name, job := range w.Jobs {
		for _, s := range job.Steps {
			if _, version, _ := strings.Cut(s.Uses, "@"); s.Uses != "" && version == "" {
				wrong = append(wrong, name+" uses "+s.Uses+" without a version")
			}
			if strings.Contains(s.Run, "${{") {
				wrong = append(wrong, name+" gives an expression to a shell: pass it by env")
			}
			for _, m := range makeTarget.FindAllStringSubmatch(s.Run, -1) {
				if !strings.Contains(makefile, "\n"+m[1]+":") {
					wrong = append(wrong, name+" runs make "+m[1]+", which the Makefile does not have")
				}
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestWrongWorkflow(t *testing.T) {
	const bad = "permissions: {contents: write}\njobs:\n  a:\n    steps:\n      - uses: x/y\n      - run: make none\n      - run: echo ${{ github.ref }}\n"
	if got := wrongWorkflow(t, []byte(bad), "\nall:\n"); len(got) != 4 {
		t.Errorf("%q", got)
	}
	const good = "permissions: {contents: read}\njobs:\n  a:\n    steps:\n      - uses: x/y@v1\n      - run: make all\n"
	if got := wrongWorkflow(t, []byte(good), "\nall: x\n"); got != nil {
		t.Errorf("%q", got)
	}
}
