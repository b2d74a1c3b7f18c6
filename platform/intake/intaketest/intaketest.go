// SPDX-License-Identifier: Apache-2.0

// Package intaketest begins requests in tests, and says when the server has read what came of them.
package intaketest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A Server serves a handler whose requests a test begins and does not end.
type Server struct {
	*httptest.Server
	t    testing.TB
	read chan struct{}
}

// Serve serves h until the test ends.
func Serve(t testing.TB, h http.Handler) *Server {
	s := &Server{t: t, read: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := &begun{ResponseWriter: w, ReadCloser: r.Body, left: r.ContentLength - 1, read: s.read}
		r.Body = b
		h.ServeHTTP(b, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// A begun request tells read when all but the last byte of its body has been read, if it
// has no answer before that.
type begun struct {
	http.ResponseWriter
	io.ReadCloser
	left     int64
	answered bool
	read     chan<- struct{}
}

// Read implements io.Reader.
func (b *begun) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left == 0 && n > 0 && !b.answered {
		b.read <- struct{}{}
	}
	return n, err
}

// WriteHeader implements http.ResponseWriter.
func (b *begun) WriteHeader(status int) {
	b.answered = true
	b.ResponseWriter.WriteHeader(status)
}

// Unwrap lets an http.ResponseController find what has the connection.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Begin posts all but the last byte of a body of size bytes, with the lines of the header. It
// returns nil once the server has read them, and then answered has the answer; or the answer
// that comes before. The connection is open until the test ends.
func (s *Server) Begin(path string, header []string, size int) (answer *http.Response, answered <-chan *http.Response) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	head := append([]string{"POST " + path + " HTTP/1.1", "Host: a", fmt.Sprint("Content-Length: ", size)}, header...)
	if _, err := io.WriteString(conn, strings.Join(head, "\r\n")+"\r\n\r\n"+strings.Repeat("x", size-1)); err != nil {
		s.t.Fatal(err)
	}
	came := make(chan *http.Response, 1)
	go func() {
		resp, _ := http.ReadResponse(bufio.NewReader(conn), nil)
		came <- resp // nil: the connection has gone
	}()
	select {
	case <-s.read:
		return nil, came
	case resp := <-came:
		if resp == nil {
			s.t.Fatal("the connection has gone")
		}
		return resp, came
	}
}
