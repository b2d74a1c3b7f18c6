// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"cmp"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestWorkflows: a workflow may only read unless one of its jobs says more, names the commit of every
// action, gives no expression to a shell, and runs targets that its Makefile has.
func TestWorkflows(t *testing.T) {
	files, err := fs.Glob(os.DirFS(root), ".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	makefiles := map[string]string{}
	for _, name := range []string{"Makefile", "packaging/Makefile"} {
		makefiles[name] = string(readFile(t, name))
	}
	for _, file := range files {
		for _, wrong := range wrongWorkflow(t, readFile(t, file), makefiles) {
			t.Errorf("%s: %s", file, wrong)
		}
	}
}

// pinned matches an action with its commit: a tag can be moved to another one.
var pinned = regexp.MustCompile(`@[0-9a-f]{40}$`)

var makeTarget = regexp.MustCompile(`(?m)^make (?:-f (\S+) )?([a-z][a-z-]*)`)

func wrongWorkflow(t *testing.T, b []byte, makefiles map[string]string) (wrong []string) {
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
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				wrong = append(wrong, name+" does not name the commit of "+s.Uses)
			}
			if strings.Contains(s.Run, "${{") {
				wrong = append(wrong, name+" gives an expression to a shell: pass it by env")
			}
			for _, m := range makeTarget.FindAllStringSubmatch(s.Run, -1) {
				if makefile := cmp.Or(m[1], "Makefile"); !strings.Contains(makefiles[makefile], "\n"+m[2]+":") {
					wrong = append(wrong, name+" runs make "+m[2]+", which "+makefile+" does not have")
				}
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestWrongWorkflow(t *testing.T) {
	const bad = "permissions: {contents: write}\njobs:\n  a:\n    steps:\n      - uses: x/y@v1\n      - run: make none\n      - run: echo ${{ github.ref }}\n"
	if got := wrongWorkflow(t, []byte(bad), map[string]string{"Makefile": "\nall:\n"}); len(got) != 4 {
		t.Errorf("%q", got)
	}
	const good = "permissions: {contents: read}\njobs:\n  a:\n    steps:\n      - uses: x/y@0123456789abcdef0123456789abcdef01234567 # v1\n      - run: make all\n      - run: make -f a/Makefile pack\n"
	if got := wrongWorkflow(t, []byte(good), map[string]string{"Makefile": "\nall: x\n", "a/Makefile": "\npack: x\n"}); got != nil {
		t.Errorf("%q", got)
	}
}
