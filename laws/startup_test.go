// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxInitBytes is the limit of what all packages of the program allocate before main begins. A
// table, a regular expression or a scrubber that is made there costs each start of each verb,
// and a client waits for it: make it with sync.OnceValue where it is first used.
const maxInitBytes = 3_250_000

// An initialization is what the Go runtime reports of a package's, with GODEBUG=inittrace=1.
type initialization struct {
	path         string
	milliseconds float64
	bytes        int
}

// readInitTrace returns the initializations that a program has written to its standard error,
// the slowest first, and the sums of all.
func readInitTrace(trace string) (all []initialization, milliseconds float64, bytes int) {
	for line := range strings.Lines(trace) {
		var i initialization
		var at float64
		var allocations int
		if n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &i.path, &at, &i.milliseconds, &i.bytes, &allocations); n == 5 {
			all = append(all, i)
			milliseconds += i.milliseconds
			bytes += i.bytes
		}
	}
	slices.SortFunc(all, func(a, b initialization) int { return cmp.Compare(b.milliseconds, a.milliseconds) })
	return all, milliseconds, bytes
}

// TestStartup prints how long the packages of the program take before main begins, and the five
// slowest. It fails by the bytes that they allocate, which hardly differ between machines.
func TestStartup(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "pellucid.exe")
	// The flags of a test's own build, so that the compiled packages are those of the tests.
	build := exec.Command("go", "build", "-o", bin, "./cmd/pellucid")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(bin, "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	all, milliseconds, bytes := readInitTrace(trace.String())
	if len(all) < 100 {
		t.Fatalf("the trace names %d packages", len(all))
	}
	t.Logf("%d packages: %.1f ms, %d bytes", len(all), milliseconds, bytes)
	for _, i := range all[:5] {
		t.Logf("%5.2f ms %8d bytes  %s", i.milliseconds, i.bytes, i.path)
	}
	if bytes > maxInitBytes {
		t.Errorf("the packages allocate %d bytes before main begins; the limit is %d", bytes, maxInitBytes)
		slices.SortFunc(all, func(a, b initialization) int { return cmp.Compare(b.bytes, a.bytes) })
		for _, i := range all[:10] {
			t.Logf("%8d bytes  %s", i.bytes, i.path)
		}
	}
}

func TestStartupCanFail(t *testing.T) {
	all, milliseconds, bytes := readInitTrace("init a/b @0.5 ms, 0.25 ms clock, 1000 bytes, 10 allocs\npellucid (devel)\n" +
		"init main @1 ms, 2 ms clock, 5000000 bytes, 7 allocs\n")
	if len(all) != 2 || all[0].path != "main" || milliseconds != 2.25 || bytes != 5_001_000 {
		t.Errorf("%+v, %v ms, %d bytes", all, milliseconds, bytes)
	}
}
