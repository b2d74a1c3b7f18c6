// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// heapOf returns the most that f adds to what is reachable on the heap, the pools of
// earlier messages emptied. It counts what each collection found reachable, so that it
// wants collections that stop the program: what is allocated beside one counts as reachable.
func heapOf(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(2))
	for range 3 {
		runtime.GC() // a sync.Pool keeps what it has through one collection
	}
	live := func() int64 {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	before := live()
	peak := before
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			peak = max(peak, live())
			time.Sleep(200 * time.Microsecond)
		}
	}()
	f()
	over.Store(true)
	<-done
	return max(peak, live()) - before
}

// TestGrowth: a result of n bytes costs at most 8 n + 1 MiB, and what is delivered in its
// place is not longer than that either, whatever it is made of. One text that is nothing
// but removed characters costs more, since each removal is an event of its own.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, for which tests are short, holds more on the heap")
	}
	const stop = "gcstoptheworld=1"
	if !strings.Contains(os.Getenv("GODEBUG"), stop) { // read when a program starts
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGrowth$", "-test.v")
		cmd.Env = append(os.Environ(), "GODEBUG="+stop)
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	key, err := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	content := func(block string) string { return `{"content":[` + block + `]}` }
	text := func(s string) string { return content(`{"type":"text","text":"` + s + `"}`) }
	structured := func(v string) string { return `{"content":[],"structuredContent":{"a":[` + v + `]}}` }
	for name, piece := range map[string]struct {
		of   string
		wrap func(string) string
	}{
		"empty texts, no type": {`{"text":""},`, content},
		"empty texts":          {`{"type":"text","text":""},`, content},
		"texts of one letter":  {`{"type":"text","text":"a"},`, content},
		"removed texts":        {`{"type":"text","text":"\u200b"},`, content},
		"no blocks":            {`{},`, content},
		"numbers for blocks":   {`1,`, content},
		"links":                {`{"type":"resource_link","uri":"a:b","name":"a"},`, content},
		"resources":            {`{"type":"resource","resource":{"uri":"a:b","text":"a"}},`, content},
		"refused names":        {`{"type":"resource_link","uri":"\u200b","name":"a"},`, content},
		"long text":            {"The quick brown fox. ", text},
		"text of marks":        {"a\u0301\u0301", text},
		"text of nothing":      {"\u200b", text},
		"text of two classes":  {"\u200b\u2060", text},
		"text and nothing":     {"a\u200b", text},
		"text of ligatures":    {"\ufdfa", text},
		"text of tokens":       {"<|im_start|>", text},
		"text of fences":       {"<untrusted-", text},
		"escaped text":         {`\u0041`, text},
		"empty strings":        {`"",`, structured},
		"changed strings":      {"\"\u200b\",", structured},
		"short strings":        {`"abc",`, structured},
		"objects":              {`{"a":1},`, structured},
		"receipts":             {`{"dev.pellucid/x":1},`, structured},
	} {
		for _, size := range []int{4 << 10, 64 << 10, 4 << 20} {
			n := size / len(piece.of)
			raw := []byte(piece.wrap(strings.TrimSuffix(strings.Repeat(piece.of, n), ",")))
			in, err := NewInspector(Config{Name: "s", Key: key, Sink: NewLines(discard{})})
			if err != nil {
				t.Fatal(err)
			}
			warm, _, err := in.Inspect(t.Context(), ToolResult{Server: "s", Tool: "t", Raw: []byte(piece.wrap(""))})
			if err != nil {
				t.Fatal(err, warm)
			}
			var out []byte
			grew := heapOf(func() { out, _, err = in.Inspect(t.Context(), ToolResult{Server: "s", Tool: "t", Raw: raw}) })
			most := int64(8*len(raw) + 1<<20)
			verdict := fmt.Sprintf("%s, %d bytes: %d delivered, %d on the heap, %.1f n", name, len(raw), len(out), grew, float64(grew)/float64(len(raw)))
			t.Log(verdict)
			if err != nil || int64(len(out)) > most || grew > most {
				t.Errorf("%s: %v", verdict, err)
			}
		}
	}
}

