// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

const (
	packaging = "../../packaging"
	chart     = packaging + "/helm/pellucid"
)

// deployTool is the path of what `make -f packaging/Makefile deploy-tools` has made. Where it is absent, the test skips.
func deployTool(t *testing.T, name string) string {
	t.Helper()
	programtest.Need(t)
	path, err := filepath.Abs(filepath.Join("..", "..", ".tools", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed; `make -f packaging/Makefile deploy-tools` installs it", name)
	}
	return path
}

// output runs a program and returns what it printed; it has to end with 0.
func output(t *testing.T, argv ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, out, &stderr)
	}
	return string(out)
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
