// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// list measures tools/list at /mcp beside asking every server directly.
func (o SessionsOptions) list(ctx context.Context) (f ListFigure, err error) {
	f = ListFigure{Servers: o.Servers, Lists: o.Lists}
	var servers []*idleServer
	for range o.Servers {
		s, err := newToolServer(true, o.Tools)
		if err != nil {
			return f, err
		}
		defer s.close()
		servers = append(servers, s)
	}
	p, path, err := o.startWay(ctx, upAllOn, everything, servers)
	if err != nil {
		return f, err
	}
	defer p.Kill()
	client := &http.Client{Transport: sharedPool(), Timeout: callWait}
	defer client.CloseIdleConnections()
	f.Load[0] = loadAverage()
	s, err := openHTTP(client, "http://"+p.Addr+path)
	if err != nil {
		return f, err
	}
	var times []time.Duration
	for i := range o.Lists + 1 {
		took, tools, err := s.list()
		if err != nil {
			return f, err
		}
		if want := o.Servers * o.Tools; tools != want {
			return f, fmt.Errorf("speed: list %d of tools has %d, want %d", i+1, tools, want)
		}
		if f.Tools = tools; i == 0 {
			f.First = milliseconds(took)
		} else {
			times = append(times, took)
		}
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
	}
	sortTimes(times)
	f.P50, f.P99 = milliseconds(percentile(times, 0.5)), milliseconds(percentile(times, 0.99))
	if times, err = o.sums(client, servers); err != nil {
		return f, err
	}
	f.Sum50, f.Sum99 = milliseconds(percentile(times, 0.5)), milliseconds(percentile(times, 0.99))
	f.Load[1] = loadAverage()
	return f, nil
}

// sums asks every server directly, one after the other, and returns the sorted times that
// all of them took together.
func (o SessionsOptions) sums(client *http.Client, servers []*idleServer) (times []time.Duration, err error) {
	var direct []*httpSession
	for _, s := range servers {
		d, err := openHTTP(client, s.url)
		if err != nil {
			return nil, err
		}
		direct = append(direct, d)
	}
	for range o.Lists {
		var sum time.Duration
		for _, d := range direct {
			took, _, err := d.list()
			if err != nil {
				return nil, err
			}
			sum += took
		}
		times = append(times, sum)
	}
	return sortTimes(times), nil
}

var nextCursor = regexp.MustCompile(`"nextCursor":("[^"]+")`)

// list asks for all pages of the list of tools, and returns how many tools they hold. Only
// the requests count as time, not the look at their answers.
func (s *httpSession) list() (took time.Duration, tools int, err error) {
	params := "{}"
	for range 1000 {
		s.n++
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":%s}`, s.n, params)
		at := time.Now()
		if _, err := s.Post(body); err != nil {
			return 0, 0, err
		}
		took += time.Since(at)
		tools += bytes.Count(s.Answer.Bytes(), []byte(`"inputSchema"`))
		next := nextCursor.FindSubmatch(s.Answer.Bytes())
		if next == nil {
			return took, tools, nil
		}
		params = `{"cursor":` + string(next[1]) + `}`
	}
	return 0, 0, errors.New("speed: the list of tools does not end")
}

// atOnce is how many of the calls with large results are under way at a time.
const atOnce = 8

// large measures the peak of memory while results of 1 MiB pass.
func (o SessionsOptions) large(ctx context.Context) (f LargeFigure, err error) {
	f = LargeFigure{Calls: o.Calls, AtOnce: min(atOnce, o.Calls)}
	up, err := newIdleServer(true)
	if err != nil {
		return f, err
	}
	defer up.close()
	p, path, err := o.startWay(ctx, upAllOn, everything, []*idleServer{up})
	if err != nil {
		return f, err
	}
	defer p.Kill()
	client := &http.Client{Transport: sharedPool(), Timeout: callWait}
	defer client.CloseIdleConnections()
	f.Load[0] = loadAverage()
	var sessions []*httpSession
	for range f.AtOnce {
		s, err := openHTTP(client, "http://"+p.Addr+path)
		if err != nil {
			return f, err
		}
		if _, _, err := s.list(); err != nil { // a call of a tool that was never listed is refused
			return f, err
		}
		sessions = append(sessions, s)
	}
	if f.Before, err = p.Settled(ctx, o.Settle); err != nil {
		return f, err
	}
	f.Reset = p.ResetPeak() == nil
	todo := make(chan struct{}, o.Calls)
	for range o.Calls {
		todo <- struct{}{}
	}
	close(todo)
	var work sync.WaitGroup
	errs := make([]error, len(sessions))
	for i, s := range sessions {
		work.Go(func() {
			for range todo {
				if errs[i] = s.call(scripts[0], 1<<20); errs[i] != nil {
					return
				}
			}
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		return f, err
	}
	after, err := p.Resident()
	f.Peak, f.Load[1] = after.Peak, loadAverage()
	return f, err
}
