// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
)

var postgres pgtest.Server

func TestMain(m *testing.M) {
	code := m.Run()
	postgres.Stop()
	os.Exit(code)
}

// freeAddress is an address of loopback at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

const sharedKey = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

// startReplica starts a gateway on a store that others use too.
func startReplica(t *testing.T, database, more, key string) *apptest.Gateway {
	t.Helper()
	t.Setenv("REPLICA_KEY", key)
	t.Setenv(install.KeyVar, "env:REPLICA_KEY")
	config := "version: 1\nstore: env:DB\nreplicas: {address: env:ADDRESS}\n" + more
	return apptest.Start(t, config, map[string]string{"DB": database, "ADDRESS": freeAddress(t)})
}

// readiness is what /readyz says.
type readiness struct {
	Status           string
	Checks, Warnings map[string]string
}

func readyz(t *testing.T, g *apptest.Gateway) (r readiness) {
	t.Helper()
	resp, err := http.Get(g.Base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func metric(t *testing.T, g *apptest.Gateway, name string) string {
	t.Helper()
	resp, err := http.Get(g.Base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestReplicasSee: replicas know of each other, of older rules and of another key; a replica with older
// rules stays ready.
func TestReplicasSee(t *testing.T) {
	database := postgres.Database(t)
	server := apptest.Upstream(t, "one", nil)
	rules := func(more string) string { return fmt.Sprintf("servers: {one: {url: %s}%s}\n", server, more) }
	a := startReplica(t, database, rules(""), sharedKey)
	b := startReplica(t, database, rules(""), sharedKey)
	for _, g := range []*apptest.Gateway{a, b} {
		g.Eventually("two replicas", func() bool { return metric(t, g, "pellucid_replicas") == "2" })
		if r := readyz(t, g); r.Status != "ok" || len(r.Warnings) != 0 || r.Checks["replica"] != "ok" {
			t.Errorf("%+v", r)
		}
	}
	c := startReplica(t, database, rules(fmt.Sprintf(", two: {url: %s}", server)), strings.Repeat("0b", 32))
	a.Eventually("older rules, and another key", func() bool {
		r := readyz(t, a)
		return r.Status == "ok" && r.Warnings["rules"] == "older-than-another-replica" && r.Warnings["key"] == "another-replica-has-another-key"
	})
	if metric(t, a, "pellucid_rules_behind") != "1" || metric(t, a, "pellucid_replicas_strangers") != "1" {
		t.Error("no metric of it")
	}
	if r := readyz(t, c); r.Warnings["rules"] != "" {
		t.Errorf("the newest rules are older: %+v", r)
	}
	c.Stop()
	<-c.Done
	c.Done <- nil
	a.Eventually("the other replica has left", func() bool { return metric(t, a, "pellucid_replicas") == "2" && len(readyz(t, a).Warnings) == 0 })
}