// TestManyBlocks: an honest result of very many short blocks arrives whole; of one that has
// more than its length pays for, the rest is one placeholder, and the record counts it.
func TestManyBlocks(t *testing.T) {
	t.Parallel()
	key, err := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInspector(Config{Name: "s", Key: key, Sink: NewLines(discard{})})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		blocks, length int
		whole          bool
	}{{600, 1, true}, {1000, 200, true}, {5000, 600, true}, {100_000, 0, false}, {3000, 1, true}, {5000, 1, false}} {
		block := `{"type":"text","text":"` + strings.Repeat("a", tt.length) + `"},`
		out, d, err := in.Inspect(t.Context(), ToolResult{Server: "s", Tool: "t", Raw: []byte(`{"content":[` + strings.TrimSuffix(strings.Repeat(block, tt.blocks), ",") + `]}`)})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, c := range d.Withheld {
			if c.Code == finding.TooMany {
				left = c.N
			}
		}
		last := got.Content[len(got.Content)-1].Text
		switch {
		case tt.whole && (len(got.Content) != tt.blocks || left > 0):
			t.Errorf("%d of %d: %d blocks, %d left out", tt.blocks, tt.length, len(got.Content), left)
		case !tt.whole && (left == 0 || len(got.Content)-1+left != tt.blocks || !strings.Contains(last, "blocks left out")):
			t.Errorf("%d of %d: %d blocks, %d left out, the last is %.60q", tt.blocks, tt.length, len(got.Content), left, last)
		}
	}
}

// TestMemory: messages under way wait for one another where they cost more together than
// there is, and what finds no room in time is answered with a constant text.
func TestMemory(t *testing.T) {
	t.Parallel()
	budget := intake.NewBudget(1 << 20)
	in := bareInspector(t, frame.KindFence)
	in.cfg.Memory, in.cfg.Sink = budget, NewLines(discard{})
	long := func(id int64) *wire.Message {
		m, err := wire.Decode([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`+strings.Repeat("a", 100<<10)+`"}]}}`), testLimits)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	give, err := budget.Wait(t.Context(), "another", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	in.cfg.patience = 20 * time.Millisecond
	out := in.pass(passage{msg: long(1), method: "tools/call", id: wire.IntID(1), tool: "t"})
	if !strings.Contains(string(out.Append(nil)), "too much was under way") || strings.Contains(string(out.Append(nil)), strings.Repeat("a", 99)) {
		t.Errorf("%.200s", out.Append(nil))
	}
	out = in.pass(passage{msg: long(2), method: "resources/read", id: wire.IntID(2)})
	if !strings.Contains(string(out.Append(nil)), `"code":7513`) {
		t.Errorf("%.200s", out.Append(nil))
	}
	in.cfg.patience = time.Minute
	time.AfterFunc(20*time.Millisecond, give)
	out = in.pass(passage{msg: long(3), method: "tools/call", id: wire.IntID(3), tool: "t"})
	if !strings.Contains(string(out.Append(nil)), strings.Repeat("a", 99)) {
		t.Errorf("%.200s", out.Append(nil))
	}
	if give, err := budget.Wait(t.Context(), "another", 1<<20); err != nil {
		t.Error("room was not given back")
	} else {
		give()
	}
}

// TestTurns: a long message waits for its turn, and ends it; a short one goes on without.
func TestTurns(t *testing.T) {
	in := bareInspector(t, frame.KindFence)
	budget := intake.NewBudget(64 << 20)
	in.cfg.Memory, in.cfg.Sink, in.cfg.patience = budget, NewLines(discard{}), 10*time.Millisecond
	text := func(size int, ctx context.Context) string {
		m, err := wire.Decode([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`+strings.Repeat("a", size)+`"}]}}`), testLimits)
		if err != nil {
			t.Fatal(err)
		}
		out := in.pass(passage{msg: m, method: "tools/call", id: wire.IntID(1), tool: "t", ctx: ctx})
		defer out.Release()
		return string(out.Append(nil))
	}
	leave := func() {}
	for i := range max(1, runtime.GOMAXPROCS(0)/2) { // all of them
		room, before := budget.Room(strconv.Itoa(i)), leave
		if err := room.WaitTurn(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		leave = func() { room.Leave(); before() }
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, ctx := range []context.Context{t.Context(), ended} {
		if got := text(intake.WorthTurn, ctx); !strings.Contains(got, "too much was under way") {
			t.Errorf("without a turn: %.200s", got)
		}
	}
	if got := text(intake.WorthTurn-1000, t.Context()); !strings.Contains(got, strings.Repeat("a", 99)) {
		t.Errorf("a short message: %.200s", got)
	}
	leave()
	for range 2 {
		if got := text(intake.WorthTurn, t.Context()); !strings.Contains(got, strings.Repeat("a", 99)) {
			t.Errorf("with a turn: %.200s", got)
		}
	}
	if n := budget.Used(); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
}
