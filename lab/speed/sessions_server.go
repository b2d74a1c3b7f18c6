// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// PlayFloor plays what up is compared with, until in ends. It is what a child process of
// [MeasureSessions] runs.
func PlayFloor(role Role, in io.Reader, errs io.Writer) error {
	switch role.Name {
	case floor:
		s := &idleServer{streams: true, tools: toolsOf(1)}
		return Host(s, in, errs)
	case reverse:
		return Play(role, in, io.Discard, errs)
	}
	return errors.New("speed: no such role")
}

// idleServer is an MCP server with sessions, whose answers cost as little as possible.
type idleServer struct {
	streams   bool   // it has a stream to listen to
	tools     []byte // result of tools/list
	listening atomic.Int64

	url  string
	http *http.Server
}

// newIdleServer starts one on a port of its own.
func newIdleServer(streams bool) (*idleServer, error) { return newToolServer(streams, 1) }

func newToolServer(streams bool, tools int) (*idleServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("speed: %w", err)
	}
	s := &idleServer{streams: streams, tools: toolsOf(tools), url: "http://" + l.Addr().String() + "/"}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go s.http.Serve(l)
	return s, nil
}

func (s *idleServer) close() { _ = s.http.Close() }

// toolsOf is the result of tools/list with n tools, each of some 250 bytes.
func toolsOf(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"tools":[`)
	for i := range n {
		name := toolName
		if i > 0 {
			name = fmt.Sprintf("%s_%d", toolName, i)
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":%q,"description":"Returns a text of the size that the caller asks for. It changes nothing.","inputSchema":{"type":"object","properties":{"script":{"type":"string"},"bytes":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}`, name)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func (s *idleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && s.streams:
		s.stream(w, r)
		return
	case r.Method == http.MethodDelete:
		return
	}
	body, raw := readPost(w, r)
	if raw == nil {
		return
	}
	if m, err := wire.Decode(body, limits); err == nil {
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "1")
		case "tools/list":
			raw = wire.NewResult(m.ID, s.tools).Append(nil)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

// stream is one on which nothing is ever said.
func (s *idleServer) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if http.NewResponseController(w).Flush() != nil {
		return
	}
	s.listening.Add(1)
	defer s.listening.Add(-1)
	<-r.Context().Done()
}
