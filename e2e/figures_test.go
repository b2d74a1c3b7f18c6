// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
)

// memoryBound is what wrap may hold resident while messages of 1 MiB flow: the
// figure of every gateway process. Half of it is pages of the binary itself,
// which all processes share.
const memoryBound = 54_000_000

func sizeArgs(n int, text string) string {
	return `{"name":"size","arguments":{"n":` + strconv.Itoa(n) + `,"text":` + quote(text) + `}}`
}

const (
	ascii = "The quick brown fox jumps over the lazy dog.\n"
	mixed = "Съешь же ещё этих мягких французских булок. 色は匂へど散りぬるを 키스의 고유조건은 ½…\n"
)

// TestMemory sends messages of 1 MiB through Pellucid and looks at its size.
func TestMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc here")
	}
	for name, text := range map[string]string{"ascii": ascii, "mixed": mixed} {
		t.Run(name, func(t *testing.T) {
			s := hostile(t, "size")
			s.result("tools/list", "")
			s.result("tools/call", behave)
			idle := status(s.cmd.Process.Pid, "VmRSS:")
			for range 100 {
				s.result("tools/call", sizeArgs(1<<20-1<<10, text))
			}
			rss, most := status(s.cmd.Process.Pid, "VmRSS:"), peak(t, s)
			t.Logf("idle %.1f MiB, after 100 × 1 MiB %.1f MiB, peak %.1f MiB", mib(idle), mib(rss), mib(most))
			if most >= memoryBound {
				t.Errorf("peak %.1f MiB, want less than %.1f", mib(most), mib(memoryBound))
			}
			if code := s.exit(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

func mib(size int) float64 { return float64(size) / (1 << 20) }

// TestLatency reports what Pellucid adds to a call, measured beside the same
// server without it, call by call in turn. It asserts nothing: the machine may
// be busy.
func TestLatency(t *testing.T) {
	calls, err := strconv.Atoi(os.Getenv("PELLUCID_E2E_CALLS"))
	if err != nil {
		t.Skip("it measures, for make bench: $PELLUCID_E2E_CALLS is the number of calls")
	}
	m := mark()
	in, server := newInstall(t), helperServer(t, "size", m)
	direct := start(t, bare(server...))
	wrapped := start(t, in.wrap("size", server...))
	for _, s := range []*session{direct, wrapped} {
		s.initializeWith(`{}`)
		s.result("tools/list", "")
	}
	t.Logf("%s/%s, %d processors, %d calls each", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), calls)
	for _, c := range []struct {
		name string
		n    int
		text string
	}{
		{"128 B ascii", 128, ascii}, {"1 KiB ascii", 1 << 10, ascii}, {"10 KiB ascii", 10 << 10, ascii},
		{"10 KiB mixed", 10 << 10, mixed}, {"100 KiB ascii", 100 << 10, ascii}, {"100 KiB mixed", 100 << 10, mixed},
		{"1 MiB ascii", 1<<20 - 1<<10, ascii}, {"1 MiB mixed", 1<<20 - 1<<10, mixed},
	} {
		var took [2][]time.Duration
		n := calls
		if c.n > 64<<10 {
			n = max(10, calls/10)
		}
		for range n {
			for i, s := range []*session{direct, wrapped} {
				begin := time.Now()
				s.result("tools/call", sizeArgs(c.n, c.text))
				took[i] = append(took[i], time.Since(begin))
			}
		}
		slices.Sort(took[0])
		slices.Sort(took[1])
		at := func(i, p int) time.Duration { return took[i][len(took[i])*p/100].Round(time.Microsecond) }
		t.Logf("%-14s direct p50 %8v p90 %8v   wrapped p50 %8v p90 %8v   added p50 %8v", c.name,
			at(0, 50), at(0, 90), at(1, 50), at(1, 90), at(1, 50)-at(0, 50))
	}
	wrapped.exit()
	if ps := wrapped.cmd.ProcessState; ps != nil {
		t.Logf("processor time of the relay: %v", ps.UserTime()+ps.SystemTime())
	}
	direct.exit()
	gone(t, m)
}
