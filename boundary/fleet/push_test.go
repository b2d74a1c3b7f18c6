// SPDX-License-Identifier: Apache-2.0

package fleet

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

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// played is a Conn in memory whose other side a test plays. It has no goroutine.
type played struct {
	heard func(*wire.Message) // gets what is written

	mu    sync.Mutex
	r     wire.Receiver
	ended bool
}

func (p *played) Start(r wire.Receiver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r = r
}

func (p *played) Write(_ context.Context, m *wire.Message) error {
	p.mu.Lock()
	over := p.ended
	p.mu.Unlock()
	if over {
		return wire.ErrClosed
	}
	p.heard(m)
	return nil
}

func (p *played) Close() error {
	p.end(wire.ErrClosed)
	return nil
}

// end has nothing more come.
func (p *played) end(why error) {
	p.mu.Lock()
	first := !p.ended && p.r != nil
	p.ended = true
	p.mu.Unlock()
	if first {
		go p.r.Ended(why)
	}
}

// say has a message come, in this goroutine.
func (p *played) say(m *wire.Message) {
	if m = own(m); m == nil {
		panic("not strict JSON") // written in a test
	}
	p.mu.Lock()
	r := p.r
	p.mu.Unlock()
	r.Message(m)
}

// answers is a server in memory that answers each request at once with one result, in the goroutine that
// has written it.
func answers(result string) Dialer {
	return func(context.Context) (wire.Conn, error) {
		p := &played{}
		p.heard = func(m *wire.Message) {
			if m.Kind == wire.Request {
				p.say(wire.NewResult(m.ID, []byte(result)))
			}
		}
		return p, nil
	}
}

// person is a client in memory.
type person struct {
	*played
	last    atomic.Int64
	mu      sync.Mutex
	waiting map[wire.ID]chan *wire.Message
}

func newPerson() *person {
	c := &person{waiting: map[wire.ID]chan *wire.Message{}}
	c.played = &played{heard: func(m *wire.Message) {
		c.mu.Lock()
		answer := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if answer != nil && m.Kind != wire.Notification {
			_ = m.Parse()
			answer <- m
		}
	}}
	return c
}

// asks sends a request, in this goroutine, and returns where its answer comes.
func (c *person) asks(method, params string) (wire.ID, <-chan *wire.Message) {
	id, answer := wire.IntID(c.last.Add(1)), make(chan *wire.Message, 1)
	c.mu.Lock()
	c.waiting[id] = answer
	c.mu.Unlock()
	c.say(wire.NewRequest(id, method, []byte(params)))
	return id, answer
}

func (c *person) ask(t testing.TB, method, params string) *wire.Message {
	t.Helper()
	_, answer := c.asks(method, params)
	select {
	case m := <-answer:
		return m
	case <-time.After(patience):
		t.Fatalf("no answer to %s", method)
		return nil
	}
}

