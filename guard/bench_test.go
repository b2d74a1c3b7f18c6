package guard_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/llm"
	"github.com/pellucid-mcp/pellucid/llm/llmtest"
)

// BenchmarkPassThrough asks the fake directly and through the guard in turn, whole
// and streamed, with a context of 64 KiB, and reports the median of each and of the
// difference: what the guard adds to an answer that calls for nothing.
func BenchmarkPassThrough(b *testing.B) {
	for name, stream := range map[string]bool{"whole": false, "stream": true} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, llmtest.Always(llmtest.Reply{Text: "Nothing new."}))
			body := conversation(llm.FormatChat, stream, "Sum up.", string(bytes.Repeat([]byte("Nothing new. "), 5000)))
			ask := func(url string) time.Duration {
				req, _ := http.NewRequest(http.MethodPost, url+"/chat/completions", bytes.NewReader(body))
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
			var direct, guarded, added []time.Duration
			for b.Loop() {
				d, g := ask(r.fake.URL), ask(r.front.URL+"/v1")
				direct, guarded, added = append(direct, d), append(guarded, g), append(added, g-d)
			}
			for unit, all := range map[string][]time.Duration{"direct-p50-µs": direct, "guard-p50-µs": guarded, "added-p50-µs": added} {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, unit)
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}
