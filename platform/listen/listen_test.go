// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestUnreadBody: who is refused and does not send the body that was announced loses the
// connection; others keep theirs, also where nobody has read what they sent.
func TestUnreadBody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			io.Copy(io.Discard, r.Body)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}), slog.New(slog.DiscardHandler))
	go srv.Serve(l)
	defer srv.Close()
	dial := func() (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(time.Minute))
		return c, bufio.NewReader(c)
	}
	for _, head := range []string{"Content-Length: 100", "Transfer-Encoding: chunked"} {
		c, r := dial()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\n"+head+"\r\n\r\n")
		start := time.Now()
		b, err := io.ReadAll(r)
		if took := time.Since(start); err != nil || took > 10*restWait {
			t.Errorf("%s: %q after %v, %v", head, b, took, err)
		}
	}
	c, r := dial()
	for _, path := range []string{"/", "/read", "/", "/read"} {
		io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%s: %v", path, err)
		}
		io.Copy(io.Discard, resp.Body)
		if strings.EqualFold(resp.Header.Get("Connection"), "close") {
			t.Errorf("%s: the connection is closed", path)
		}
		time.Sleep(restWait + restWait/4) // longer than what the rest of the body would have had
	}
}

// TestShutdownDropsNothing: a request that has come when the server is to end is answered, also one that comes on a
// connection that was accepted just before. That of net/http drops both.
func TestShutdownDropsNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan bool, 1024)
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") }), slog.New(slog.DiscardHandler))
	note := srv.ConnState
	srv.ConnState = func(c net.Conn, s http.ConnState) {
		if note(c, s); s == http.StateNew {
			select {
			case accepted <- true:
			default:
			}
		}
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-accepted
	<-accepted
	ended := make(chan error, 1)
	go func() { ended <- srv.Shutdown(t.Context()) }()
	for err == nil { // until the listener is closed
		var probe net.Conn
		if probe, err = net.DialTimeout("tcp", l.Addr().String(), time.Second); err == nil {
			probe.Close()
		}
	}
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	b, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(b), "served") {
		t.Errorf("%q, %v", b, err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	silent.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// gated is a listener that accepts nothing until the gate is closed.
type gated struct {
	*net.TCPListener
	gate chan struct{}
}

func (l gated) Accept() (net.Conn, error) {
	<-l.gate
	return l.TCPListener.Accept()
}

// TestShutdownAccepts: connections that wait to be accepted when the server is to end are served.
func TestShutdownAccepts(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := gated{tcp.(*net.TCPListener), make(chan struct{})}
	srv := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") }), slog.New(slog.DiscardHandler))
	served, ended := make(chan error, 1), make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	var clients []net.Conn
	for range 8 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		clients = append(clients, c)
	}
	waittest.Until(t, "it serves", func() bool { srv.mu.Lock(); defer srv.mu.Unlock(); return srv.l != nil })
	go func() { ended <- srv.Shutdown(t.Context()) }()
	waittest.Until(t, "the end has begun", func() bool { srv.mu.Lock(); defer srv.mu.Unlock(); return srv.l.ending.Load() })
	close(l.gate)
	for _, c := range clients {
		if b, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(b), "served") {
			t.Errorf("%q, %v", b, err)
		}
	}
	if err := <-ended; err != nil || !errors.Is(<-served, http.ErrServerClosed) {
		t.Error(err)
	}
}
