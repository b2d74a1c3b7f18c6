// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// cpuOf is the processor time that a process has used; 0 where nobody says.
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// A contender is a running gateway with one way of keeping evidence.
type contender struct {
	name     string
	cmd      *exec.Cmd
	sessions []*httpSession
	in       *install
	calls    int64
	cpu      time.Duration
	rates    []float64
	p50      []time.Duration
}

// slice has every session call as often as it can for a while.
func (c *contender) slice(b *testing.B, d time.Duration) {
	before := cpuOf(c.cmd.Process.Pid)
	var calls atomic.Int64
	done, began := make(chan []time.Duration), time.Now()
	for _, s := range c.sessions {
		go func() {
			var took []time.Duration
			for time.Since(began) < d {
				at := time.Now()
				s.result("tools/call", `{"name":"read","arguments":{}}`)
				took = append(took, time.Since(at))
				calls.Add(1)
			}
			done <- took
		}()
	}
	var all []time.Duration
	for range c.sessions {
		all = append(all, <-done...)
	}
	slices.Sort(all)
	c.rates = append(c.rates, float64(calls.Load())/time.Since(began).Seconds())
	c.p50 = append(c.p50, all[len(all)/2])
	time.Sleep(time.Second) // what is left to integrate counts as well
	c.calls += calls.Load()
	c.cpu += cpuOf(c.cmd.Process.Pid) - before
}

// BenchmarkEvidenceHTTP prints what evidence costs `pellucid up`, whose client and
// server speak HTTP: all ways take turns, each in a process of its own. CPU is that of
// the gateway alone, with the integration of what it has recorded; the rate is that of
// a machine that has the client and the server to carry, too. Its own loop does not
// count: run it with -benchtime 1x.
func BenchmarkEvidenceHTTP(b *testing.B) {
	const sessions, rounds, length = 8, 6, 2 * time.Second
	body := quote(strings.Repeat("A kilobyte of plain text. ", 40))
	upstream := httptest.NewServer(plainServer(body))
	defer upstream.Close()
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 4 * sessions
	var all []*contender
	for _, mode := range []string{"off", "best-effort", "required"} {
		in := newInstall(b)
		base, cmd := in.serveUp(b, "version: 1\nhttp: {rate: 0, burst: 1000000}\nevidence: {mode: "+mode+"}\nservers:\n  s: {url: "+upstream.URL+"}\n")
		c := &contender{name: mode, cmd: cmd, in: in}
		for range sessions {
			s := openHTTP(b, base+"/mcp/s")
			s.result("tools/list", `{}`)
			c.sessions = append(c.sessions, s)
		}
		all = append(all, c)
	}
	for round := range rounds + 1 {
		for _, c := range all {
			c.slice(b, length)
			if round == 0 { // they warm up
				c.rates, c.p50, c.calls, c.cpu = nil, nil, 0, 0
			}
		}
	}
	b.Logf("%s, %d CPUs, %d sessions, results of 1 KiB", runtime.Version(), runtime.NumCPU(), sessions)
	mid := func(c *contender) (float64, time.Duration, float64) {
		slices.Sort(c.rates)
		slices.Sort(c.p50)
		return c.rates[rounds/2], c.p50[rounds/2], float64(c.cpu.Microseconds()) / float64(c.calls)
	}
	rate, p50, cpu := mid(all[0])
	for _, c := range all {
		r, p, u := mid(c)
		b.Logf("%-12s %7.0f calls/s (%+.0f %%), p50 %v (%+v), %.0f µs of CPU a call (%+.0f)", c.name, r, 100*(r/rate-1), p, p-p50, u, u-cpu)
	}
}
