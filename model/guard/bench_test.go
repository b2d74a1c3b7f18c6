// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

// BenchmarkPassThrough asks the fake directly, through a reverse proxy of the standard
// library and through the guard in turn, whole and streamed, with a context of 64 KiB,
// and reports the median of each and of the differences: what either adds to an answer
// that calls for nothing.
func BenchmarkPassThrough(b *testing.B) {
	for name, stream := range map[string]bool{"whole": false, "stream": true} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, llmtest.Always(llmtest.Reply{Text: "Nothing new."}))
			body := conversation(format.Chat, stream, "Sum up.", string(bytes.Repeat([]byte("Nothing new. "), 5000)))
			ask := func(at string) time.Duration {
				req, _ := http.NewRequest(http.MethodPost, at+"/chat/completions", bytes.NewReader(body))
				req.Header.Set("Authorization", "Bearer "+secret)
				req.Header.Set("Content-Type", "application/json")
				start := time.Now()
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				defer resp.Body.Close()
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
					b.Fatal(resp.StatusCode, err)
				}
				return time.Since(start)
			}
			upstream, err := url.Parse(r.fake.URL)
			if err != nil {
				b.Fatal(err)
			}
			carrier := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
			defer carrier.CloseIdleConnections()
			plain := httptest.NewServer(&httputil.ReverseProxy{Transport: carrier, FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(upstream) }})
			defer plain.Close()
			var direct, proxied, guarded, added, proxyAdds []time.Duration
			for b.Loop() {
				d, p, g := ask(r.fake.URL), ask(plain.URL), ask(r.front.URL+"/v1")
				direct, proxied, guarded, added, proxyAdds = append(direct, d), append(proxied, p), append(guarded, g), append(added, g-d), append(proxyAdds, p-d)
			}
			for unit, all := range map[string][]time.Duration{"direct-p50-µs": direct, "proxy-p50-µs": proxied, "guard-p50-µs": guarded,
				"guard-adds-p50-µs": added, "proxy-adds-p50-µs": proxyAdds} {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, unit)
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

// BenchmarkOpenDecision reports what a decision that waits for the planner keeps in memory, beside
// its context, which is short here. The client, the connections and the fake are counted, too.
func BenchmarkOpenDecision(b *testing.B) {
	const n = 200
	var waiting atomic.Int64
	stop := make(chan struct{})
	r := newRig(b, func(a ask) reply {
		if a.System == delegation.PlanPrompt {
			waiting.Add(1)
			<-stop
		}
		return clerk(a)
	})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	var wait sync.WaitGroup
	before := heap()
	for i := range n {
		body := conversation(format.Chat, false, fmt.Sprintf("Pay the bill in bill%d.txt.", i), "Pay 120 to Waterworks.")
		wait.Go(func() { r.post(format.Chat, body) })
	}
	for deadline := time.Now().Add(time.Minute); waiting.Load() < 60 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second) // what else may begin has begun
	b.ReportMetric(float64(heap()-before)/n/1024, "KiB/decision")
	b.ReportMetric(float64(waiting.Load()), "asked")
	close(stop)
	wait.Wait()
	http.DefaultClient.CloseIdleConnections()
}
