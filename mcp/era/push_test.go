// SPDX-License-Identifier: Apache-2.0

package era

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// A played is the Conn of a server that calls its Receiver from the goroutines of a test.
type played struct {
	wire.Receiver
	write func(ctx context.Context, m *wire.Message) error // nil: it takes everything
	close func()                                           // nil: Ended is called at once
	ended sync.Once
}

func (p *played) Start(r wire.Receiver) { p.Receiver = r }

func (p *played) Write(ctx context.Context, m *wire.Message) error {
	if p.write == nil {
		return nil
	}
	return p.write(ctx, m)
}

func (p *played) Close() error {
	if p.close != nil {
		p.close()
	}
	p.end(wire.ErrClosed)
	return nil
}

func (p *played) end(err error) {
	p.ended.Do(func() {
		if p.Receiver != nil {
			p.Ended(err)
		}
	})
}

func (p *played) say(line string) {
	m, err := wire.Decode([]byte(line), testLimits)
	if err != nil {
		panic(err)
	}
	p.Message(m)
}

// A listener is a Receiver that notes what comes, and in which state.
type listener struct {
	t       *testing.T
	message func(m *wire.Message) // nil: nothing more is done
	mu      sync.Mutex
	got     []string
	inside  int
	ended   []error
}

func (l *listener) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inside++; len(l.ended) > 0 {
		l.t.Error("something comes after the end")
	}
}

func (l *listener) leave(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
	l.got = append(l.got, what)
}

func (l *listener) Message(m *wire.Message) {
	l.enter()
	what := string(m.Append(nil))
	if l.message != nil {
		l.message(m)
	}
	l.leave(what)
}

func (l *listener) Violation(v *wire.Violation) {
	l.enter()
	l.leave(v.Error())
}

func (l *listener) Ended(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inside > 0 || len(l.ended) > 0 {
		l.t.Errorf("the end comes inside of %d calls, after %v", l.inside, l.ended)
	}
	l.ended = append(l.ended, err)
}

func (l *listener) heard() (got []string, ended int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	got = l.got
	l.got = nil
	return got, len(l.ended)
}

// between is a Conn from l to p, to which a modern client has spoken; the server is a legacy one.
func between(t *testing.T, p *played, l *listener) *Conn {
	t.Helper()
	l.t = t
	c := asModern(p, Options{})
	c.Start(l)
	p.greet(t, c)
	l.heard()
	return c
}

func (p *played) greet(t *testing.T, c wire.Conn) {
	t.Helper()
	answer := p.write
	p.write = nil
	tell(t, c, `{"jsonrpc":"2.0","id":"hello","method":"server/discover","params":{`+metaOf(`{}`)+`}}`)
	p.say(`{"jsonrpc":"2.0","id":1073741825,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}}`)
	synctest.Wait()
	p.write = answer
}

func tell(t *testing.T, c wire.Conn, line string) {
	t.Helper()
	if err := try(c, line); err != nil {
		t.Error(err)
	}
}

func try(c wire.Conn, line string) error {
	out, err := outgoing(line)
	if err != nil {
		panic(err)
	}
	return c.Write(context.Background(), out)
}

func callOf(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t",%s}}`, id, metaOf(`{}`))
}

// TestClientDoesNotRead: what a server says waits with it, what a client says still reaches the
// server, and what is answered here is bounded.
func TestClientDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var wrote, heard atomic.Int32
		p := &played{write: func(context.Context, *wire.Message) error { wrote.Add(1); return nil }}
		l := &listener{message: func(*wire.Message) { <-release }}
		close(release)
		c := between(t, p, l)
		release = make(chan struct{})
		for i := range 10 {
			go func() {
				for j := range 3 {
					p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/x","params":{"stream":%d,"n":%d}}`, i, j))
					heard.Add(1)
				}
			}()
		}
		synctest.Wait()
		for i := range 5 {
			tell(t, c, callOf(100+i))
		}
		if wrote.Load() != 5 || heard.Load() != 0 || len(c.toClient.wait) != 9 {
			t.Errorf("%d reached the server, %d of its messages did not wait, %d do here", wrote.Load(), heard.Load(), len(c.toClient.wait))
		}
		var err error
		n := 0
		for ; err == nil && n < 2*maxWaiting; n++ {
			err = try(c, `{"jsonrpc":"2.0","id":7,"method":"ping","params":{`+metaOf(`{}`)+`}}`)
		}
		if !errors.Is(err, errBusy) || n > maxWaiting {
			t.Errorf("%v after %d", err, n)
		}
		close(release)
		synctest.Wait()
		got, _ := l.heard()
		next := map[int]int{}
		for _, line := range got {
			var stream, n int
			if _, err := fmt.Sscanf(line, `{"jsonrpc":"2.0","method":"notifications/x","params":{"stream":%d,"n":%d}}`, &stream, &n); err == nil {
				if next[stream] != n {
					t.Errorf("stream %d: %d instead of %d", stream, n, next[stream])
				}
				next[stream]++
			}
		}
		if len(next) != 10 || heard.Load() != 30 {
			t.Errorf("%d streams, %d messages", len(next), heard.Load())
		}
		c.Close()
		synctest.Wait()
	})
}

