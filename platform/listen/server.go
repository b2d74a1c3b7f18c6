// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Server is an http.Server whose Shutdown drops no request. That of net/http closes connections from which
// it has just read a request: their clients cannot know whether the request was carried out.
type Server struct {
	http.Server

	mu     sync.Mutex
	l      *queued
	served chan struct{} // closed when the last connection of l has been noted
	ending bool
	open   map[net.Conn]http.ConnState // StateNew or StateActive
}

// NewServer returns a server whose clients cannot make it wait or remember: every
// listener of ours is one. There is no bound to the time of an answer, which may be
// a stream.
func NewServer(h http.Handler, log *slog.Logger) *Server {
	s := &Server{open: map[net.Conn]http.ConnState{}}
	s.Handler, s.ReadHeaderTimeout, s.IdleTimeout, s.MaxHeaderBytes = unhurried(h), 10*time.Second, 2*time.Minute, 64<<10
	s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	s.ConnState = s.note
	return s
}

func (s *Server) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateNew || state == http.StateActive {
		s.open[c] = state
	} else {
		delete(s.open, c)
	}
}

// Serve is that of http.Server.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	served := make(chan struct{})
	s.l, s.served = &queued{Listener: l}, served
	if s.ending {
		s.l.finish()
	}
	s.mu.Unlock()
	err := s.Server.Serve(s.l)
	close(served)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return http.ErrServerClosed
	}
	return err
}

// newWait is what a connection gets for its first request once the server is to end: a proxy may be slow.
const newWait = time.Second

// queued is a listener that accepts what waits in the queue of the system before it closes: the system resets those
// connections, and clients cannot know whether their requests were carried out.
type queued struct {
	net.Listener
	ending atomic.Bool
}

// acceptWait is how long the queue has to be empty, and acceptMost how long new connections are accepted at most.
const (
	acceptWait = 10 * time.Millisecond
	acceptMost = 250 * time.Millisecond
)

type deadliner interface{ SetDeadline(time.Time) error }

// finish has Accept close the listener when the queue is empty.
func (l *queued) finish() {
	l.ending.Store(true)
	if d, ok := l.Listener.(deadliner); !ok || d.SetDeadline(time.Now()) != nil {
		l.Close()
		return
	}
	time.AfterFunc(acceptMost, func() { l.Close() })
}

// Accept implements net.Listener.
func (l *queued) Accept() (net.Conn, error) {
	for waited := false; ; waited = true {
		c, err := l.Listener.Accept()
		if !l.ending.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
			return c, err
		}
		if d, ok := l.Listener.(deadliner); waited || !ok || d.SetDeadline(time.Now().Add(acceptWait)) != nil {
			l.Close()
			return nil, net.ErrClosed
		}
	}
}

// Shutdown closes the listener, answers every request that has come, and then shuts the server down. Where ctx
// ends first, it returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.ending = true; s.l != nil {
		s.l.finish()
	}
	served := s.served
	s.mu.Unlock()
	if served != nil {
		<-served
	}
	s.SetKeepAlivesEnabled(false)
	end := time.Now().Add(newWait)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for s.waits(time.Now().Before(end)) && ctx.Err() == nil {
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
	return s.Server.Shutdown(ctx)
}

// waits reports whether a request is under way, or may come on a new connection.
func (s *Server) waits(alsoNew bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.open {
		if alsoNew || state == http.StateActive {
			return true
		}
	}
	return false
}
