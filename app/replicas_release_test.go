// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestReplicasRelease: a replica lets go of a session that is idle, or that made room for another one, and of none
// that is open. The session comes back where its next request arrives, also when nothing is left of its record.
func TestReplicasRelease(t *testing.T) {
	database := postgres.Database(t)
	config := "http: {session_idle: 1s, sessions: 2}\nevidence: {mode: \"off\"}\nservers: {one: {url: " + apptest.Upstream(t, "one", nil) + "}}\n"
	a, b := startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)
	s, err := storage.Open(t.Context(), database, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	owned := func() (n int) {
		rows, err := s.Leases(t.Context(), storage.ReplicaLease)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if err := s.ReleaseSessions(t.Context(), r.Holder, time.Now(), time.Now().Add(time.Hour), func(string) bool { n++; return true }); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	connect := func(g *apptest.Gateway, listens bool) *mcp.ClientSession {
		t.Helper()
		c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: g.Base + "/mcp/one", DisableStandaloneSSE: !listens},
			&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	listening, idle := connect(a, true), connect(a, false)
	evicted := connect(b, false)
	connect(b, false)
	connect(b, false) // takes the place of one of the two before it
	if n := owned(); n != 5 {
		t.Fatalf("replicas own %d sessions", n)
	}
	a.Eventually("only the session that listens is open", func() bool { return a.App.Sessions() == 1 && b.App.Sessions() == 0 })
	for _, g := range []*apptest.Gateway{a, b} {
		g.App.ReleaseSessions(t.Context(), time.Now().Add(-time.Minute))
	}
	if n := owned(); n != 5 {
		t.Errorf("sessions that were claimed just now: %d of 5 are left", n)
	}
	for _, g := range []*apptest.Gateway{a, b} {
		g.App.ReleaseSessions(t.Context(), time.Now())
	}
	if n := owned(); n != 1 {
		t.Errorf("replicas own %d sessions; one is open", n)
	}
	if err := s.SweepSessions(t.Context(), time.Now().Add(time.Hour), 1); err != nil {
		t.Fatal(err)
	}
	for name, session := range map[string]*mcp.ClientSession{"listening": listening, "idle": idle, "evicted": evicted} {
		if got, err := a.Say(session, "echo", name); err != nil || !strings.Contains(got, name) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if n := owned(); n != 3 {
		t.Errorf("replicas own %d sessions after three came back", n)
	}
}
