// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A played is a Conn whose server answers each message on a stream of its own.
type played struct {
	wire.Receiver
	answer func(p *played, method, id string) // nil: as legacy does
	deaf   bool                               // the server takes no calls before taken is closed
	taken  chan struct{}
	ended  sync.Once
	work   sync.WaitGroup
}

func (p *played) Start(r wire.Receiver) { p.Receiver = r }

func (p *played) Write(ctx context.Context, m *wire.Message) error {
	if m.Method == "tools/call" && p.deaf {
		select {
		case <-p.taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	method, id := m.Method, ""
	if m.Kind == wire.Request {
		id = string(m.ID.Append(nil))
	}
	p.work.Go(func() {
		if p.answer != nil {
			p.answer(p, method, id)
		} else if raw := legacy("X.")(nil, method, id, []byte("{}")); raw != "" {
			time.Sleep(time.Second) // the client says more meanwhile
			p.say(raw)
		}
	})
	return nil
}

func (p *played) say(raw string) {
	m, err := wire.Decode([]byte(raw), strictjson.Limits{})
	if err != nil {
		panic(err)
	}
	p.Message(m)
}

func (p *played) end(err error) {
	go p.ended.Do(func() {
		p.work.Wait()
		p.Ended(err)
	})
}

func (p *played) Close() error {
	p.end(wire.ErrClosed)
	return nil
}

// A listener is a Receiver that notes what comes.
type listener struct {
	t       *testing.T
	message func(m *wire.Message)
	mu      sync.Mutex
	got     []string
	inside  int
	ended   []error
}

func (l *listener) Message(m *wire.Message) {
	l.mu.Lock()
	l.inside++
	l.got = append(l.got, string(m.Append(nil)))
	if len(l.ended) > 0 {
		l.t.Errorf("%s after the end", m.Append(nil))
	}
	l.mu.Unlock()
	if l.message != nil {
		l.message(m)
	}
	l.mu.Lock()
	l.inside--
	l.mu.Unlock()
}

func (l *listener) Violation(v *wire.Violation) { l.t.Error(v) }

func (l *listener) Ended(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inside > 0 || len(l.ended) > 0 {
		l.t.Errorf("the end comes inside of %d calls, after %v", l.inside, l.ended)
	}
	l.ended = append(l.ended, err)
}

func (l *listener) hears(want ...string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	ok := len(l.got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.Contains(l.got[i], want[i])
	}
	if !ok {
		l.t.Errorf("heard %q, want %q", l.got, want)
	}
	l.got = nil
}

func (l *listener) over(want error) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) != 1 || !errors.Is(l.ended[0], want) {
		l.t.Errorf("ended with %v, want %v", l.ended, want)
	}
}

// pushed runs f with a Conn to p, which has been started.
func pushed(t *testing.T, p *played, f func(c *Conn, l *listener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p.taken = make(chan struct{})
		r := newRig(t)
		r.Set([]Config{{Name: "a", Settings: Settings{Timeout: time.Minute}}})
		dial := func(context.Context) (wire.Conn, error) { return p, nil }
		c, err := r.Server("a").Conn(ctx, dial, "1")
		if err != nil {
			t.Fatal(err)
		}
		l := &listener{t: t}
		c.Start(l)
		f(c, l)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(l.ended) != 1 {
			t.Errorf("ended with %v", l.ended)
		}
	})
}

