// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// slowProxy passes connections on to an address; what comes from there waits for a time that can be changed, also
// while it waits.
func slowProxy(t *testing.T, to string) (addr string, delay *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	delay = &atomic.Int64{}
	pass := func(dst, src net.Conn, wait bool) {
		defer dst.Close()
		defer src.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := src.Read(b)
			for came := time.Now(); wait && time.Since(came) < time.Duration(delay.Load()); {
				time.Sleep(10 * time.Millisecond)
			}
			if _, bad := dst.Write(b[:n]); err != nil || bad != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			go pass(s, c, false)
			go pass(c, s, true)
		}
	}()
	return l.Addr().String(), delay
}

// callers call in sessions until stop is called, which returns how many calls were answered, and the errors of the others.
func callers(t *testing.T, sessions []*mcp.ClientSession) (stop func() (answered int64, errors []string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	var mu sync.Mutex
	var done atomic.Int64
	var bad []string
	for _, s := range sessions {
		calling.Go(func() {
			for ctx.Err() == nil {
				if got, err := use(t.Context(), s, "echo"); err != nil || !strings.Contains(got, "hello") {
					mu.Lock()
					bad = append(bad, errorText(err))
					mu.Unlock()
				} else {
					done.Add(1)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	return func() (int64, []string) {
		cancel()
		calling.Wait()
		return done.Load(), bad
	}
}

func errorText(err error) string {
	if err == nil {
		return "wrong answer"
	}
	return err.Error()
}

// TestSlowStore: while the store takes 3 seconds for each answer, and then answers nothing for 15, calls wait or fail with
// an error of the gateway. No session ends.
func TestSlowStore(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	server, _ := interactive(t)
	database, err := url.Parse(postgres.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	addr, delay := slowProxy(t, database.Host)
	database.Host = addr
	config := "http: {rate: 0}\nevidence: {mode: \"off\"}\nservers: {one: {url: " + server + "}}\n"
	a, b := startReplica(t, database.String(), config, sharedKey), startReplica(t, database.String(), config, sharedKey)
	base := balance(t, a, b) + "/mcp/one"
	var sessions []*mcp.ClientSession
	for range 4 {
		sessions = append(sessions, new(person).connect(t, base, "", "2025-11-25"))
	}
	for _, step := range []struct {
		name         string
		delay, lasts time.Duration
	}{{"slow", 3 * time.Second, 8 * time.Second}, {"silent", 30 * time.Second, 15 * time.Second}} {
		end := callers(t, sessions)
		delay.Store(int64(step.delay))
		time.Sleep(step.lasts)
		delay.Store(0)
		answered, bad := end()
		first := ""
		for _, text := range bad {
			if !strings.Contains(text, "pellucid: ") {
				t.Errorf("%s: %s", step.name, text)
			}
			first = text
		}
		t.Logf("%s: %d calls answered, %d failed, the last one with %q", step.name, answered, len(bad), first)
		for i, s := range sessions {
			a.Eventually("the session goes on", func() bool {
				_, err := use(t.Context(), s, "echo")
				if err != nil && !strings.Contains(err.Error(), "pellucid: ") {
					t.Fatalf("%s: session %d: %v", step.name, i, err)
				}
				return err == nil
			})
		}
	}
	for _, s := range sessions {
		if err := s.Close(); err != nil {
			t.Errorf("a session has ended: %v", err)
		}
	}
}

// TestKeysRotateUnderLoad: keys are rotated twice while clients call. No call fails, and no session ends.
func TestKeysRotateUnderLoad(t *testing.T) {
	server, _ := interactive(t)
	g := apptest.Start(t, "version: 1\nhttp: {rate: 0}\nservers: {one: {url: "+server+"}}\n", nil)
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	var sessions []*mcp.ClientSession
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		sessions = append(sessions, new(person).connect(t, g.Base+"/mcp/one", "", version))
	}
	end := callers(t, sessions)
	for range 2 {
		before, now, err := local.RotateKey(t.Context(), dir)
		if err != nil || before.ID() == now.ID() {
			t.Fatalf("%s, %s, %v", before.ID(), now.ID(), err)
		}
		g.Eventually("the new key", func() bool { return strings.Contains(g.Log.String(), "current="+now.ID()) })
		sessions = append(sessions, new(person).connect(t, g.Base+"/mcp/one", "", "2025-11-25"))
	}
	if answered, bad := end(); answered < 50 || len(bad) > 0 {
		t.Errorf("%d calls answered, errors %q", answered, bad)
	}
	for i, s := range sessions {
		if got, err := use(t.Context(), s, "echo"); err != nil || !strings.Contains(got, "hello") {
			t.Errorf("session %d: %q, %v", i, got, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("session %d has ended: %v", i, err)
		}
	}
}

// TestReplicasOtherKey: a replica with another key does not open sessions of the others, gets none of their requests, and
// does them no harm.
func TestReplicasOtherKey(t *testing.T) {
	server, _ := interactive(t)
	database := postgres.Database(t)
	config := "http: {rate: 0}\nevidence: {mode: \"off\"}\nservers: {one: {url: " + server + "}}\n"
	a := startReplica(t, database, config, sharedKey)
	b := startReplica(t, database, config, strings.Repeat("0b", 32))
	own := new(person).connect(t, a.Base+"/mcp/one", "", "2025-11-25")
	other := new(person).connect(t, b.Base+"/mcp/one", "", "2025-11-25")
	r, err := http.NewRequest(http.MethodPost, b.Base+"/mcp/one", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": own.ID(), "Mcp-Protocol-Version": "2025-11-25"} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("a session of another key: %d", resp.StatusCode)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(body), `"error"`) || strings.Contains(string(body), "hello") {
		t.Errorf("%s", body)
	}
	for _, s := range []*mcp.ClientSession{own, other} {
		if got, err := use(t.Context(), s, "echo"); err != nil || !strings.Contains(got, "hello") {
			t.Errorf("%q, %v", got, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, g := range []*apptest.Gateway{a, b} {
		if n := metric(t, g, `pellucid_forwards_total{outcome="forwarded"}`); n != "" && n != "0" {
			t.Errorf("%s requests were forwarded", n)
		}
	}
}
