// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// steered sends requests to the address that it holds.
type steered struct{ to atomic.Pointer[string] }

func (s *steered) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = strings.TrimPrefix(*s.to.Load(), "http://")
	return http.DefaultTransport.RoundTrip(r)
}

// TestReplicaSuspended: a replica that is suspended is taken for gone, and another one takes its session over. When it goes
// on, it does not serve what it had: it passes requests on to the new owner. No call reaches the server twice.
func TestReplicaSuspended(t *testing.T) {
	t.Parallel()
	upstream, calls := questionServer(t)
	in := newInstall(t)
	database := databases.Database(t)
	var bases []string
	var replicas []*exec.Cmd
	for _, name := range []string{"r1", "r2"} {
		base, cmd := in.serveUp(t, fmt.Sprintf("version: 1\nstore: %q\nevidence: {mode: required}\nhttp: {rate: 0}\nreplicas: {name: %s, address: %q}\nservers:\n  s: {url: %s}\n",
			database, name, freeAddress(t), upstream))
		bases, replicas = append(bases, base), append(replicas, cmd)
	}
	way := &steered{}
	way.to.Store(&bases[0])
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: bases[0] + "/mcp/s", HTTPClient: &http.Client{Transport: way}, DisableStandaloneSSE: true},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	echo := func() {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
		if err != nil || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "hello") {
			t.Fatalf("%+v, %v", r, err)
		}
		if answered++; calls("echo") != answered {
			t.Errorf("%d calls reached the server, %d were answered", calls("echo"), answered)
		}
	}
	echo()
	if err := replicas[0].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	way.to.Store(&bases[1])
	began := time.Now()
	echo()
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("the session was taken over after %v: the lease of its owner had not ended", took)
	}
	if err := replicas[0].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	way.to.Store(&bases[0])
	before := passedOn(t, bases[0])
	echo()
	if n := passedOn(t, bases[0]); n != before+1 {
		t.Errorf("the replica that was suspended has passed %d requests on", n-before)
	}
	if err := s.Close(); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
}
