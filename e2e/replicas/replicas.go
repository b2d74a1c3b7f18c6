// SPDX-License-Identifier: Apache-2.0

// Package replicas runs several replicas of the gateway behind a load balancer, breaks them while clients call, and counts what was lost.
//
// Replicas of `pellucid up` share one Postgres, a primary with a hot standby. HAProxy sends requests of a
// session to the replica that the id names, and all others in turn. Sessions of the official Python and TypeScript SDKs call two
// servers without pause: one over HTTP that keeps sessions, and one that is a command. Meanwhile
// replicas are killed, asked to end one after the other, and the primary fails over.
package replicas

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/pgtest"
)

// ErrMissing: a program that the measurement needs is not installed.
var ErrMissing = errors.New("replicas: a program is missing")

// Options say what is measured and with which programs.
type Options struct {
	Pellucid string // the program
	Proxy    string // the configuration of HAProxy that the repository ships
	E2E      string // folder that holds the clients and servers, in python and node
	Python   string // interpreter that has the Python SDK
	Node     string // interpreter
	Modules  string // folder node_modules that has the TypeScript SDK
	Config   string // more lines of pellucid.yaml

	Replicas int
	Sessions int           // of all clients together
	Kills    time.Duration // how long replicas are killed, one each Every
	Every    time.Duration
	Terms    int           // replicas that are asked to end, in turn
	Failover bool          // of Postgres, at the end
	Settle   time.Duration // without faults, at the beginning and the end
	Costs    time.Duration // of each measurement of CPU time, with one replica and with all; 0: none
	Calls    int           // of each measurement of a forwarded call; 0: none
	Seed     uint64        // which replicas are killed
	Keep     string        // folder for the logs of all processes; "": a temporary one, removed
	Progress func(string)
}

// A Fault is one thing that was broken. From At to Until calls may fail.
type Fault struct {
	Kind      string // kill, term or failover
	Replica   int    // from 1; 0: Postgres
	At, Until time.Time
}

// Run does all of it. Its error says why there is no report; what was lost stands in the report.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	r, err := prepare(ctx, o)
	if r != nil {
		defer r.stop()
	}
	if err != nil {
		return nil, err
	}
	report := &Report{Replicas: o.Replicas, Sessions: o.Sessions}
	if o.Costs > 0 {
		if report.CostOne, err = r.cost(ctx, 1); err != nil {
			return nil, err
		}
		if report.CostAll, err = r.cost(ctx, o.Replicas); err != nil {
			return nil, err
		}
	}
	if err := r.scale(ctx, o.Replicas); err != nil {
		return nil, err
	}
	if o.Calls > 0 && o.Replicas > 1 {
		if report.Local, report.Forwarded, err = r.forwarding(ctx, o.Calls); err != nil {
			report.Failures = append(report.Failures, "forwarding: "+err.Error())
		}
	}
	for _, server := range []string{"http", "stdio"} { // clients name their calls alike in each measurement
		if err := os.Truncate(r.seen(server), 0); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	load, err := r.load(ctx, o.Sessions)
	if err != nil {
		return nil, err
	}
	if err = load.warm(ctx, o.Sessions); err == nil {
		report.Faults, err = r.faults(ctx)
	}
	if err = errors.Join(err, load.stop()); err != nil {
		return nil, err
	}
	return report, r.judge(ctx, report, load)
}

// A rig is all that runs.
type rig struct {
	o         Options
	dir       string
	database  string // its URL
	pair      *pgtest.Pair
	processes []*process
	upstream  string
	replicas  []*replica
	proxy     *proxy
}

func prepare(ctx context.Context, o Options) (r *rig, err error) {
	for _, file := range []string{o.Pellucid, o.Proxy, o.Python, filepath.Join(o.Modules, "@modelcontextprotocol", "sdk")} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMissing, err)
		}
	}
	r = &rig{o: o, dir: o.Keep}
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "pellucid-replicas-"); err != nil {
			return nil, err
		}
	} else if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	if r.proxy, err = newProxy(r.dir, o.Proxy, o.Replicas); err != nil {
		return r, err
	}
	r.say("starting Postgres, a primary and a standby")
	if r.pair, err = pgtest.StartPair(); errors.Is(err, pgtest.ErrMissing) {
		return r, fmt.Errorf("%w: %w", ErrMissing, err)
	} else if err != nil {
		return r, err
	}
	if r.database, err = r.pair.Database("pellucid"); err != nil {
		return r, err
	}
	if err := r.startUpstream(ctx); err != nil {
		return r, err
	}
	if err := r.configure(); err != nil {
		return r, err
	}
	return r, r.proxy.start()
}

func (r *rig) say(what string, args ...any) {
	if r.o.Progress != nil {
		r.o.Progress(fmt.Sprintf(what, args...))
	}
}

// stop ends everything that runs.
func (r *rig) stop() {
	for _, g := range r.replicas {
		g.kill()
	}
	if r.proxy != nil {
		r.proxy.stop()
	}
	for _, p := range r.processes {
		p.kill()
	}
	if r.pair != nil {
		r.pair.Stop()
	}
	if r.o.Keep == "" {
		os.RemoveAll(r.dir)
	}
}

// scale has n replicas run, and waits until each is ready.
func (r *rig) scale(ctx context.Context, n int) error {
	for i, g := range r.replicas {
		switch {
		case i >= n:
			g.kill()
		case !g.running():
			if err := g.start(); err != nil {
				return err
			}
		}
	}
	for _, g := range r.replicas[:n] {
		if err := g.ready(ctx); err != nil {
			return err
		}
	}
	return r.proxy.wait(ctx)
}

// faults breaks things by the schedule, while clients call.
func (r *rig) faults(ctx context.Context) (all []Fault, err error) {
	random := rand.New(rand.NewPCG(r.o.Seed, 1))
	if err := sleep(ctx, r.o.Settle); err != nil {
		return nil, err
	}
	for end := time.Now().Add(r.o.Kills); time.Now().Before(end); {
		g := r.replicas[random.IntN(r.o.Replicas)]
		r.say("kill -9 of replica %d", g.number)
		f := Fault{Kind: "kill", Replica: g.number, At: time.Now()}
		g.kill()
		f.Until = time.Now()
		all = append(all, f)
		if err := errors.Join(g.start(), sleep(ctx, r.o.Every)); err != nil {
			return all, err
		}
	}
	for i := range r.o.Terms {
		g := r.replicas[i%r.o.Replicas]
		r.say("SIGTERM of replica %d", g.number)
		f := Fault{Kind: "term", Replica: g.number, At: time.Now()}
		g.signal(syscall.SIGTERM)
		if err := g.ended(ctx); err != nil {
			return all, err
		}
		f.Until = time.Now()
		all = append(all, f)
		if err := errors.Join(g.start(), g.ready(ctx), sleep(ctx, min(r.o.Every, 5*time.Second))); err != nil {
			return all, err
		}
	}
	if r.o.Failover {
		r.say("failover of Postgres")
		f := Fault{Kind: "failover", At: time.Now()}
		if err := r.pair.Failover(); err != nil {
			return all, err
		}
		for _, g := range r.replicas {
			if err := g.ready(ctx); err != nil {
				return all, err
			}
		}
		// The proxy asks once a second, and believes the second answer that a replica is away.
		if err := sleep(ctx, 2*time.Second); err != nil {
			return all, err
		}
		f.Until = time.Now()
		all = append(all, f)
		if err := sleep(ctx, r.o.Every); err != nil {
			return all, err
		}
	}
	return all, sleep(ctx, r.o.Settle)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