// TestPushKept: what a server says before the client has greeted it comes afterwards and in order,
// also where the server has ended meanwhile; then the end does.
func TestPushKept(t *testing.T) {
	for _, ends := range []string{"met", "server ends", "cut", "closed"} {
		t.Run(ends, func(t *testing.T) {
			p := &played{answer: func(p *played, method, id string) {
				if method == "notifications/initialized" {
					p.say(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
					p.say(`{"jsonrpc":"2.0","method":"notifications/kept"}`)
					return
				}
				time.Sleep(time.Millisecond)
				p.say(legacy("X.")(nil, method, id, []byte("{}")))
			}}
			pushed(t, p, func(c *Conn, l *listener) {
				l.message = func(*wire.Message) { time.Sleep(time.Second) }
				say(l.t, c, askHello)
				time.Sleep(time.Minute)
				l.hears(`"serverInfo"`)
				for range 2 { // they wait behind it
					p.work.Go(func() { p.say(`{"jsonrpc":"2.0","method":"notifications/later"}`) })
				}
				synctest.Wait()
				l.hears()
				switch ends {
				case "server ends":
					p.end(io.EOF)
				case "cut":
					c.Cut()
				case "closed":
					c.Close()
				}
				time.Sleep(time.Minute)
				l.hears()
				if ends == "cut" || ends == "closed" {
					l.over(map[string]error{"cut": errCut, "closed": wire.ErrClosed}[ends])
					return
				}
				say(l.t, c, greeting)
				time.Sleep(time.Minute)
				l.hears("roots/list", "notifications/kept", "notifications/later", "notifications/later")
				if ends == "server ends" {
					l.over(io.EOF)
				}
			})
		})
	}
}

// TestPushDirections: a client that does not read its answer and a server that does not take a call
// do not hold up the other direction.
func TestPushDirections(t *testing.T) {
	p := &played{deaf: true}
	pushed(t, p, func(c *Conn, l *listener) {
		read := make(chan struct{})
		l.message = func(m *wire.Message) {
			if m.ID == wire.IntID(1) {
				<-read
			}
		}
		say(l.t, c, askHello)
		say(l.t, c, greeting)
		say(l.t, c, askCall)
		time.Sleep(time.Minute)
		l.hears(`"serverInfo"`)
		close(p.taken) // the call goes to the server while the client still does not read
		time.Sleep(time.Minute)
		l.hears()
		close(read)
		time.Sleep(time.Minute)
		l.hears(`"id":2,"result"`)
	})
	p = &played{deaf: true}
	pushed(t, p, func(c *Conn, l *listener) {
		say(l.t, c, askHello)
		say(l.t, c, askCall)
		time.Sleep(time.Minute)
		p.work.Go(func() { p.say(`{"jsonrpc":"2.0","method":"notifications/x"}`) })
		time.Sleep(time.Minute)
		l.hears(`"serverInfo"`, "notifications/x") // while the server takes no call
		for i := range maxWaiting {
			say(l.t, c, strings.Replace(askCall, `"id":2`, fmt.Sprintf(`"id":%d`, 10+i), 1))
		}
		within, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		m, _ := wire.Decode([]byte(askCall), strictjson.Limits{})
		if err := c.Write(within, m); !errors.Is(err, context.DeadlineExceeded) {
			l.t.Error(err)
		}
	})
}

// TestPushClose: the Receiver closes, and Close comes while the server is checked.
func TestPushClose(t *testing.T) {
	pushed(t, &played{}, func(c *Conn, l *listener) {
		l.message = func(*wire.Message) {
			c.Close()
			time.Sleep(time.Second)
		}
		say(l.t, c, askHello)
		time.Sleep(time.Minute)
		l.hears(`"serverInfo"`)
		l.over(wire.ErrClosed)
	})
	silent := &played{answer: func(*played, string, string) {}}
	pushed(t, silent, func(c *Conn, l *listener) {
		say(l.t, c, askHello)
		synctest.Wait()
		c.Close()
		if err := c.Err(); err != nil {
			l.t.Error(err)
		}
		synctest.Wait()
		l.hears()
		l.over(wire.ErrClosed)
	})
	refusing := &played{answer: func(p *played, _, id string) { p.say(failure(id)) }}
	pushed(t, refusing, func(c *Conn, l *listener) {
		l.message = func(*wire.Message) { c.Close() } // inside of the refusal of server/discover
		say(l.t, c, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`)
		synctest.Wait()
		l.hears("-32601")
		l.over(wire.ErrClosed)
	})
	pushed(t, &played{}, func(*Conn, *listener) {}) // before anything was asked
}

// TestPushIdle: a Conn has no goroutine before the first request, nor after the check.
func TestPushIdle(t *testing.T) {
	p := &played{}
	pushed(t, p, func(c *Conn, l *listener) {
		synctest.Wait()
		before := runtime.NumGoroutine()
		say(l.t, c, `{"jsonrpc":"2.0","method":"notifications/early"}`)
		say(l.t, c, askHello)
		say(l.t, c, greeting)
		time.Sleep(time.Minute)
		say(l.t, c, askCall)
		p.work.Wait()
		synctest.Wait()
		l.hears(`"serverInfo"`, `"id":2,"result"`)
		if n := runtime.NumGoroutine(); n > before {
			l.t.Errorf("%d goroutines are left", n-before)
		}
	})
}
