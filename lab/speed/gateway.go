// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// GatewayOptions says how long to measure. The zero value is what the published
// figures use.
type GatewayOptions struct {
	// Self starts this program in a role: the arguments that lead to [Play].
	Self func(Role) []string

	Rounds   int           // each way is measured once a round; 0 = 5
	Slice    time.Duration // how long in each round; 0 = 100 ms
	Pause    time.Duration // of a session behind each call; what a way does behind its answers falls into it
	Sessions []int         // nil = 1, 8, 32
	Bytes    []int         // of results; nil = 128, 1 KiB, 10 KiB, 64 KiB, 1 MiB
	Events   int           // calls of 64 KiB over SSE; 0 = 20,000, less than 0 = none
	Progress func(string)  // may be nil

	// Layers are measured beside the ways, over HTTP only; neither pipes nor events are.
	Layers []Layer
}

// A Layer is a way that the caller plays, by [Host], in a process of its own.
type Layer struct {
	name string // of the way and of the Role
	path string // where the server is
}

func (o GatewayOptions) orDefault() (GatewayOptions, error) {
	if o.Self == nil {
		return o, errors.New("speed: no way to start a role")
	}
	if o.Rounds <= 0 {
		o.Rounds = 5
	}
	if o.Slice <= 0 {
		o.Slice = 100 * time.Millisecond
	}
	if o.Sessions == nil {
		o.Sessions = []int{1, 8, 32}
	}
	if o.Bytes == nil {
		o.Bytes = []int{128, 1 << 10, 10 << 10, 64 << 10, 1 << 20}
	}
	if o.Events == 0 {
		o.Events = 20_000
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, n := range o.Sessions {
		if n < 1 || n > mostSessions {
			return o, fmt.Errorf("speed: sessions: want 1 to %d", mostSessions)
		}
	}
	for _, n := range o.Bytes {
		if n < 1 || n > maxResult {
			return o, fmt.Errorf("speed: bytes: want 1 to %d", maxResult)
		}
	}
	return o, nil
}

// A Figure is what one way cost in one case.
type Figure struct {
	Transport string `json:"transport"` // "http" or "stdio"
	Script    string `json:"script"`
	Bytes     int    `json:"bytes"` // of the result's text
	Sessions  int    `json:"sessions"`
	Way       string `json:"way"`

	Calls    int     `json:"calls"`
	P50      float64 `json:"p50_us"`       // of one call, in microseconds
	P99      float64 `json:"p99_us"`       //
	AddedP50 float64 `json:"added_p50_us"` // beside the direct way
	AddedP99 float64 `json:"added_p99_us"` //
	Rate     float64 `json:"calls_per_s"`
	CPU      float64 `json:"cpu_us"` // of the proxy's process for a call; 0 = unknown or none
	RSS      int64   `json:"rss"`    // bytes of the proxy's process, the most that was seen
}

// GatewayReport is what [MeasureGateway] found.
type GatewayReport struct {
	Figures []Figure `json:"figures"`
	Events  int      `json:"sse_calls"`
	Failed  int      `json:"sse_failed"`
	Targets []Target `json:"targets"`
}

// A Target is a figure that was promised.
type Target struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

// MeasureGateway compares the ways between a client and a server. All ways take
// turns in each round, in front of the same server, so that what else the
// machine does falls on all alike. It ends early, with an error, when ctx does
// or a call goes wrong.
func MeasureGateway(ctx context.Context, o GatewayOptions) (*GatewayReport, error) {
	o, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	report := new(GatewayReport)
	if err := report.overHTTP(ctx, o); err != nil {
		return nil, err
	}
	if len(o.Layers) > 0 {
		return report, nil // what was promised is not of layers
	}
	if err := report.overPipes(ctx, o); err != nil {
		return nil, err
	}
	report.judge()
	return report, nil
}

// overHTTP measures streamable HTTP on both sides.
func (r *GatewayReport) overHTTP(ctx context.Context, o GatewayOptions) error {
	upstream, err := start(o.Self(Role{Name: "upstream"}))
	if err != nil {
		return err
	}
	defer upstream.stop()
	ways := []*way{{name: Direct, url: upstream.base + "/"}}
	for _, l := range append(httpWays(), o.Layers...) {
		p, err := start(o.Self(Role{Name: l.name, Upstream: upstream.base + "/"}))
		if err != nil {
			return err
		}
		defer p.stop()
		ways = append(ways, &way{name: l.name, url: p.base + l.path, p: p})
	}
	client := &http.Client{Transport: sharedPool(), Timeout: callWait}
	defer client.CloseIdleConnections()
	// From small to large: what a process has once needed it gives back late.
	for _, size := range o.Bytes {
		for _, n := range o.Sessions {
			for _, w := range ways {
				if err := w.openHTTP(client, n); err != nil {
					return err
				}
			}
			for _, script := range scripts {
				o.Progress(fmt.Sprintf("http, %s, %d sessions, %s", sizeName(size), n, script))
				if err := r.measure(ctx, o, ways, Figure{Transport: "http", Script: script, Bytes: size, Sessions: n}); err != nil {
					return err
				}
			}
			for _, w := range ways {
				w.close()
			}
		}
	}
	if len(o.Layers) > 0 {
		return nil
	}
	return r.events(ctx, o, upstream, client)
}

// httpWays are those of a process each.
func httpWays() (list []Layer) {
	for _, name := range Ways[1:] {
		list = append(list, Layer{name, "/"})
	}
	return list
}

// overPipes measures stdio on both sides; each way has a server of its own.
func (r *GatewayReport) overPipes(ctx context.Context, o GatewayOptions) error {
	server := o.Self(Role{Name: "upstream"})
	var ways []*way
	for _, name := range Ways {
		args := server
		if name != Direct {
			args = o.Self(Role{Name: name, Command: server})
		}
		p, err := start(args)
		if err != nil {
			return err
		}
		defer p.stop()
		w := &way{name: name}
		if name != Direct {
			w.p = p
		}
		s, err := openLines(p)
		if err != nil {
			return err
		}
		w.sessions = []session{s}
		ways = append(ways, w)
	}
	sizes := append([]int{}, o.Bytes...)
	if len(sizes) > 1 {
		sizes = append(sizes, 100_000)
	}
	slices.Sort(sizes)
	for _, size := range sizes {
		for _, script := range scripts {
			o.Progress(fmt.Sprintf("stdio, %s, %s", sizeName(size), script))
			if err := r.measure(ctx, o, ways, Figure{Transport: "stdio", Script: script, Bytes: size, Sessions: 1}); err != nil {
				return err
			}
		}
	}
	return nil
}

// A way is one that is measured, with its open sessions.
type way struct {
	name     string
	url      string
	p        *process // nil: there is nothing in between
	sessions []session

	times   []time.Duration
	elapsed time.Duration
	cpu     time.Duration
	rss     int64
}

func (w *way) openHTTP(client *http.Client, n int) error {
	for range n {
		s, err := openHTTP(client, w.url)
		if err != nil {
			return fmt.Errorf("%w (%s)", err, w.name)
		}
		w.sessions = append(w.sessions, s)
	}
	return nil
}

func (w *way) close() {
	for _, s := range w.sessions {
		if s, is := s.(*httpSession); is {
			s.Close()
		}
	}
	w.sessions = nil
}

// measure fills in a case of all ways.
func (r *GatewayReport) measure(ctx context.Context, o GatewayOptions, ways []*way, at Figure) error {
	for _, w := range ways {
		w.times, w.elapsed, w.cpu, w.rss = nil, 0, 0, 0
		if _, err := drive(w.sessions, at.Script, at.Bytes, o.Slice, 0, 3); err != nil { // warm
			return fmt.Errorf("%w (%s)", err, w.name)
		}
	}
	for round := range o.Rounds {
		for i := range ways {
			w := ways[(i+round)%len(ways)]
			if err := w.lap(at, o.Slice, o.Pause); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	var direct Figure
	for _, w := range ways {
		f := w.figure(at)
		if w.name == Direct {
			direct = f
		}
		f.AddedP50, f.AddedP99 = f.P50-direct.P50, f.P99-direct.P99
		r.Figures = append(r.Figures, f)
	}
	return nil
}

func (w *way) lap(at Figure, slice, pause time.Duration) error {
	var before, after usage
	var err error
	if w.p != nil {
		if before, err = w.p.usage(); err != nil {
			return err
		}
	}
	l, err := drive(w.sessions, at.Script, at.Bytes, slice, pause, 0)
	if err != nil {
		return fmt.Errorf("%w (%s)", err, w.name)
	}
	if w.p != nil {
		if after, err = w.p.usage(); err != nil {
			return err
		}
	}
	w.times = append(w.times, l.times...)
	w.elapsed += l.elapsed
	w.cpu += after.CPU - before.CPU
	w.rss = max(w.rss, after.RSS)
	return nil
}

func (w *way) figure(at Figure) Figure {
	sortTimes(w.times)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	at.Way, at.Calls, at.RSS = w.name, len(w.times), w.rss
	at.P50, at.P99 = us(percentile(w.times, 0.5)), us(percentile(w.times, 0.99))
	at.Rate = float64(len(w.times)) / w.elapsed.Seconds()
	at.CPU = us(w.cpu) / float64(max(len(w.times), 1))
	return at
}

// events calls over SSE, through all checks, and counts what goes wrong.
func (r *GatewayReport) events(ctx context.Context, o GatewayOptions, upstream *process, client *http.Client) error {
	if o.Events < 0 {
		return nil
	}
	const sessions, size, step = 8, 64 << 10, 50
	p, err := start(o.Self(Role{Name: checks, Upstream: upstream.base + streamPath}))
	if err != nil {
		return err
	}
	defer p.stop()
	w := &way{name: checks, url: p.base + "/"}
	if err := w.openHTTP(client, sessions); err != nil {
		return err
	}
	for r.Events < o.Events && ctx.Err() == nil {
		o.Progress(fmt.Sprintf("SSE, %d of %d calls", r.Events, o.Events))
		most := min(step, (o.Events-r.Events+sessions-1)/sessions)
		l, err := drive(w.sessions, scripts[0], size, time.Minute, 0, most)
		r.Events += len(l.times)
		if err != nil {
			r.Failed++
			return fmt.Errorf("%w (SSE, after %d calls)", err, r.Events)
		}
	}
	w.close()
	return ctx.Err()
}
