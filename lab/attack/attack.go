// SPDX-License-Identifier: Apache-2.0

// Package attack measures how attackers affect the calls of an honest principal and the memory of the process.
//
// It starts pellucid up with a budget of memory, and servers of its own behind it. An honest principal calls a tool
// 40 times a second: first alone, then beside an attack. The attackers are another process of the lowest priority,
// since real attackers work on other machines.
package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/measured"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Options configure [Run]. Self and Pellucid have to be set.
type Options struct {
	Self     []string      // starts this program, before the arguments that lead to [Play]
	Pellucid string        // the program to attack
	Memory   int64         // its limits.memory, in bytes; 0 = 256 MiB
	Quiet    time.Duration // of the calls before each attack; 0 = 5 s
	For      time.Duration // of an attack; 0 = 10 s
	Only     []string      // names of attacks; none: all
	Progress func(string)  // may be nil
}

// An attack should not exceed these.
const (
	mostRatio   = 2.0  // of the median time of an honest call
	mostMemory  = 1.5  // of the budget
	leastServed = 0.99 // of honest calls
)

// A Report is the result of [Run].
type Report struct {
	CPUs    int      `json:"cpus"`
	Budget  int64    `json:"budget"` // bytes
	Attacks []Figure `json:"attacks"`
}

// A Figure is the result of one attack.
type Figure struct {
	Name   string  `json:"name"`
	Quiet  Calls   `json:"quiet"`
	Under  Calls   `json:"under"`
	Ratio  float64 `json:"ratio"`    // of the medians
	Peak   int64   `json:"peak_rss"` // bytes
	Memory float64 `json:"memory"`   // Peak by the budget
	Sent   string  `json:"sent"`     // number of answers to the attackers, by status
	Missed string  `json:"missed"`   // the bounds that were exceeded
}

// Calls are the honest ones of one run.
type Calls struct {
	N      int     `json:"n"`
	Served float64 `json:"served"` // part of them with the whole result
	P50    float64 `json:"p50_ms"`
	P95    float64 `json:"p95_ms"`
	Failed string  `json:"failed,omitempty"` // why the last one failed
}

// Missed returns the number of attacks that exceeded a bound.
func (r *Report) Missed() (n int) {
	for _, f := range r.Attacks {
		if f.Missed != "" {
			n++
		}
	}
	return n
}

// Run measures the attacks, one after the other.
func Run(ctx context.Context, o Options) (*Report, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("attack: the memory of a process is read from /proc: Linux only")
	}
	o.Memory, o.Quiet, o.For = orDefault(o.Memory, 256<<20), orDefault(o.Quiet, 5*time.Second), orDefault(o.For, 10*time.Second)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, name := range o.Only {
		if kinds[name] == nil {
			return nil, fmt.Errorf("attack: no attack %s: want one of %s", finding.Quote(name), strings.Join(names(), ", "))
		}
	}
	r := &Report{CPUs: runtime.NumCPU(), Budget: o.Memory}
	for _, name := range names() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, name) {
			continue
		}
		o.Progress(name)
		f, err := o.measure(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("attack: %s: %w", name, err)
		}
		r.Attacks = append(r.Attacks, f)
	}
	return r, nil
}

