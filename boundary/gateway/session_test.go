// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// A played is a session whose two sides a test plays.
type played struct {
	client, server *manyStreams
	sink           *memory
	over           chan error

	mu       sync.Mutex
	toClient []string
	toServer []string
}

func play(t *testing.T, cfg Config) *played {
	p := &played{over: make(chan error, 2), sink: &memory{}}
	note := func(list *[]string) func(string) {
		return func(line string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			*list = append(*list, line)
		}
	}
	p.client, p.server = &manyStreams{got: note(&p.toClient)}, &manyStreams{got: note(&p.toServer)}
	cfg.Sink = p.sink
	Start(t.Context(), p.client, p.server, cfg, func(err error) { p.over <- err })
	return p
}

func (p *played) heard() (client, server string) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.toClient, "\n"), strings.Join(p.toServer, "\n")
}

// ended reports whether the session has, once everything that can go on has gone on.
func (p *played) ended() (error, bool) {
	synctest.Wait()
	select {
	case err := <-p.over:
		return err, true
	default:
		return nil, false
	}
}

// TestIdleSession: a session has no goroutine while nothing happens.
func TestIdleSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		before := runtime.NumGoroutine()
		var all []*played
		for range n {
			p := play(t, Config{Admission: newAllow(t, "", "")})
			p.client.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			p.server.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
			if client, _ := p.heard(); client != `{"jsonrpc":"2.0","id":1,"result":{}}` {
				t.Fatalf("the client got %s", client)
			}
			all = append(all, p)
		}
		time.Sleep(5 * time.Second) // the clock has found nothing under way
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more >= n/2 {
			t.Errorf("%d sessions have %d goroutines", n, more)
		}
		for _, p := range all {
			p.client.leave(io.EOF)
			if err, over := p.ended(); err != nil || !over {
				t.Fatalf("ended %v: %v", over, err)
			}
		}
	})
}

// TestEnds: whatever ends a session, ended is called once, with the reason that came first.
func TestEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		end  func(p *played)
		want error
	}{
		{"the client leaves", func(p *played) { p.client.leave(io.EOF) }, nil},
		{"the client's connection breaks", func(p *played) { p.client.leave(broken) }, ErrFrontBroken},
		{"the server ends", func(p *played) { p.server.leave(io.EOF) }, ErrUpstreamGone},
		{"the server's connection breaks", func(p *played) { p.server.leave(broken) }, broken},
		{"the server ends behind the client, without an answer", func(p *played) { p.client.leave(io.EOF); synctest.Wait(); p.server.leave(io.EOF) }, ErrUpstreamGone},
		{"the server ends behind the client, with an answer", func(p *played) {
			p.client.leave(io.EOF)
			synctest.Wait()
			p.server.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
			p.server.leave(io.EOF)
		}, nil},
		{"both at a time", func(p *played) { go p.client.leave(broken); go p.server.leave(broken) }, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := play(t, Config{})
				p.client.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				c.end(p)
				time.Sleep(time.Hour)
				err, over := p.ended()
				if !over || !errors.Is(err, c.want) {
					t.Errorf("ended %v: %v, want %v", over, err, c.want)
				}
				if _, again := p.ended(); again {
					t.Error("ended twice")
				}
			})
		})
	}
	t.Run("the context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan error, 1)
			Start(ctx, &manyStreams{}, &manyStreams{}, Config{Sink: &memory{}}, func(err error) { over <- err })
			stop()
			if err := <-over; !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		})
	})
	t.Run("no configuration", func(t *testing.T) {
		over := make(chan error, 1)
		client, server := &manyStreams{r: &side{}, over: true}, &manyStreams{over: true}
		Start(t.Context(), client, server, Config{}, func(err error) { over <- err })
		if err := <-over; err == nil {
			t.Error("accepted")
		}
	})
}

