// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// slowServer takes one message for each token.
type slowServer struct {
	wire.Conn
	token chan struct{}
	got   []string
}

func (s *slowServer) Write(ctx context.Context, m *wire.Message) error {
	select {
	case <-s.token:
		s.got = append(s.got, m.Method)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestOutbox: what waits for a server that does not read has a bound and keeps its order, and
// the goroutine that writes it ends when nothing waits.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &slowServer{token: make(chan struct{})}
		r := &relay{up: up, life: t.Context(), calls: newCalls(4)}
		r.parts.Store(1) // that of this test
		r.quiet.log = slog.New(slog.DiscardHandler)
		send := func(method string) { r.enqueue(wire.NewRequest(wire.ID{}, method, nil)) }
		send("first")
		synctest.Wait() // the writer has it
		for range queueLength {
			send("waits")
		}
		send("lost")
		for range queueLength + 1 {
			up.token <- struct{}{}
		}
		synctest.Wait()
		if len(up.got) != queueLength+1 || up.got[0] != "first" || up.got[queueLength] != "waits" {
			t.Fatalf("%d messages written, the first %q, the last %q", len(up.got), up.got[0], up.got[len(up.got)-1])
		}
		send("later")
		up.token <- struct{}{}
		synctest.Wait()
		if up.got[len(up.got)-1] != "later" || r.outbox.writing {
			t.Errorf("the last is %q; still writing: %v", up.got[len(up.got)-1], r.outbox.writing)
		}
		r.outbox.end()
		send("too late")
		synctest.Wait()
		if len(up.got) != queueLength+2 {
			t.Errorf("%d messages were written, want %d", len(up.got), queueLength+2)
		}
	})
}

// TestClockRests: the clock stops where nothing is under way, and a request that comes
// later still ends in time.
func TestClockRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front := &slowServer{token: make(chan struct{}, 1)}
		r := &relay{cfg: Config{Timeout: time.Minute}, front: front, up: front, calls: newCalls(4), life: t.Context(), log: slog.New(slog.DiscardHandler)}
		r.parts.Store(1) // that of this test
		r.quiet.log = slog.New(slog.DiscardHandler)
		r.calls.begun = r.expiry.arm
		armed := func() bool {
			synctest.Wait()
			r.expiry.mu.Lock()
			defer r.expiry.mu.Unlock()
			return r.expiry.armed
		}
		r.startClock()
		time.Sleep(2 * time.Second)
		if armed() {
			t.Fatal("the clock goes on although nothing is under way")
		}
		time.Sleep(time.Hour)
		now := time.Now()
		ask, refused := r.calls.ask(wire.IntID(1), "ping", now)
		if ask == nil || refused != nil || !armed() {
			t.Fatalf("a request of the server does not start the clock: %v", refused)
		}
		front.token <- struct{}{} // for the answer that the server gets
		time.Sleep(62 * time.Second)
		synctest.Wait()
		if n := len(front.got); n != 1 || !r.calls.none() || armed() {
			t.Errorf("%d answers, none under way %v, clock armed %v", n, r.calls.none(), armed())
		}
		r.outbox.end()
		r.expiry.end()
		if _, refused := r.calls.ask(wire.IntID(2), "ping", time.Now()); refused != nil || armed() {
			t.Error("the clock starts again behind its end")
		}
		synctest.Wait()
	})
}

// pipeBroken is a Conn to a server that has closed its input.
type pipeBroken struct{ manyStreams }

func (*pipeBroken) Write(_ context.Context, m *wire.Message) error {
	m.Release()
	return wire.ErrPeerClosed
}

// TestUnwrittenListing: a call that waits for the list of tools does not wait where the server cannot be asked for
// it.
func TestUnwrittenListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, answer := make(chan error, 1), make(chan string, 1)
		front := &manyStreams{got: func(line string) { answer <- line }}
		Start(t.Context(), front, &pipeBroken{}, Config{Sink: &memory{}}, func(err error) { over <- err })
		began := time.Now()
		front.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`)
		if line := <-answer; !strings.Contains(line, "could not be passed on") || time.Since(began) > 0 {
			t.Errorf("after %s: %s", time.Since(began), line)
		}
		front.leave(io.EOF)
		if err := <-over; !errors.Is(err, ErrUpstreamGone) {
			t.Errorf("ended with %v", err)
		}
	})
}
