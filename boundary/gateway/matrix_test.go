// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// carried reports whether a row's messages exist on a route at all.
func (r route) carried(row mcpmsg.Row) bool {
	request := row.Part == mcpmsg.Params && !strings.HasPrefix(row.Method, "notifications/")
	switch {
	case r.cross && row.Method == mcpmsg.Initialize:
		return !r.serves()
	case r.cross && row.Method == mcpmsg.Discover:
		return r.serves()
	case r.cross && row.Method != mcpmsg.Cancelled:
		return true
	case row.Method == mcpmsg.Initialize || row.Method == mcpmsg.Discover || row.Method == mcpmsg.ListTools:
		return true
	case row.Method == mcpmsg.Cancelled: // speaks of a request: TestMarker
		return false
	case request: // a modern server asks in its results
		return !r.modern || r.front == "stdio" && r.up == "stdio"
	}
	return true
}

// literal is what no poison may bring to the client, whatever the scrubber thinks
// of it: written down a second time on purpose.
var literal = []string{"<|im_start|>", "<|im_end|>", "[INST]", "[/INST]", "<<SYS>>", "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>",
	"<start_of_turn>", "<|start|>", "<|message|>", "<|system|>", "<|START_OF_TURN_TOKEN|>", "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
	"\u202a", "\u202e", "\u2066", "\u2069", "\u200b", "\U000e0041", "\u2062", "\u3164", "\ufff9", "\x1b", "\u009b", "\x00", "\ufeff"}

// opaque is what nobody looks into, and so arrives as it is.
const opaque = "\u200b opaque"

type oracles struct{ mcp, faithful *scrub.Scrubber }

// check demands that nothing in a line is what a scrubber would still remove.
func (o oracles) check(t *testing.T, name, line string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("%s: not JSON: %v", name, err)
	}
	var res scrub.Result
	eachString(v, func(s string) {
		if s == opaque {
			return
		}
		for _, l := range literal {
			if strings.Contains(s, l) {
				t.Errorf("%s: %+q arrived in %+q", name, l, s)
				return
			}
		}
		o.faithful.Scrub(s, &res)
		if res.Tokens > 0 || res.Hidden() > 0 {
			t.Errorf("%s: %+q holds %d hidden characters, %d tokens", name, s, res.Hidden(), res.Tokens)
		}
	})
}