// TestFinish: what a client that has closed its side gets.
func TestFinish(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":"q","method":"ping"}`
	const result = `{"jsonrpc":"2.0","id":1,"result":{}}`
	elicit := `{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`
	for _, c := range []struct {
		name    string
		finish  bool
		play    func(p *played)
		after   time.Duration // that the session ends
		client  string
		servers string
	}{
		{"2 s, and no more", false, func(p *played) {}, 2 * time.Second, "", "ping"},
		{"an answer within 2 s", false, func(p *played) { time.Sleep(time.Second); p.server.say(result) }, time.Second, `"result":{}`, "ping"},
		{"a slow answer", true, func(p *played) { time.Sleep(9 * time.Minute); p.server.say(result) }, 9 * time.Minute, `"result":{}`, "ping"},
		{"no answer", true, func(p *played) {}, 10 * time.Minute, errTimeout.text, "ping"},
		{"a server that asks", true, func(p *played) { p.server.say(elicit); time.Sleep(time.Minute); p.server.say(result) }, time.Minute, `"result":{}`, errClientGone.text},
		{"a server that ends", true, func(p *played) { time.Sleep(time.Minute); p.server.leave(io.EOF) }, time.Minute, errGone.text, "ping"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := play(t, Config{Finish: c.finish})
				p.client.say(question)
				p.client.leave(io.EOF)
				synctest.Wait()
				began := time.Now()
				c.play(p)
				for {
					err, over := p.ended()
					if want := c.client == errGone.text; over && errors.Is(err, ErrUpstreamGone) != want || err != nil && !want {
						t.Errorf("ended with %v", err)
					}
					if over {
						break
					}
					time.Sleep(250 * time.Millisecond)
				}
				if took := time.Since(began); took < c.after || took > c.after+2*time.Second {
					t.Errorf("the session ended after %s, want %s", took, c.after)
				}
				client, server := p.heard()
				if !strings.Contains(client, c.client) || !strings.Contains(server, c.servers) || c.client == "" && client != "" {
					t.Errorf("the client got %q, the server %q", client, server)
				}
			})
		})
	}
}

// deaf is a Conn that takes no message.
type deaf struct{ manyStreams }

func (d *deaf) Write(ctx context.Context, m *wire.Message) error {
	<-ctx.Done()
	m.Release()
	return ctx.Err()
}

// TestStuckServer: a server that takes no message and says nothing ends the session; one that says something is
// waited for.
func TestStuckServer(t *testing.T) {
	for _, speaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			up, over := &deaf{}, make(chan error, 1)
			front := &manyStreams{got: func(string) {}}
			Start(t.Context(), front, up, Config{Sink: &memory{}, Timeout: time.Minute}, func(err error) { over <- err })
			go front.say(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			for range 10 {
				time.Sleep(50 * time.Second)
				if speaks {
					up.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"busy"}}`)
				}
			}
			synctest.Wait()
			select {
			case err := <-over:
				if speaks || !errors.Is(err, ErrUpstreamStuck) {
					t.Errorf("a server that speaks %v: %v", speaks, err)
				}
			default:
				if !speaks {
					t.Error("the session goes on")
				}
				front.leave(io.ErrUnexpectedEOF)
				<-over
			}
		})
	}
}

// TestListGenerations: a list that came before the server announced a change does not count as current, and one
// that is older than what is known is not taken.
func TestListGenerations(t *testing.T) {
	t.Parallel()
	list := func(name string) map[string]declared { return map[string]declared{name: {}} }
	var s toolList
	first := s.generation()
	s.settle(list("first"), first)
	if s.label("first") != "first" || !s.current() {
		t.Error("a list is not taken")
	}
	s.stale()
	s.settle(list("slow"), first) // it was under way while the change was announced
	if s.label("slow") != "slow" || s.current() {
		t.Error("a list that may be old counts as current, or is not taken")
	}
	s.settle(list("new"), s.generation())
	s.settle(list("old"), first)
	if s.label("new") != "new" || !s.current() {
		t.Error("an old list takes the place of a new one")
	}
}
