// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// BenchmarkComplete is what this package itself costs a request of about 8 KB, whole
// and in 1,000 pieces, without any network.
func BenchmarkComplete(b *testing.B) {
	chunk := `{"id":"c1","object":"chat.completion.chunk","created":1694268190,"model":"m","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}`
	stream := make([]string, 0, 1001)
	for range 1000 {
		stream = append(stream, chunk)
	}
	for name, c := range map[string]canned{
		"whole":  {"application/json", `{"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("word ", 1000) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":10}}`},
		"stream": {"text/event-stream", events(append(stream, "[DONE]")...)},
	} {
		b.Run(name, func(b *testing.B) {
			e, err := New(Options{Format: format.Chat, BaseURL: "https://models.example/v1", Model: "m", Transport: http.RoundTripper(c)})
			if err != nil {
				b.Fatal(err)
			}
			req := Request{System: strings.Repeat("Be exact. ", 800), Messages: []Message{{Text: "x"}}}
			if name == "stream" {
				req.Stream = func(Delta) error { return nil }
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Complete(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