const greeting2025 = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`

// meet begins a session.
func (c *person) meet(t testing.TB, start func(func(error))) (ended chan error) {
	t.Helper()
	ended = make(chan error, 1)
	start(func(err error) { ended <- err })
	if m := c.ask(t, mcpmsg.Initialize, greeting2025); m.Kind != wire.Response {
		t.Fatalf("initialize: %s", m.Body())
	}
	c.say(wire.NewRequest(wire.ID{}, mcpmsg.Initialized, nil))
	return ended
}

func (c *person) leave(t testing.TB, ended chan error) {
	t.Helper()
	c.end(io.EOF)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("session: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the session does not end")
	}
}

// TestIdleSession: an idle session has no goroutine, whether of one server or of all, and whether its server
// is shared or not.
func TestIdleSession(t *testing.T) {
	shared := Server{Name: "b", Dial: answers(everyResult), Config: config("b"), Shared: true}
	f := fleetOf(t, Options{}, Server{Name: "a", Dial: answers(everyResult), Config: config("a")}, shared)
	open := func(n int) (leave func()) {
		var all []func()
		for i := range n {
			c := newPerson()
			ended := c.meet(t, func(ended func(error)) {
				if i%3 == 0 {
					f.StartAll(t.Context(), Client{Conn: c}, ended)
				} else {
					f.Start(t.Context(), []string{"a", "b"}[i%3-1], Client{Conn: c}, ended)
				}
			})
			all = append(all, func() { c.leave(t, ended) })
		}
		return func() {
			for _, leave := range all {
				leave()
			}
		}
	}
	open(3)()
	before := runtime.NumGoroutine()
	leave := open(60)
	waittest.Until(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= before })
	leave()
	if h := f.Health(); h[0].Connections != 0 || h[1].Connections != 1 {
		t.Errorf("%+v", h)
	}
}

// TestSameGoroutine: the call of a tool and its answer need no goroutine but the client's.
func TestSameGoroutine(t *testing.T) {
	f := fleetOf(t, Options{}, Server{Name: "a", Dial: answers(everyResult), Config: config("a")})
	c := newPerson()
	ended := c.meet(t, func(ended func(error)) { f.StartAll(t.Context(), Client{Conn: c}, ended) })
	c.ask(t, mcpmsg.ListTools, `{}`)
	for range 100 {
		_, answer := c.asks(mcpmsg.CallTool, `{"name":"a_t","arguments":{}}`)
		select {
		case m := <-answer:
			if m.Kind != wire.Response {
				t.Fatalf("%s", m.Body())
			}
		default:
			t.Fatal("the answer is not there when the request has been taken")
		}
	}
	c.leave(t, ended)
}

// inbox is a Receiver that keeps what it is told.
type inbox struct {
	each  func(*wire.Message)
	mu    sync.Mutex
	got   []*wire.Message
	in    int // calls under way
	ended int
	late  bool // a call was under way, or came, with or behind Ended
	why   error
}

func (b *inbox) Message(m *wire.Message) {
	b.mu.Lock()
	b.got = append(b.got, m)
	b.in++
	b.late = b.late || b.ended > 0
	b.mu.Unlock()
	if b.each != nil {
		b.each(m)
	}
	b.mu.Lock()
	b.in--
	b.mu.Unlock()
}

func (b *inbox) Violation(*wire.Violation) {}

func (b *inbox) Ended(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended++
	b.late = b.late || b.in > 0
	b.why = err
}

func (b *inbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got)
}

// isEnded reports whether Ended was called, and fails where it was not the last call.
func (b *inbox) isEnded(t testing.TB) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended > 1 || b.late {
		t.Errorf("Ended %d times, with others: %t", b.ended, b.late)
	}
	return b.ended == 1
}

// TestCloseInside: each Conn of the package may be closed by its Receiver, in the midst of a message.
func TestCloseInside(t *testing.T) {
	noisy := func(context.Context) (wire.Conn, error) {
		p := &played{}
		p.heard = func(m *wire.Message) {
			if m.Kind != wire.Request {
				return
			}
			id := m.ID
			for range 3 {
				go p.say(wire.NewRequest(wire.ID{}, mcpmsg.ToolsChanged, nil))
			}
			p.say(wire.NewResult(id, []byte(everyResult)))
		}
		return p, nil
	}
	f := fleetOf(t, Options{}, Server{Name: "a", Dial: noisy, Config: config("a")},
		Server{Name: "s", Dial: noisy, Config: config("s"), Shared: true}, player("p", "good"))
	for name, make := range map[string]func() wire.Conn{
		"link":  func() wire.Conn { return newLink(f.ctx, f.get("a"), "") },
		"share": func() wire.Conn { return f.get("s").session("") },
		"auto": func() wire.Conn {
			conn, _ := remembering(noisy, nil)(t.Context())
			return conn
		},
		"process": func() wire.Conn { return newLink(f.ctx, f.get("p"), "") },
		"child": func() wire.Conn {
			conn, err := Start(role("good"), nil)
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, b := make(), &inbox{}
			b.each = func(*wire.Message) { c.Close() }
			c.Start(b)
			if err := c.Write(t.Context(), own(wire.NewRequest(wire.IntID(1), mcpmsg.Initialize, []byte(greeting2025)))); err != nil && !errors.Is(err, wire.ErrClosed) {
				t.Error(err)
			}
			waittest.Until(t, "the end", func() bool { return b.isEnded(t) })
			if !errors.Is(b.why, wire.ErrClosed) || b.count() == 0 {
				t.Errorf("%v after %d messages", b.why, b.count())
			}
			c.Close()
		})
	}
}

// TestUnionCloseInside: the client's Conn is closed while a server's answer is written to it.
func TestUnionCloseInside(t *testing.T) {
	f := fleetOf(t, Options{}, Server{Name: "a", Dial: answers(everyResult), Config: config("a")})
	c := newPerson()
	ended := c.meet(t, func(ended func(error)) { f.StartAll(t.Context(), Client{Conn: c}, ended) })
	heard := c.heard
	c.heard = func(m *wire.Message) {
		c.Close()
		heard(m)
	}
	c.asks(mcpmsg.CallTool, `{"name":"a_t","arguments":{}}`)
	select {
	case err := <-ended:
		if !errors.Is(err, wire.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the session does not end")
	}
}

// TestSharedStuck: a session that does not take what comes for it holds up no other session of the same process,
// and what waits for it is bounded.
func TestSharedStuck(t *testing.T) {
	var server *played
	dial := func(context.Context) (wire.Conn, error) {
		server = &played{}
		server.heard = func(m *wire.Message) {
			if m.Kind == wire.Request {
				server.say(wire.NewResult(m.ID, []byte(`{}`)))
			}
		}
		return server, nil
	}
	f := fleetOf(t, Options{}, Server{Name: "s", Dial: dial, Config: config("s"), Shared: true})
	free := make(chan struct{})
	stuck, well := &inbox{each: func(*wire.Message) { <-free }}, &inbox{}
	a, b := f.get("s").session(""), f.get("s").session("")
	a.Start(stuck)
	b.Start(well)
	ping := func(c wire.Conn, id int64) {
		if err := c.Write(t.Context(), own(wire.NewRequest(wire.IntID(id), mcpmsg.Ping, nil))); err != nil {
			t.Error(err)
		}
	}
	ping(a, 1)
	waittest.Until(t, "the first is stuck", func() bool { return stuck.count() == 1 })
	for id := range int64(100) {
		ping(b, id)
		ping(a, id+2)
	}
	for range 3 * maxNotes {
		server.say(wire.NewRequest(wire.ID{}, mcpmsg.ToolsChanged, nil))
	}
	waittest.Until(t, "the answers of the other", func() bool { return well.count() >= 100 })
	if got := stuck.count(); got != 1 {
		t.Errorf("%d messages at the same time", got)
	}
	q := &a.(*sharer).queue
	q.mu.Lock()
	waits := len(q.waiting)
	q.mu.Unlock()
	if waits > maxNotes {
		t.Errorf("%d messages wait", waits)
	}
	a.Close()
	if stuck.isEnded(t) {
		t.Error("the end comes before the message is taken")
	}
	close(free)
	waittest.Until(t, "the end", func() bool { return stuck.isEnded(t) })
	ping(b, 1000)
	b.Close()
	waittest.Until(t, "the end of the other", func() bool { return well.isEnded(t) })
}

// TestDies: a server that ends while ten goroutines call it. Each call has one answer, and later ones get
// through to its next process.
func TestDies(t *testing.T) {
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprint("together ", together), func(t *testing.T) {
			f := fleetOf(t, Options{}, player("p", "good"), Server{Name: "a", Dial: answers(everyResult), Config: config("a")})
			c, tool := newPerson(), "pid"
			ended := c.meet(t, func(ended func(error)) {
				if together {
					tool = "p_pid"
					f.StartAll(t.Context(), Client{Conn: c}, ended)
				} else {
					f.Start(t.Context(), "p", Client{Conn: c}, ended)
				}
			})
			var all sync.WaitGroup
			var gone, well atomic.Int64
			for i := range 10 {
				all.Go(func() {
					for k := range 10 {
						text := ""
						if k == 3 && i%3 == 0 {
							text = "die"
						}
						switch m := c.ask(t, mcpmsg.CallTool, fmt.Sprintf(`{"name":%q,"arguments":{"text":%q}}`, tool, text)); {
						case m.Kind == wire.Response:
							well.Add(1)
						case strings.Contains(string(m.Body()), textLost), strings.Contains(string(m.Body()), textAbsent),
							strings.Contains(string(m.Body()), "could not be passed on"): // the pipe has broken, and its end is not yet known
							gone.Add(1)
						default:
							t.Errorf("%s", m.Body())
						}
					}
				})
			}
			all.Wait()
			if gone.Load() == 0 || well.Load() == 0 {
				t.Errorf("%d answers, %d lost", well.Load(), gone.Load())
			}
			waittest.Until(t, "a new process", func() bool {
				return c.ask(t, mcpmsg.CallTool, fmt.Sprintf(`{"name":%q,"arguments":{}}`, tool)).Kind == wire.Response
			})
			c.leave(t, ended)
		})
	}
}

// TestUpdateInCall: the list of servers changes while a call is under way. The call of a server that stays goes on,
// and that of one that goes is answered.
func TestUpdateInCall(t *testing.T) {
	held := make(chan *played, 1)
	var ids sync.Map
	slow := func(context.Context) (wire.Conn, error) {
		p := &played{}
		p.heard = func(m *wire.Message) {
			switch {
			case m.Kind == wire.Request && m.Method == mcpmsg.CallTool:
				ids.Store(p, m.ID)
				held <- p
			case m.Kind == wire.Request:
				p.say(wire.NewResult(m.ID, []byte(everyResult)))
			}
		}
		return p, nil
	}
	stays, goes := Server{Name: "a", Dial: slow, Config: config("a")}, Server{Name: "b", Dial: slow, Config: config("b")}
	f := fleetOf(t, Options{}, stays, goes)
	c := newPerson()
	ended := c.meet(t, func(ended func(error)) { f.StartAll(t.Context(), Client{Conn: c}, ended) })
	_, first := c.asks(mcpmsg.CallTool, `{"name":"a_t","arguments":{}}`)
	server := <-held
	_, second := c.asks(mcpmsg.CallTool, `{"name":"b_t","arguments":{}}`)
	<-held
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if err := f.Set([]Server{stays}); err != nil {
					t.Error(err)
				}
				c.ask(t, mcpmsg.ListTools, `{}`)
			}
		})
	}
	all.Wait()
	if m := <-second; m.Kind != wire.ErrorResponse || !strings.Contains(string(m.Body()), textLost) {
		t.Errorf("the call of a server that is no more: %s", m.Body())
	}
	select {
	case m := <-first:
		t.Fatalf("answered already: %s", m.Body())
	default:
	}
	id, _ := ids.Load(server)
	server.say(wire.NewResult(id.(wire.ID), []byte(everyResult)))
	if m := <-first; m.Kind != wire.Response {
		t.Errorf("%s", m.Body())
	}
	c.leave(t, ended)
}

// TestCancelOvertakes: a cancellation that comes while its request is on the way to the server is told behind it.
func TestCancelOvertakes(t *testing.T) {
	var heard []string
	var mu sync.Mutex
	inside, free := make(chan bool, 1), make(chan struct{})
	dial := func(context.Context) (wire.Conn, error) {
		p := &played{}
		p.heard = func(m *wire.Message) {
			if m.Method == mcpmsg.CallTool {
				inside <- true
				<-free
			}
			mu.Lock()
			heard = append(heard, m.Method)
			mu.Unlock()
			if m.Kind == wire.Request && m.Method != mcpmsg.CallTool {
				p.say(wire.NewResult(m.ID, []byte(everyResult)))
			}
		}
		return p, nil
	}
	f := fleetOf(t, Options{}, Server{Name: "a", Dial: dial, Config: config("a")})
	c := newPerson()
	ended := c.meet(t, func(ended func(error)) { f.StartAll(t.Context(), Client{Conn: c}, ended) })
	done := make(chan struct{})
	go func() { defer close(done); c.asks(mcpmsg.CallTool, `{"name":"a_t","arguments":{}}`) }()
	<-inside
	c.say(wire.NewRequest(wire.ID{}, mcpmsg.Cancelled, []byte(`{"requestId":`+fmt.Sprint(c.last.Load())+`}`)))
	close(free)
	<-done
	waittest.Until(t, "the cancellation", func() bool {
		mu.Lock()
		defer mu.Unlock()
		all := strings.Join(heard, " ")
		return strings.HasSuffix(all, mcpmsg.CallTool+" "+mcpmsg.Cancelled)
	})
	c.leave(t, ended)
}

// TestQueue: what is put in comes out in order, within the bound, and no goroutine is left; what is behind the end
// or dropped does not come.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []wire.ID
		free := make(chan struct{})
		q := queue{hand: func(m *wire.Message) { <-free; got = append(got, m.ID) }}
		put := func(from, to int64, limit int) (taken int) {
			for id := from; id < to; id++ {
				if q.put(wire.NewResult(wire.IntID(id), nil), limit) {
					taken++
				}
			}
			return taken
		}
		if n := put(0, 5, 3); n != 3 {
			t.Errorf("%d of 3 taken before it begins", n)
		}
		q.begin()
		synctest.Wait() // one is on its way
		if n := put(10, 15, 3); n != 1 {
			t.Errorf("%d taken, want 1", n)
		}
		over := false
		q.end(func() { over = true })
		if put(20, 21, 100) != 0 {
			t.Error("taken behind the end")
		}
		close(free)
		synctest.Wait()
		want := []wire.ID{wire.IntID(0), wire.IntID(1), wire.IntID(2), wire.IntID(10)}
		if fmt.Sprint(got) != fmt.Sprint(want) || !over {
			t.Errorf("%v, over %t", got, over)
		}
		d := queue{hand: func(*wire.Message) { t.Error("what was dropped") }}
		d.put(wire.NewResult(wire.IntID(1), nil), 1)
		over = false
		d.drop(func() { over = true })
		synctest.Wait()
		if !over {
			t.Error("nobody is told of the end")
		}
	})
}
