// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
)

// sayRaw posts a request in a legacy session, and returns the answer. No request may be told that the session is
// over.
func sayRaw(t *testing.T, g *apptest.Gateway, session, method, params string) string {
	t.Helper()
	resp := legacyPost(t, g.Base+"/mcp/one", session, fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":%q,"params":%s}`, method, params))
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: status %d: %s", method, resp.StatusCode, b)
	}
	return string(b)
}

const (
	echoHello  = `{"name":"echo","arguments":{"text":"hello"}}`
	levelDebug = `{"level":"debug"}`
	opening    = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`
)

// fails makes every change of sessions and of replicas fail with a code of Postgres, until lift is called.
func fails(t *testing.T, where, code string) (lift func()) {
	t.Helper()
	db := opened(t, where)
	executed(t, db, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '`+code+`'; END $$`)
	for _, table := range []string{"sessions", "leases"} {
		executed(t, db, `CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON `+table+` FOR EACH STATEMENT EXECUTE FUNCTION refuse()`)
	}
	return func() {
		for _, table := range []string{"sessions", "leases"} {
			executed(t, db, `DROP TRIGGER refuse ON `+table)
		}
	}
}

// fillDisk fills the disk of a database, until lift is called.
func fillDisk(t *testing.T, where, _ string) (lift func()) {
	t.Helper()
	name := filepath.Join(filepath.Dir(where), "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 64 << 10; n > 0; {
		if _, err := f.Write(make([]byte, n)); err != nil {
			n /= 2
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// TestSessionsUnkept: while a store takes no writes, because its disk is full or it is read-only, sessions of a
// gateway that is the only one go on and begin; what could not be kept of one is refused. Nothing ends, and all goes on afterwards.
func TestSessionsUnkept(t *testing.T) {
	for name, tt := range map[string]struct {
		where func(t *testing.T) string
		begin func(t *testing.T, where, code string) (lift func())
		code  string
	}{
		"sqlite on a full disk":      {smallDisk, fillDisk, ""},
		"postgres on a full disk":    {func(t *testing.T) string { return postgres.Database(t) }, fails, "53100"},
		"postgres that is read-only": {func(t *testing.T) string { return postgres.Database(t) }, fails, "25006"},
	} {
		t.Run(name, func(t *testing.T) {
			where := tt.where(t)
			g := apptest.Start(t, "version: 1\nevidence: {mode: \"off\"}\nservers: {one: {url: "+rawServer(t)+"}}\n", map[string]string{"PELLUCID_DB": where})
			session := beginLegacy(t, g.Base+"/mcp/one")
			if got := sayRaw(t, g, session, "logging/setLevel", `{"level":"info"}`); !strings.Contains(got, "-32601") {
				t.Fatalf("before: %s", got)
			}
			lift := tt.begin(t, where, tt.code)
			if got := sayRaw(t, g, session, "tools/call", echoHello); !strings.Contains(got, "hello") {
				t.Errorf("a call: %s", got)
			}
			if got := sayRaw(t, g, session, "logging/setLevel", levelDebug); !strings.Contains(got, `"code":7409`) {
				t.Errorf("a level that cannot be kept: %s", got)
			}
			if got := sayRaw(t, g, beginLegacy(t, g.Base+"/mcp/one"), "tools/call", echoHello); !strings.Contains(got, "hello") {
				t.Errorf("a call in a new session: %s", got)
			}
			lift()
			if got := sayRaw(t, g, session, "logging/setLevel", levelDebug); !strings.Contains(got, "-32601") {
				t.Errorf("afterwards: %s", got)
			}
		})
	}
}

// TestReplicasUnkept: replicas whose database takes no writes lose their leases. Every request of a session then
// gets the error 7409, no session begins, and none ends; afterwards all go on, at any replica.
func TestReplicasUnkept(t *testing.T) {
	for name, code := range map[string]string{"full": "53100", "read-only": "25006"} {
		t.Run(name, func(t *testing.T) {
			database := postgres.Database(t)
			config := "evidence: {mode: \"off\"}\nservers: {one: {url: " + rawServer(t) + "}}\n"
			all := []*apptest.Gateway{startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)}
			session := beginLegacy(t, all[0].Base+"/mcp/one")
			for _, g := range all {
				if got := sayRaw(t, g, session, "tools/call", echoHello); !strings.Contains(got, "hello") {
					t.Fatalf("before: %s", got)
				}
			}
			lift := fails(t, database, code)
			for _, g := range all {
				g.Eventually("the lease has lapsed", func() bool {
					r := readyz(t, g)
					return r.Status != "ok" && r.Checks["replica"] == "lapsed"
				})
			}
			for i, g := range all {
				if got := sayRaw(t, g, session, "tools/call", echoHello); !strings.Contains(got, `"code":7409`) {
					t.Errorf("a call at %d: %s", i, got)
				}
			}
			if got := sayRaw(t, all[1], "", "initialize", opening); !strings.Contains(got, `"code":7409`) {
				t.Errorf("a session begins: %s", got)
			}
			lift()
			for i, g := range all {
				g.Eventually(fmt.Sprintf("a call at %d afterwards", i), func() bool {
					return strings.Contains(sayRaw(t, g, session, "tools/call", echoHello), "hello")
				})
			}
		})
	}
}
