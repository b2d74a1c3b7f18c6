// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Server answers events at a socket.
type Server struct {
	listener *net.UnixListener
	path     string
	self     os.FileInfo // of the socket
	options  Options

	underway sync.WaitGroup // events
}

// Options of a Server.
type Options struct {
	// Answer returns the answer to an event of a host. If it is nil, the client does without.
	Answer func(ctx context.Context, host string, event []byte) []byte
	// Reserve waits until there is memory for an event of n bytes.
	Reserve func(ctx context.Context, n int64) (release func(), err error)
	Idle    time.Duration // without an event, after which the Server ends
}

// Listen listens at the socket of that name in the working directory, which is folder.
func Listen(folder, name string, o Options) (*Server, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: name})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // the name may be another process' by then
	s := &Server{listener: l, path: filepath.Join(folder, name), options: o}
	if s.self, err = os.Lstat(s.path); err == nil {
		err = os.Remove(StartedFile(s.path))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return s, nil
}

// Serve answers events until ctx ends, none has come for Idle, or another process has the name. Answers that are under way
// are still given.
func (s *Server) Serve(ctx context.Context) error {
	defer s.close()
	defer context.AfterFunc(ctx, func() { s.listener.Close() })()
	for last := time.Now(); ; {
		if err := s.listener.SetDeadline(time.Now().Add(min(s.options.Idle, time.Minute))); err != nil && ctx.Err() == nil {
			return fmt.Errorf("socket: %w", err)
		}
		c, err := s.listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			last = time.Now()
			s.underway.Go(func() { s.handle(ctx, c) })
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("socket: %w", err)
		case time.Since(last) >= s.options.Idle || !s.hasName():
			return nil
		}
	}
}

func (s *Server) hasName() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.self)
}

func (s *Server) close() {
	s.listener.Close()
	if s.hasName() {
		_ = os.Remove(s.path)
	}
	s.underway.Wait()
}

// handle answers one event. A client that sends nonsense, or too slowly, gets no answer.
func (s *Server) handle(ctx context.Context, c net.Conn) {
	defer c.Close()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), DecideWait)
	defer stop()
	const wait = AcceptWait - 500*time.Millisecond // the client learns of it before it takes the process for dead
	if c.SetDeadline(time.Now().Add(wait)) != nil {
		return
	}
	in := bufio.NewReaderSize(c, 4<<10)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return
	}
	var host string
	var n int64
	if _, err := fmt.Sscanf(string(line), "%32s %d\n", &host, &n); err != nil || n < 0 || n > MaxEvent+1 {
		return
	}
	accept, end := context.WithTimeout(ctx, wait)
	release, err := s.options.Reserve(accept, n)
	end()
	if err != nil {
		return
	}
	defer release()
	event := make([]byte, n)
	if _, err := io.ReadFull(in, event); err != nil {
		return
	}
	if _, err := c.Write([]byte("+")); err != nil {
		return
	}
	answer := s.options.Answer(ctx, host, event)
	if answer == nil || c.SetDeadline(time.Now().Add(AcceptWait)) != nil {
		return
	}
	_, _ = c.Write(append(fmt.Appendf(nil, "%08x", len(answer)), answer...)) // a client that has left needs none
}