// TestMatrix drives every string position of the table on every route with the
// kinds of poison, plain and as \uXXXX. Each position gets the marker and one kind, another
// one on the next route; $PELLUCID_MATRIX=full gives every position every kind in both
// spellings, which takes hours. Without $PELLUCID_MATRIX two routes are walked in
// every position and the others in every eighth: behind the transports it is the
// same function. In short all of them are walked in every 64th.
func TestMatrix(t *testing.T) {
	collectSeldom(t)
	mcp, err := scrub.Compile(scrub.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	faithful, err := scrub.Compile(scrub.Policy{Profile: scrub.Faithful, ControlTokens: scrub.RemoveTokens})
	if err != nil {
		t.Fatal(err)
	}
	extent := os.Getenv("PELLUCID_MATRIX")
	kinds := sortedKeys(poisons)
	if len(kinds) < 48 {
		t.Errorf("%d kinds", len(kinds))
	}
	for turn, r := range routes() {
		stride := 1
		if extent == "" && r != (route{"stdio", "stdio", false, false}) && r != (route{"http", "http", true, false}) {
			stride = 32 // the route alone is tried: each position is on the other two
		}
		if testing.Short() {
			stride = 64
		}
		t.Run(r.String(), func(t *testing.T) {
			m := matrix{t: t, oracles: oracles{mcp, faithful}, kinds: kinds, full: extent == "full", stride: stride, turn: turn * 7}
			for _, row := range markerRows() {
				if r.carried(row) {
					m.row(r, row)
				}
			}
			t.Logf("%d positions, %d messages", m.positions, m.messages)
		})
	}
}

type matrix struct {
	t *testing.T
	oracles
	kinds               []string
	full                bool
	stride              int
	turn                int
	positions, messages int
}

// batch is how many requests are under way at one time.
const batch = 32

func (m *matrix) row(r route, row mcpmsg.Row) {
	m.t.Helper()
	brief := row.Method != mcpmsg.CallTool
	probe := specimen{target: -1, brief: brief}
	clean := m.said(r, row, []string{probe.object(row.Shape, nil)})
	if heard := `"method":"` + row.Method + `"`; slices.Contains(spoken, row.Method) && !strings.Contains(strings.Join(clean, "\n"), heard) {
		m.t.Errorf("%s %s: the client has heard nothing of it: %q", r, row.Method, clean)
	}
	m.positions += probe.n
	var shots []specimen
	for target := m.turn % m.stride; target < probe.n; target += m.stride {
		if !m.full {
			m.turn++
			one := specimen{target: target, poison: poisons[m.kinds[m.turn%len(m.kinds)]], escaped: m.turn/len(m.kinds)%2 == 1}
			shots = append(shots, one, specimen{target: target, escaped: !one.escaped}) // the marker may arrive nowhere
			continue
		}
		for _, kind := range m.kinds {
			shots = append(shots, specimen{target: target, poison: poisons[kind]}, specimen{target: target, poison: poisons[kind], escaped: true})
		}
	}
	for some := range slices.Chunk(shots, batch) {
		bodies := make([]string, len(some))
		for i, s := range some {
			s.brief = brief
			bodies[i] = s.object(row.Shape, nil)
			if row.Part == mcpmsg.Error {
				bodies[i] = `{"code":7,` + strings.TrimPrefix(bodies[i], "{")
			}
		}
		m.said(r, row, bodies)
	}
}

// spoken is what every client hears of that can hear of it at all.
var spoken = []string{mcpmsg.Elicit, mcpmsg.Sample, mcpmsg.Progress, "notifications/message"}

// said checks what the client hears of bodies.
func (m *matrix) said(r route, row mcpmsg.Row, bodies []string) (lines []string) {
	// The messages have every member at once, which no type allows: the walk has to hold alone.
	cfg := Config{Name: "srv", Sink: &memory{}, DangerouslyAllowSampling: true, Validation: Validation{Mode: policy.Off}}
	hello := r.cross && (row.Method == mcpmsg.Initialize || row.Method == mcpmsg.Discover)
	m.t.Run(strings.ReplaceAll(row.Method, "/", "-"), func(t *testing.T) {
		if !hello {
			lines = newCourse(t, r, cfg).say(row, bodies)
			return
		}
		for _, body := range bodies { // a server says it once
			t.Run("", func(t *testing.T) { lines = append(lines, openCourse(t, r, body, cfg).greet()) })
		}
	})
	for _, line := range lines {
		m.check(m.t, r.String()+" "+row.Method, line)
	}
	m.messages += len(bodies)
	if len(lines) < len(bodies) {
		m.t.Errorf("%s %s: %d messages of %d", r, row.Method, len(lines), len(bodies))
	}
	return lines
}

func sortedKeys(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// benignPlaces are where honest text must come through on every route.
var benignPlaces = []struct {
	method, body string
	at           []any
}{
	{mcpmsg.CallTool, `{"content":[{"type":"text","text":%s}]}`, []any{"result", "content", 0, "text"}},
	{mcpmsg.CallTool, `{"content":[],"structuredContent":{"a":[%s]}}`, []any{"result", "structuredContent", "a", 0}},
	{mcpmsg.CallTool, `{"content":[{"type":"resource","resource":{"uri":"f:x","text":%s}}]}`, []any{"result", "content", 0, "resource", "text"}},
	{mcpmsg.ReadResource, `{"contents":[{"uri":"f:x","text":%s}],"ttlMs":0,"cacheScope":"private"}`, []any{"result", "contents", 0, "text"}},
	{mcpmsg.GetPrompt, `{"messages":[{"role":"user","content":{"type":"text","text":%s}}]}`, []any{"result", "messages", 0, "content", "text"}},
	{mcpmsg.Complete, `{"completion":{"values":[%s]}}`, []any{"result", "completion", "values", 0}},
}

// TestMatrixBenign: honest look-alikes come through unharmed under faithful, on every route.
func TestMatrixBenign(t *testing.T) {
	t.Parallel()
	if len(benign) < 13 {
		t.Errorf("%d controls", len(benign))
	}
	names := sortedKeys(benign)
	key := frame.Key{}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			c := newCourse(t, r, Config{Name: "srv", Sink: &memory{}, Profile: Faithful, Key: key})
			for _, p := range benignPlaces {
				row := *mcpmsg.Lookup(mcpmsg.Result, p.method)
				for _, name := range names {
					for _, escaped := range []bool{false, true} {
						s := specimen{escaped: escaped}
						lines := c.say(row, []string{fmt.Sprintf(p.body, s.quote(benign[name]))})
						got := parse(t, lines[0]).text(p.at...)
						if _, body, err := key.Open(got, frame.Origin{}); err == nil {
							got = body
						}
						if got != benign[name] {
							t.Errorf("%s in %v: %+q, want %+q", name, p.at, got, benign[name])
						}
					}
				}
			}
		})
	}
}
