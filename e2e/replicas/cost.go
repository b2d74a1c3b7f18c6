// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// cost is the CPU time of a call of all replicas together, with n of them.
func (r *rig) cost(ctx context.Context, n int) (time.Duration, error) {
	if err := r.scale(ctx, n); err != nil {
		return 0, err
	}
	r.say("CPU time of a call, %d replicas, %s", n, r.o.Costs)
	l, err := r.load(ctx, r.o.Sessions)
	if err != nil {
		return 0, err
	}
	warm := l.warm(ctx, r.o.Sessions)
	from, err := r.used(n)
	since := time.Now()
	if err := errors.Join(warm, err, sleep(ctx, r.o.Costs)); err != nil {
		return 0, err
	}
	until := time.Now()
	to, err := r.used(n)
	if err := errors.Join(err, l.stop()); err != nil {
		return 0, err
	}
	events, err := l.events()
	if err != nil {
		return 0, err
	}
	calls := 0
	for _, e := range events {
		if e.Call != "" && e.Error == "" && e.End > seconds(since) && e.End < seconds(until) {
			calls++
		}
	}
	if calls == 0 {
		return 0, fmt.Errorf("replicas: no call succeeded with %d replicas", n)
	}
	return (to - from) / time.Duration(calls), nil
}

func (r *rig) used(n int) (sum time.Duration, err error) {
	for _, g := range r.replicas[:n] {
		d, e := g.cpu()
		sum, err = sum+d, errors.Join(err, e)
	}
	return sum, err
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// forwarding measures requests of one session, in turn at the replica that has it and at another one. They
// are pings: a call waits for the commit of its record, on two servers of Postgres, which hides the rest.
func (r *rig) forwarding(ctx context.Context, calls int) (local, forwarded time.Duration, err error) {
	r.say("a request where its session is, and at another replica, %d times", calls)
	s := &plainSession{}
	at := func(g *replica) string { return "http://" + g.addr + "/mcp/http" }
	owner, other := r.replicas[0], r.replicas[1]
	if err := s.open(ctx, at(owner)); err != nil {
		return 0, 0, err
	}
	var took [2][]time.Duration
	for range calls {
		for which, g := range []*replica{owner, other} {
			began := time.Now()
			if err := s.ping(ctx, at(g)); err != nil {
				return 0, 0, fmt.Errorf("at replica %d: %w", g.number, err)
			}
			took[which] = append(took[which], time.Since(began))
		}
	}
	return median(took[0]), median(took[1]), nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// A plainSession is a session without an SDK, which can be taken to any replica.
type plainSession struct {
	id string
	n  int
}

func (s *plainSession) open(ctx context.Context, url string) error {
	_, err := s.post(ctx, url, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"plain","version":"1"}}}`)
	if err == nil {
		_, err = s.post(ctx, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return err
}

func (s *plainSession) ping(ctx context.Context, url string) error {
	s.n++
	out, err := s.post(ctx, url, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, s.n))
	if err == nil && !bytes.Contains(out, []byte(`"result"`)) {
		err = fmt.Errorf("replicas: a ping without a result: %+.64q", out)
	}
	return err
}

func (s *plainSession) post(ctx context.Context, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2025-11-25")
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		s.id = id
	}
	out, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("replicas: status %d: %+.200q", resp.StatusCode, out)
	}
	return out, err
}
