// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// taker is a Receiver that does what its functions say.
type taker struct {
	message func(*Message)
	ended   func(error)
}

func (k taker) Message(m *Message) {
	if k.message != nil {
		k.message(m)
	}
}

func (k taker) Violation(*Violation) {}

func (k taker) Ended(err error) {
	if k.ended != nil {
		k.ended(err)
	}
}

// TestDelivery: nothing is delivered before Start, and Ended comes once, after every other call.
func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelivery()
		var under, got, ends atomic.Int64
		hold := make(chan struct{})
		for range 10 {
			go d.message(new(Message))
		}
		synctest.Wait()
		d.start(taker{
			message: func(*Message) { got.Add(1); under.Add(1); <-hold; under.Add(-1) },
			ended: func(err error) {
				if ends.Add(1); under.Load() != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("Ended(%v) with %d calls under way", err, under.Load())
				}
			},
		})
		synctest.Wait()
		d.end(io.EOF)
		d.end(ErrClosed)
		synctest.Wait()
		if ends.Load() != 0 || got.Load() != 10 {
			t.Errorf("%d messages, %d ends", got.Load(), ends.Load())
		}
		if d.message(new(Message)) || d.violation(new(Violation)) {
			t.Error("delivered after the end")
		}
		close(hold)
		synctest.Wait()
		if ends.Load() != 1 {
			t.Errorf("%d ends", ends.Load())
		}
	})
}

// TestDeliveryUnstarted: what is never started keeps nobody waiting, and one that is started too
// late says so.
func TestDeliveryUnstarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelivery()
		done := make(chan bool)
		go func() { done <- d.message(new(Message)) }()
		synctest.Wait()
		d.stop()
		if <-done {
			t.Error("delivered to no one")
		}
		d.end(ErrClosed)
		ended := make(chan error)
		d.start(taker{ended: func(err error) { ended <- err }})
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// conns are the transports of clients over a network, to a server that answers each request by h.
func conns(t *testing.T, test func(t *testing.T, c Conn)) {
	answers := make(chan string, 8)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		m, err := Decode(b, defaultLimits)
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "event: endpoint\ndata: /sse\n\n")
			for {
				w.(http.Flusher).Flush()
				select {
				case s := <-answers:
					io.WriteString(w, "data: "+s+"\n\n")
				case <-r.Context().Done():
					return
				}
			}
		case err != nil || m.Method == "silence":
			<-r.Context().Done()
		case r.URL.Path == "/sse":
			w.WriteHeader(http.StatusAccepted)
			answers <- string(NewResult(m.ID, []byte("{}")).Append(nil))
		default:
			body("application/json", string(NewResult(m.ID, []byte("{}")).Append(nil)))(w, r)
		}
	}))
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
	streamable, err1 := NewHTTP(ts.URL, HTTPOptions{})
	old, err2 := NewSSE(ts.URL+"/sse", HTTPOptions{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for name, c := range map[string]Conn{"HTTP": streamable, "SSE": old} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// TestCloseInMessage: a Receiver may close the Conn in the midst of a message, and is told the end
// when its own methods have returned.
func TestCloseInMessage(t *testing.T) {
	t.Parallel()
	conns(t, func(t *testing.T, c Conn) {
		ended := make(chan error, 2)
		var inside atomic.Bool
		c.Start(taker{
			message: func(m *Message) {
				inside.Store(true)
				defer inside.Store(false)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Millisecond) // Ended would come now
			},
			ended: func(err error) {
				if inside.Load() {
					t.Error("ended in the midst of a message")
				}
				ended <- err
			},
		})
		for n := range int64(3) {
			_ = c.Write(t.Context(), NewRequest(IntID(n), "x", nil)) // the first answer closes it
		}
		select {
		case err := <-ended:
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("no end")
		}
		if err := c.Write(context.Background(), NewRequest(IntID(9), "x", nil)); !errors.Is(err, ErrClosed) {
			t.Errorf("Write after Close: %v", err)
		}
		if len(ended) != 0 {
			t.Error("two ends")
		}
	})
}

// TestReceiversWait: an answer that its Receiver is busy with does not hold up the one of another
// request.
func TestReceiversWait(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		m, _ := Decode(b, defaultLimits)
		body("application/json", string(NewResult(m.ID, []byte("{}")).Append(nil)))(w, r)
	}))
	defer ts.Close()
	c, err := NewHTTP(ts.URL, HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second, ended := make(chan struct{}), make(chan struct{})
	c.Start(taker{
		message: func(m *Message) {
			if m.ID == IntID(2) {
				close(second)
				return
			}
			select {
			case <-second:
			case <-time.After(time.Minute):
				t.Error("one waits for the other")
			}
		},
		ended: func(error) { close(ended) },
	})
	send(t, c, request(1, "x"))
	send(t, c, request(2, "x"))
	<-second
	c.Close()
	<-ended
}
