// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// brokenPipe is a Conn to a process that takes nothing.
type brokenPipe struct{ *played }

func (brokenPipe) Write(context.Context, *wire.Message) error { return wire.ErrPeerClosed }

// TestSharedGreeting: the greeting is for all sessions. Where it could not be written, or the session that
// brought it has gone before that, the sessions after it are greeted all the same.
func TestSharedGreeting(t *testing.T) {
	hello := func() *wire.Message {
		return own(wire.NewRequest(wire.IntID(1), mcpmsg.Initialize, []byte(greeting2025)))
	}
	greeted := func(t *testing.T, f *Fleet) {
		t.Helper()
		waittest.Until(t, "a greeted session", func() bool {
			answer := make(chan wire.Kind, 8)
			c := f.get("s").session("")
			defer c.Close()
			c.Start(&inbox{each: func(m *wire.Message) {
				if m.Kind != wire.Notification {
					answer <- m.Kind
				}
			}})
			if c.Write(t.Context(), hello()) != nil {
				return false
			}
			select {
			case kind := <-answer:
				return kind == wire.Response
			case <-time.After(patience):
				t.Fatal("no answer")
				return false
			}
		})
	}
	t.Run("not written", func(t *testing.T) {
		dials := 0
		well := answers(everyResult)
		f := fleetOf(t, Options{}, Server{Name: "s", Config: config("s"), Shared: true, Dial: func(ctx context.Context) (wire.Conn, error) {
			if dials++; dials > 1 {
				return well(ctx)
			}
			p := &played{}
			time.AfterFunc(50*time.Millisecond, func() { p.end(wire.ErrPeerClosed) })
			return brokenPipe{p}, nil
		}})
		greeted(t, f)
	})
	t.Run("gone before", func(t *testing.T) {
		dialled := make(chan struct{})
		well := answers(everyResult)
		f := fleetOf(t, Options{}, Server{Name: "s", Config: config("s"), Shared: true, Dial: func(ctx context.Context) (wire.Conn, error) {
			<-dialled
			return well(ctx)
		}})
		ctx, leave := context.WithCancel(t.Context())
		c := f.get("s").session("")
		c.Start(&inbox{})
		leave()
		_ = c.Write(ctx, hello())
		c.Close()
		close(dialled)
		greeted(t, f)
	})
}

// TestUnwritten: a request that the server does not take is answered, and nothing of it is kept.
func TestUnwritten(t *testing.T) {
	for _, shared := range []bool{false, true} {
		f := fleetOf(t, Options{}, Server{Name: "s", Config: config("s"), Shared: shared,
			Dial: func(context.Context) (wire.Conn, error) { return brokenPipe{&played{}}, nil }})
		got, c := &inbox{}, f.get("s").connection(t.Context(), "p")
		c.Start(got)
		m := own(wire.NewRequest(wire.IntID(7), mcpmsg.CallTool, []byte(`{"name":"x","_meta":{"progressToken":1}}`)))
		if err := c.Write(t.Context(), m); err != nil {
			t.Error(err)
		}
		waittest.Until(t, "an answer", func() bool { return got.count() == 1 })
		if m := got.got[0]; m.ID != wire.IntID(7) || m.Kind != wire.ErrorResponse || !m.Local {
			t.Errorf("shared %t: %s", shared, m.Append(nil))
		}
		if is, yes := c.(*sharer); yes {
			is.s.mu.Lock()
			if len(is.s.pending) > 0 || len(is.s.tokens) > 0 {
				t.Errorf("%d requests, %d tokens are kept", len(is.s.pending), len(is.s.tokens))
			}
			is.s.mu.Unlock()
		}
		c.Close()
		waittest.Until(t, "the end", func() bool { return got.isEnded(t) })
	}
}
