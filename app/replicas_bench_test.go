// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/apptest"
)

// BenchmarkForwarded measures what it costs that a call comes to another replica than the one that has the
// session: calls at the owner and at the other replica, in turn.
func BenchmarkForwarded(t *testing.B) {
	server := rawServer(t)
	database := postgres.Database(t)
	config := "evidence: {mode: \"off\"}\nhttp: {rate: 0}\nservers: {one: {url: " + server + "}}\n"
	a, b := startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)
	session := ""
	post := func(g *apptest.Gateway, body string) (time.Duration, string) {
		req, err := http.NewRequest(http.MethodPost, g.Base+"/mcp/one", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		began := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s %s, %v\n%s", resp.Status, answer, err, g.Log)
		}
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		return time.Since(began), string(answer)
	}
	post(a, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	post(a, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var direct, forwarded []time.Duration
	n := 0
	for t.Loop() {
		n++
		call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`, n)
		took, answer := post(a, call)
		direct = append(direct, took)
		if !strings.Contains(answer, "hello") {
			t.Fatal(answer)
		}
		took, _ = post(b, strings.Replace(call, `"id":`, `"id":9`, 1))
		forwarded = append(forwarded, took)
	}
	p50 := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2].Microseconds()) }
	at, through := p50(direct), p50(forwarded)
	t.ReportMetric(at, "p50-here-us")
	t.ReportMetric(through, "p50-forwarded-us")
	t.ReportMetric(0, "ns/op") // of both calls together
	if got := metric(t, b, `pellucid_forwards_total{outcome="forwarded"}`); got != strconv.Itoa(n) {
		t.Errorf("%s of %d calls were forwarded", got, n)
	}
}