func orDefault[T int64 | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// measure runs one attack on a process of its own.
func (o *Options) measure(ctx context.Context, name string) (f Figure, err error) {
	f.Name = name
	up, err := startServers()
	if err != nil {
		return f, err
	}
	defer up.Close()
	g, err := o.start(ctx, up.URL)
	if err != nil {
		return f, err
	}
	defer g.Kill()
	if f.Quiet, err = honestCalls(ctx, g.Addr, o.Quiet); err != nil {
		return f, err
	}
	if f.Quiet.Served < 1 {
		return f, fmt.Errorf("without an attack, calls fail: %s", f.Quiet.Failed)
	}
	if err := g.ResetPeak(); err != nil {
		return f, err
	}
	attackers := exec.CommandContext(ctx, "nice", append([]string{"-n", "19"}, append(slices.Clone(o.Self), "--play", name, "--addr", g.Addr, "--for", o.For.String())...)...)
	var said, failed bytes.Buffer
	attackers.Stdout, attackers.Stderr = &said, &failed
	if err := attackers.Start(); err != nil {
		return f, err
	}
	f.Under, err = honestCalls(ctx, g.Addr, o.For)
	if waited := attackers.Wait(); err == nil && waited != nil {
		err = fmt.Errorf("the attackers: %w: %s", waited, finding.Quote(failed.String()))
	}
	if err != nil {
		return f, err
	}
	f.Sent = strings.TrimSpace(said.String())
	memory, err := g.Resident()
	if err != nil {
		return f, fmt.Errorf("the process has ended: %w: %s", err, g.LastLine())
	}
	f.Peak = memory.Peak
	f.Ratio, f.Memory = f.Under.P50/f.Quiet.P50, float64(f.Peak)/float64(o.Memory)
	var missed []string
	for _, m := range []struct {
		is   bool
		what string
	}{{f.Ratio > mostRatio, "time"}, {f.Memory > mostMemory, "memory"}, {f.Under.Served < leastServed, "calls"}} {
		if m.is {
			missed = append(missed, m.what)
		}
	}
	f.Missed = strings.Join(missed, ", ")
	return f, nil
}

// attackers is how many principals attack.
const attackers = 4

// token is the bearer token of a principal.
func token(principal string) string {
	return principal + "-0f3a9c1d7e5b2846" + strings.Repeat("q7Zk2v", 4)
}

// start writes a configuration and starts the gateway.
func (o *Options) start(ctx context.Context, servers string) (*measured.Process, error) {
	dir, err := os.MkdirTemp("", "pellucid-lab-")
	if err != nil {
		return nil, err
	}
	principals := []string{"honest"}
	for i := range attackers {
		principals = append(principals, "attacker-"+strconv.Itoa(i))
	}
	files := map[string]string{}
	var list []string
	for _, p := range principals {
		files[p] = token(p)
		list = append(list, fmt.Sprintf(`{"principal":%q,"scopes":["call","plug","staff"],"token":"file:%s"}`, p, filepath.Join(dir, p)))
	}
	files["tokens.json"] = `{"tokens":[` + strings.Join(list, ",") + `]}`
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			os.RemoveAll(dir)
			return nil, err
		}
	}
	config := fmt.Sprintf("version: 1\nlisten: 127.0.0.1:0\nauth: {tokens: 'file:%s'}\nlimits: {memory: %d}\nconsole: {grants: [{role: viewer, scope: staff}]}\n"+
		"defaults: {hold: [hidden-tag]}\nservers:\n  s: {url: %q}\n", filepath.Join(dir, "tokens.json"), o.Memory, servers)
	return measured.Up(ctx, o.Pellucid, dir, config, "GOGC=", "GOMEMLIMIT=", "GOMAXPROCS=") // the defaults
}

// honestCalls has the honest principal make calls for that time, one after the other.
func honestCalls(ctx context.Context, addr string, d time.Duration) (c Calls, err error) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	s := newSession(client, addr, token("honest"))
	if err := s.Open(); err != nil {
		return c, fmt.Errorf("an honest session: %w", err)
	}
	var times []time.Duration
	served := 0
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		began := time.Now()
		if err := s.call("read", 1024); err != nil {
			c.Failed = err.Error()
		} else {
			served++
		}
		took := time.Since(began)
		times = append(times, took)
		time.Sleep(25*time.Millisecond - min(took, 25*time.Millisecond))
	}
	slices.Sort(times)
	at := func(p int) float64 { return float64(times[min(p*len(times)/100, len(times)-1)].Microseconds()) / 1e3 }
	c.N, c.Served, c.P50, c.P95 = len(times), float64(served)/float64(len(times)), at(50), at(95)
	return c, ctx.Err()
}
