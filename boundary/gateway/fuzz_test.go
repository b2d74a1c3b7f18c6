// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// bareInspector is a choke point without anything around it.
func bareInspector(t testing.TB, kind frame.Kind) *inspector {
	cfg, err := Config{Name: "s", Sink: &memory{}, Frame: kind, LLM: sonar(t, "").LLM, DangerouslyAllowSampling: true,
		Log: slog.New(slog.DiscardHandler)}.orDefault()
	if err != nil {
		t.Fatal(err)
	}
	in, err := newInspector(cfg, func(int64) ([]byte, bool) { return nil, false })
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// FuzzPass: whatever a server sends as the answer to any method, what comes out
// is one JSON message without a hidden character or control token outside of
// what is echoed unseen.
func FuzzPass(f *testing.F) {
	for _, p := range passages {
		f.Add(p.method, p.body, p.part == mcpmsg.Error)
	}
	for place, form := range places {
		f.Add("tools/call", strings.NewReplacer("%s", `"x\u200b`+place+`"`, "%[1]s", `""`).Replace(form), false)
	}
	oracle, err := scrub.Compile(scrub.Policy{})
	if err != nil {
		f.Fatal(err)
	}
	meta, llm := bareInspector(f, frame.KindMeta), bareInspector(f, frame.KindLLM)
	f.Fuzz(func(t *testing.T, method, body string, failed bool) {
		in := meta
		if len(body)%2 == 1 {
			in = llm
		}
		line := `{"jsonrpc":"2.0","id":1,"result":` + body + `}`
		if failed {
			line = `{"jsonrpc":"2.0","id":1,"error":` + body + `}`
		}
		m, err := wire.Decode([]byte(line), testLimits)
		if err != nil {
			return
		}
		out := in.pass(passage{msg: m, method: method, id: wire.IntID(2)})
		if out == nil {
			t.Fatal("an answer was lost")
		}
		var v map[string]any
		if err := json.Unmarshal(out.Append(nil), &v); err != nil {
			t.Fatalf("not JSON: %v: %q", err, out.Append(nil))
		}
		if strings.Contains(string(out.Append(nil)), `"requestState"`) {
			return // what stands there is echoed unseen
		}
		var res scrub.Result
		eachString(v, func(s string) {
			// Definitions keep what emoji and languages need, so only what no
			// profile keeps is demanded here.
			if oracle.Scrub(s, &res); res.Tokens > 0 || strings.ContainsAny(s, "\u202e\u2066\U000e0041") {
				t.Errorf("%+q arrived", s)
			}
		})
	})
}

func BenchmarkPass(b *testing.B) {
	for _, size := range []int{128, 1 << 10, 10 << 10, 100 << 10} {
		for name, text := range map[string]string{
			"ascii": strings.Repeat("The quick brown fox. ", size/21+1)[:size],
			"mixed": strings.Repeat("\u0421\u044a\u0435\u0448\u044c \u8272\u306f \ud0a4\uc2a4 ", size/27+1),
		} {
			b.Run(name+"/"+strconv.Itoa(size), func(b *testing.B) {
				in := bareInspector(b, frame.KindFence)
				in.cfg.Sink = NewLines(discard{})
				q, _ := json.Marshal(text)
				line := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":` + string(q) + `}],"isError":false}}`)
				b.SetBytes(int64(len(line)))
				b.ReportAllocs()
				for b.Loop() {
					m, err := wire.Decode(line, testLimits)
					if err != nil {
						b.Fatal(err)
					}
					out := in.pass(passage{msg: m, method: "tools/call", id: wire.IntID(2), tool: "t"})
					out.Release()
				}
			})
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
