// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/measured"
)

// heldSessions are open legacy sessions of clients that listen. Each has one connection,
// on which it has sent initialize and initialized and then asked for its stream: no client
// needs less. A client that keeps a second connection for its requests costs more.
type heldSessions struct {
	mu    sync.Mutex
	conns []net.Conn
}

// open opens n more sessions, several at a time.
func (h *heldSessions) open(ctx context.Context, addr, path string, n, atOnce int) (l lap, err error) {
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	var mu sync.Mutex
	var work sync.WaitGroup
	begin := time.Now()
	for range min(atOnce, n) {
		work.Go(func() {
			var times []time.Duration
			var failed error
			for range todo {
				at := time.Now()
				if failed = ctx.Err(); failed == nil {
					failed = h.openOne(ctx, addr, path)
				}
				if failed != nil {
					break
				}
				times = append(times, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			l.times = append(l.times, times...)
			err = errors.Join(err, failed)
		})
	}
	work.Wait()
	l.elapsed = time.Since(begin)
	return l, err
}

func (h *heldSessions) openOne(ctx context.Context, addr, path string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("speed: open a session: %w", err)
	}
	h.mu.Lock()
	h.conns = append(h.conns, conn)
	h.mu.Unlock()
	if err := conn.SetDeadline(time.Now().Add(callWait)); err != nil {
		return fmt.Errorf("speed: open a session: %w", err)
	}
	r := bufio.NewReaderSize(conn, 1<<10)
	head := "Host: " + addr + "\r\nAccept: application/json, text/event-stream\r\n"
	post := func(head, body string, want int) (http.Header, error) {
		return exchange(conn, r, fmt.Sprintf("POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, head, len(body), body), want, true)
	}
	answer, err := post(head, measured.Initialize, http.StatusOK)
	if err != nil {
		return err
	}
	if id := answer.Get("Mcp-Session-Id"); id != "" {
		head += "Mcp-Session-Id: " + id + "\r\n"
	}
	head += "MCP-Protocol-Version: 2025-11-25\r\n"
	if _, err := post(head, measured.Initialized, http.StatusAccepted); err != nil {
		return err
	}
	if _, err := exchange(conn, r, "GET "+path+" HTTP/1.1\r\n"+head+"\r\n", http.StatusOK, false); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("speed: open a session: %w", err)
	}
	return nil
}

// exchange sends a request and reads the header of the answer, and the body if it ends.
func exchange(conn net.Conn, r *bufio.Reader, request string, want int, ends bool) (http.Header, error) {
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, fmt.Errorf("speed: open a session: %w", err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, fmt.Errorf("speed: open a session: %w", err)
	}
	if resp.StatusCode != want {
		return nil, fmt.Errorf("speed: open a session: status %d, want %d", resp.StatusCode, want)
	}
	if !ends {
		return resp.Header, nil
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return nil, fmt.Errorf("speed: open a session: %w", err)
	}
	return resp.Header, resp.Body.Close()
}

func (h *heldSessions) close() {
	for _, c := range h.conns {
		c.Close()
	}
}
