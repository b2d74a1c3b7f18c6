// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestRoute is the whole way of a message between two hostile sides that say everything at a time: a
// client whose requests have the same ids, which withdraws them while they are answered and answers
// twice what it was asked; a server that answers twice, and what it was not asked, and asks by
// one id. No request has two answers, each that was not withdrawn has one, and both Conns end once, whenever that
// comes.
func TestRoute(t *testing.T) {
	for _, client := range []string{legacyOnly, modernOnly} {
		for _, server := range []string{legacyOnly, modernOnly} {
			for _, early := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s client, %s server, early %v", client, server, early), func(t *testing.T) {
					wrap := Adapt
					if client == modernOnly {
						wrap = Upstream
					}
					(&route{t: t, client: client, server: server, asked: map[wire.ID]int{}, answered: map[wire.ID]int{}}).run(wrap, early)
				})
			}
		}
	}
}

// A route plays both sides of a gateway and a translator.
type route struct {
	t              *testing.T
	client, server string
	front, up      played
	work           sync.WaitGroup // what the sides say because they were asked
	greeted        atomic.Bool

	mu              sync.Mutex
	asked, answered map[wire.ID]int
}

func (r *route) run(wrap func(wire.Conn, Options) *Conn, early bool) {
	r.front.write, r.up.write = r.toClient, r.toServer
	// As transports do, the sides end when what they say has been taken.
	end := func(p *played) func() {
		return func() { go func() { r.work.Wait(); p.ended.Do(func() { p.Ended(wire.ErrClosed) }) }() }
	}
	front, up := &closing{played: &r.front, end: sync.OnceFunc(end(&r.front))}, &closing{played: &r.up, end: sync.OnceFunc(end(&r.up))}
	key, _ := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	over := make(chan error, 2)
	gateway.Start(context.Background(), front, wrap(up, Options{Patience: time.Minute}),
		gateway.Config{Name: "real", Key: key, Frame: frame.KindMeta, Sink: nowhere{}}, func(err error) { over <- err })
	r.work.Add(1) // until all has been said
	r.say(wire.IntID(0), r.hello())
	waittest.Until(r.t, "the client is greeted", r.greeted.Load)
	const clients, calls = 8, 40
	var talk sync.WaitGroup
	for c := range clients {
		talk.Go(func() {
			for i := range calls {
				id := wire.IntID(int64(1000*(c+1) + i))
				if i%4 == 0 {
					id = wire.IntID(int64(i + 1)) // of all clients
				}
				r.say(id, r.call(id))
				if i%4 == 1 { // while it is answered
					r.front.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id.Append(nil)))
				}
				if early && c == 0 && i == calls/2 {
					front.Close()
				}
			}
		})
	}
	talk.Wait()
	if !early {
		waittest.Until(r.t, "each request has its answer", r.settled)
	}
	r.work.Done()
	front.end()
	select {
	case <-over:
	case <-time.After(time.Minute):
		r.t.Fatal("the session does not end")
	}
	up.Close() // once more
	r.work.Wait()
	if len(over) > 0 {
		r.t.Error("the session ends twice")
	}
}

// closing is a played whose end does not come inside of Close.
type closing struct {
	*played
	end func()
}

func (c *closing) Close() error {
	c.end()
	return nil
}

func (r *route) hello() string {
	if r.client == modernOnly {
		return `{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{` + metaOf(`{"roots":{},"elicitation":{}}`) + `}}`
	}
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`
}

func (r *route) call(id wire.ID) string {
	meta := ""
	if r.client == modernOnly {
		meta = "," + metaOf(`{"roots":{},"elicitation":{}}`)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"prompts/get","params":{"name":"t"%s}}`, id.Append(nil), meta)
}

// say lets the client ask something.
func (r *route) say(id wire.ID, line string) {
	r.mu.Lock()
	r.asked[id]++
	r.mu.Unlock()
	r.front.say(line)
}

// settled reports whether each request that was not withdrawn has its answer.
func (r *route) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, n := range r.asked {
		k, _ := id.Int()
		if withdrawn := k >= 1000 && k%4 == 1; !withdrawn && r.answered[id] != n {
			return false
		}
	}
	return true
}

// toClient is what the gateway writes to the client.
func (r *route) toClient(_ context.Context, m *wire.Message) error {
	switch m.Kind {
	case wire.Request:
		answer := `{"jsonrpc":"2.0","id":` + string(m.ID.Append(nil)) + `,"result":{"roots":[]}}`
		r.work.Go(func() {
			r.front.say(answer)
			r.front.say(answer)
		})
	case wire.Response, wire.ErrorResponse:
		if m.ID == wire.IntID(0) {
			r.greeted.Store(true)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.answered[m.ID]++; r.answered[m.ID] > r.asked[m.ID] {
			r.t.Errorf("%d answers to %d requests: %s", r.answered[m.ID], r.asked[m.ID], rawOf(m))
		}
	}
	return nil
}

// toServer is what the translator writes to the server.
func (r *route) toServer(_ context.Context, m *wire.Message) error {
	if m.Kind != wire.Request {
		return nil
	}
	id, method := string(m.ID.Append(nil)), m.Method
	answer := func(body string) { r.up.say(`{"jsonrpc":"2.0","id":` + id + `,` + body + `}`) }
	r.work.Go(func() {
		switch {
		case method == mcpmsg.Discover && r.server == modernOnly:
			answer(`"result":` + discovered)
		case method == mcpmsg.Initialize && r.server == legacyOnly:
			answer(`"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case method == mcpmsg.GetPrompt:
			r.up.say(`{"jsonrpc":"2.0","id":"same","method":"roots/list"}`)
			if rand.IntN(4) == 0 && r.server == modernOnly {
				answer(`"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}`)
				return
			}
			for range 2 {
				answer(`"result":{"messages":[]}`)
			}
			r.up.say(`{"jsonrpc":"2.0","id":1073741999,"result":{}}`) // one of the translator's own, perhaps
			r.up.say(`{"jsonrpc":"2.0","id":"other","result":{}}`)
		default:
			answer(`"error":{"code":-32601,"message":"no"}`)
		}
	})
	return nil
}