// TestServerDoesNotRead: what it says still reaches the client, until too much waits for it.
func TestServerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		p := &played{write: func(context.Context, *wire.Message) error { <-stuck; return wire.ErrPeerClosed }}
		p.close = func() { close(stuck) }
		l := &listener{}
		c := between(t, p, l)
		failed := make(chan error, 2)
		for i := range 2 {
			go func() { failed <- try(c, callOf(i)) }()
		}
		synctest.Wait()
		p.say(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		if got, _ := l.heard(); len(got) != 1 {
			t.Errorf("client got %q", got)
		}
		var asked atomic.Int32
		for range 3 {
			go func() {
				for i := range 1000 {
					p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
					asked.Add(1)
				}
			}()
		}
		synctest.Wait()
		if n := asked.Load(); n < maxQueued-3 || n > maxQueued+3 {
			t.Errorf("%d of the server's requests were taken", n)
		}
		c.Close()
		synctest.Wait()
		for range 2 {
			if err := <-failed; !errors.Is(err, wire.ErrPeerClosed) && !errors.Is(err, wire.ErrClosed) {
				t.Error(err)
			}
		}
		if _, ended := l.heard(); ended != 1 || asked.Load() != 3000 {
			t.Errorf("ended %d times, %d asked", ended, asked.Load())
		}
	})
}

// TestWriteFails: the error of the server's Write is that of the Write that has caused it,
// whether it wrote itself or had to wait.
func TestWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		p := &played{write: func(_ context.Context, m *wire.Message) error {
			<-free
			return fmt.Errorf("not %v", m.Params.Get("n").Text())
		}}
		c := between(t, p, &listener{})
		got := make(chan error, 3)
		for _, n := range []string{"a", "b", "c"} {
			go func() {
				err := try(c, `{"jsonrpc":"2.0","method":"notifications/x","params":{"n":"`+n+`"}}`)
				if err == nil || err.Error() != "not "+n {
					err = fmt.Errorf("%s: %w", n, err)
				} else {
					err = nil
				}
				got <- err
			}()
			synctest.Wait()
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		out, _ := outgoing(`{"jsonrpc":"2.0","method":"notifications/x","params":{"n":"d"}}`)
		if err := c.Write(ctx, out); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(free)
		for range 3 {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		c.Close()
		synctest.Wait()
	})
}

// TestAnsweredInside: a server that cannot be reached is answered for inside of Write, which the
// Receiver has called while another message waited for it.
func TestAnsweredInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{}
		p.write = func(_ context.Context, m *wire.Message) error {
			if m.Kind != wire.Request {
				return nil
			}
			out := errBusy.local(m.ID, nil)
			out.Cause = wire.ErrUnreachable
			p.Message(out)
			return nil
		}
		l := &listener{}
		c := between(t, p, l)
		n := 0
		l.message = func(m *wire.Message) {
			if m.Kind != wire.Notification {
				return
			}
			for range 3 {
				n++
				tell(t, c, callOf(n))
			}
			time.Sleep(time.Second) // the others get in line
		}
		for range 3 {
			go p.say(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		}
		time.Sleep(time.Minute)
		got, _ := l.heard()
		if answers := strings.Count(strings.Join(got, "\n"), `"error"`); n != 9 || answers != 9 || len(got) != 12 {
			t.Errorf("%d answers to %d requests in %q", answers, n, got)
		}
		c.Close()
		synctest.Wait()
	})
}

