// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/measured"
)

// SessionsOptions says what [MeasureSessions] does. Self and Pellucid have to be set; all
// else is what the published figures use when zero.
type SessionsOptions struct {
	// Self starts this program in a role: the arguments that lead to [PlayFloor].
	Self func(Role) []string
	// Pellucid is the path of the program whose verb up is measured.
	Pellucid string

	Sessions int           // open at one time; 0 = 4,000
	Openers  int           // that open sessions at the same time; 0 = 16
	Settle   time.Duration // the longest wait until the memory of a process stays as it is; 0 = 30 s
	Lists    int           // of tools, after the first; 0 = 200
	Servers  int           // behind /mcp for those lists; 0 = 50
	Tools    int           // of each of them; 0 = 40
	Calls    int           // whose results have 1 MiB; 0 = 100
	Progress func(string)  // may be nil
}

func (o SessionsOptions) orDefault() (SessionsOptions, error) {
	if o.Self == nil || o.Pellucid == "" {
		return o, errors.New("speed: sessions: no program to measure")
	}
	for _, n := range []struct {
		v         *int
		otherwise int
		most      int
	}{{&o.Sessions, 4000, 50_000}, {&o.Openers, 16, 256}, {&o.Lists, 200, 10_000}, {&o.Servers, 50, 200}, {&o.Tools, 40, 200}, {&o.Calls, 100, 10_000}} {
		if *n.v == 0 {
			*n.v = n.otherwise
		}
		if *n.v < 1 || *n.v > n.most {
			return o, fmt.Errorf("speed: sessions: a number is not 1 to %d", n.most)
		}
	}
	if o.Sessions < 2 {
		return o, errors.New("speed: sessions: want at least 2: one, and one more")
	}
	if o.Settle <= 0 {
		o.Settle = 30 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}

// SessionsReport is what [MeasureSessions] found.
type SessionsReport struct {
	CPUs    int           `json:"cpus"`
	Asked   int           `json:"sessions_asked"` // more than were opened where the system allows too few files
	Idle    []IdleFigure  `json:"idle"`
	List    ListFigure    `json:"list"`
	Large   LargeFigure   `json:"large"`
	Targets []Target      `json:"targets"`
	Took    time.Duration `json:"took_ns"`
}

// IdleFigure is what sessions cost in which nothing happens.
type IdleFigure struct {
	Way      string          `json:"way"`
	Sessions int             `json:"sessions"`
	Load     [2]float64      `json:"load"`       // of the machine over a minute, before and after
	Rate     float64         `json:"opened_s"`   // sessions opened a second
	P50      float64         `json:"p50_ms"`     // of opening one, in milliseconds
	P99      float64         `json:"p99_ms"`     //
	First    measured.Memory `json:"first"`      // with one session
	All      measured.Memory `json:"all"`        // with all of them
	Further  float64         `json:"further_kb"` // KB (1,000 bytes) of a further session, anonymous
	Files    int             `json:"files"`      // descriptors open with all of them
	Upstream int             `json:"upstream_streams"`

	// Goroutines a session has, from the stacks that the process prints at its end; and
	// the functions in which they wait.
	Goroutines float64            `json:"goroutines"`
	Waiting    map[string]float64 `json:"waiting"`
}

// loadAverage is that of the last minute; 0 where it cannot be read.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// ListFigure is what listing the tools of many servers at /mcp takes, in milliseconds.
type ListFigure struct {
	Servers int        `json:"servers"`
	Tools   int        `json:"tools"` // of all servers together
	Lists   int        `json:"lists"`
	Load    [2]float64 `json:"load"`
	First   float64    `json:"first_ms"`
	P50     float64    `json:"p50_ms"`
	P99     float64    `json:"p99_ms"`
	Sum50   float64    `json:"sum_p50_ms"` // of asking each server directly, one after the other
	Sum99   float64    `json:"sum_p99_ms"`
}

// LargeFigure is the memory of the program while results of 1 MiB pass.
type LargeFigure struct {
	Calls  int             `json:"calls"`
	AtOnce int             `json:"at_once"`
	Load   [2]float64      `json:"load"`
	Before measured.Memory `json:"before"`
	Peak   int64           `json:"peak"`  // bytes
	Reset  bool            `json:"reset"` // Peak began with the calls; otherwise with the start of the process
}

// The ways of sessions.
const (
	floor     = "event stream of net/http"
	upAlone   = "up, no stream of the server"
	upStream  = "up, stream of the server"
	upAllOn   = "up, all on, stream of the server"
	proxyFull = "ReverseProxy, stream of the server"
)

// configurations of up. Nothing but the deterministic checks is on in plain.
const (
	plain      = "evidence: {mode: off}\nadmission: {pins: off}\n"
	everything = "evidence: {mode: best-effort}\nadmission: {pins: enforce}\npolicy: {preset: standard}\ndefaults: {classify: [local]}\ntelemetry: {metrics: true, log: error}\n"
)

// MeasureSessions measures what open sessions cost [Linux only]: the memory, files and
// goroutines of a process that holds them, beside those of a plain server and a plain
// proxy; then a list of many tools, and the peak of memory. The servers behind it are in
// this process. It ends early, with an error, when ctx does or a request goes wrong.
func MeasureSessions(ctx context.Context, o SessionsOptions) (*SessionsReport, error) {
	o, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r := &SessionsReport{CPUs: runtime.NumCPU(), Asked: o.Sessions}
	// Both this process and the proxy have two connections for a session.
	files, err := raiseFiles(2*o.Sessions + 500)
	if err != nil {
		return nil, err
	}
	if most := (files - 500) / 2; most < o.Sessions {
		if o.Sessions = most; most < 2 {
			return nil, fmt.Errorf("speed: sessions: the system allows %d open files, want 504 and more", files)
		}
	}
	for _, w := range []struct{ name, config string }{{floor, ""}, {proxyFull, ""}, {upAlone, plain}, {upStream, plain}, {upAllOn, everything}} {
		o.Progress(w.name)
		f, err := o.idle(ctx, w.name, w.config)
		if err != nil {
			return nil, fmt.Errorf("%w (%s)", err, w.name)
		}
		r.Idle = append(r.Idle, f)
	}
	o.Progress("lists of tools")
	if r.List, err = o.list(ctx); err != nil {
		return nil, fmt.Errorf("%w (lists of tools)", err)
	}
	o.Progress("results of 1 MiB")
	if r.Large, err = o.large(ctx); err != nil {
		return nil, fmt.Errorf("%w (results of 1 MiB)", err)
	}
	r.Took = time.Since(began)
	r.judge()
	return r, nil
}

// idle measures one way.
func (o SessionsOptions) idle(ctx context.Context, way, config string) (f IdleFigure, err error) {
	f = IdleFigure{Way: way, Sessions: o.Sessions}
	up, err := newIdleServer(way != upAlone)
	if err != nil {
		return f, err
	}
	defer up.close()
	p, path, err := o.startWay(ctx, way, config, []*idleServer{up})
	if err != nil {
		return f, err
	}
	defer p.Kill()
	f.Load[0] = loadAverage()
	var held heldSessions
	defer held.close()
	if _, err = held.open(ctx, p.Addr, path, 1, 1); err != nil {
		return f, err
	}
	if f.First, err = p.Settled(ctx, o.Settle); err != nil {
		return f, err
	}
	took, err := held.open(ctx, p.Addr, path, o.Sessions-1, o.Openers)
	if err != nil {
		return f, err
	}
	f.Rate = float64(len(took.times)) / took.elapsed.Seconds()
	sortTimes(took.times)
	f.P50, f.P99 = milliseconds(percentile(took.times, 0.5)), milliseconds(percentile(took.times, 0.99))
	if f.All, err = p.Settled(ctx, o.Settle); err != nil {
		return f, err
	}
	f.Further = float64(f.All.Anon-f.First.Anon) / 1e3 / float64(o.Sessions-1)
	f.Load[1] = loadAverage()
	if f.Files, err = p.Files(); err != nil {
		return f, err
	}
	f.Upstream = int(up.listening.Load())
	if want := map[bool]int{true: o.Sessions}[way != upAlone && way != floor]; f.Upstream != want {
		return f, fmt.Errorf("speed: sessions: %d streams of the server are open, want %d", f.Upstream, want)
	}
	stacks, err := p.Quit()
	if err != nil {
		return f, err
	}
	f.Goroutines, f.Waiting = perSession(stacks, o.Sessions)
	return f, nil
}

// perSession counts the goroutines that every session has, and leaves out those that the
// process has once.
func perSession(stacks map[string]int, sessions int) (all float64, waiting map[string]float64) {
	waiting = map[string]float64{}
	for name, n := range stacks {
		if each := float64(n) / float64(sessions); each >= 0.5 {
			waiting[name] = each
			all += each
		}
	}
	return all, waiting
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// startWay starts the process of a way in front of servers, and returns the path at which
// a session of it is opened.
func (o SessionsOptions) startWay(ctx context.Context, way, config string, servers []*idleServer) (p *measured.Process, path string, err error) {
	switch way {
	case floor:
		p, err = measured.Start(ctx, o.Self(Role{Name: floor}), nil, "", announce)
		return p, "/", err
	case proxyFull:
		p, err = measured.Start(ctx, o.Self(Role{Name: reverse, Upstream: servers[0].url}), nil, "", announce)
		return p, "/", err
	}
	dir, err := os.MkdirTemp("", "pellucid-lab-")
	if err != nil {
		return nil, "", fmt.Errorf("speed: %w", err)
	}
	text := "version: 1\nlisten: 127.0.0.1:0\n" +
		fmt.Sprintf("http: {rate: 0, sessions: %d, concurrency: 1000000}\n", o.Sessions+mostSessions) + config + "servers:\n"
	for i, s := range servers {
		text += fmt.Sprintf("  s%d: {url: %q}\n", i, s.url)
	}
	path = "/mcp/s0"
	if len(servers) > 1 {
		path = "/mcp"
	}
	p, err = measured.Up(ctx, o.Pellucid, dir, text)
	return p, path, err
}