// TestCloseInside: the Receiver closes while more waits for it; nothing but the end comes then, also
// where the Conn of the server ends inside of Close.
func TestCloseInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{}
		l := &listener{}
		c := between(t, p, l)
		l.message = func(*wire.Message) {
			time.Sleep(time.Second)
			for range 2 {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		for range 5 {
			go p.say(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		}
		time.Sleep(time.Minute)
		if got, ended := l.heard(); len(got) != 1 || ended != 1 || !errors.Is(l.ended[0], wire.ErrClosed) {
			t.Errorf("%q, ended %v", got, l.ended)
		}
		p.say(`{"jsonrpc":"2.0","method":"notifications/late"}`)
		if err := try(c, callOf(1)); !errors.Is(err, wire.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestEnds: the end of the server comes behind what it has said before.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{}
		l := &listener{}
		c := between(t, p, l)
		l.message = func(*wire.Message) { time.Sleep(time.Second) }
		for i := range 3 {
			tell(t, c, `{"jsonrpc":"2.0","id":`+fmt.Sprint(i)+`,"method":"initialize","params":{`+metaOf(`{}`)+`}}`) // refused here
		}
		p.end(io.EOF)
		tell(t, c, `{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{`+metaOf(`{}`)+`}}`)
		time.Sleep(time.Minute)
		if got, ended := l.heard(); len(got) != 3 || ended != 1 || !errors.Is(l.ended[0], io.EOF) {
			t.Errorf("%q, ended %v", got, l.ended)
		}
		c.Close()
	})
}

// TestStreams lets many goroutines of both sides work at a time, while the clock runs: each
// call gets its progress and then its answer, once.
func TestStreams(t *testing.T) {
	for _, kind := range []string{"modern", "legacy"} {
		t.Run(kind, func(t *testing.T) { testStreams(t, kind) })
	}
}

func testStreams(t *testing.T, kind string) {
	const calls, clients = 50, 16
	idle := runtime.NumGoroutine()
	var work sync.WaitGroup
	p := &played{}
	p.write = func(_ context.Context, m *wire.Message) error {
		if m.Kind != wire.Request {
			return nil
		}
		id, method := string(m.ID.Append(nil)), m.Method
		token := string(m.Params.Get("_meta").Get("progressToken").Raw())
		work.Go(func() {
			switch method {
			case "initialize":
				p.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
				return
			case "server/discover":
				p.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + discovered + `}`)
				return
			}
			p.say(`{"jsonrpc":"2.0","id":"q","method":"ping"}`)
			for i := range 3 {
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i))
			}
			p.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]}}`)
			if kind == "modern" { // of what passes as it is, a relay sees to that
				p.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":["again"]}}`)
			}
		})
		return nil
	}
	var mu sync.Mutex
	progress, answers, all := map[string]int{}, map[string]int{}, make(chan struct{})
	greeted := make(chan struct{})
	l := &listener{t: t, message: func(m *wire.Message) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case m.Method == "notifications/progress":
			progress[string(m.Params.Get("progressToken").Raw())]++
		case m.ID == wire.StringID("hello"):
			close(greeted)
		case m.Kind == wire.Response:
			id := string(m.ID.Append(nil))
			if answers[id]++; answers[id] > 1 || progress[id] != 3 || strings.Contains(rawOf(m), "again") {
				t.Errorf("%d. answer to %s, behind %d notes of progress", answers[id], id, progress[id])
			}
			if len(answers) == calls*clients {
				close(all)
			}
		}
	}}
	o := Options{Patience: time.Minute}
	c := asModern(p, o)
	hello := `{"jsonrpc":"2.0","id":"hello","method":"server/discover","params":{` + metaOf(`{}`) + `}}`
	if kind == "legacy" {
		c = asLegacy(p, o)
		hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	}
	c.Start(l)
	stop := make(chan struct{})
	work.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				c.tick()
			}
		}
	})
	tell(t, c, hello)
	<-greeted
	for client := range clients {
		work.Go(func() {
			for i := range calls {
				id := client*calls + i
				meta := `"progressToken":` + fmt.Sprint(id)
				if kind == "modern" {
					meta += "," + strings.TrimSuffix(strings.TrimPrefix(metaOf(`{}`), `"_meta":{`), "}")
				}
				tell(t, c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","_meta":{%s}}}`, id, meta))
				// One that never was is withdrawn meanwhile.
				tell(t, c, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}`)
			}
		})
	}
	<-all
	close(stop)
	work.Wait()
	waittest.Until(t, "an idle Conn has no goroutine", func() bool { return runtime.NumGoroutine() <= idle }) // an idle Conn has none
	c.Close()
	waittest.Until(t, "the Conn ends", func() bool { _, ended := l.heard(); return ended == 1 })
}
