// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// allocated is how many bytes f asks for, whether it keeps them or not. Work that grows
// with the square of its input shows here on any machine.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// repeated is before, n times part with commas between, after.
func repeated(before, part string, n int, after string) []byte {
	return []byte(before + strings.Repeat(part+",", n-1) + part + after)
}

// TestManyParts: a context or an answer of very many small parts costs what its bytes do.
func TestManyParts(t *testing.T) {
	text := strings.Repeat("x", 100)
	const n = 10_000
	for name, tt := range map[string]struct {
		src  []byte
		read func([]byte) (size int, err error)
	}{
		"tasks": {repeated(`{"messages":[`, `{"role":"user","content":"`+text+`"}`, n, `]}`), func(b []byte) (int, error) {
			a, err := Parse(format.Chat, b, ParseOptions{})
			return len(a.Task), err
		}},
		"instructions": {repeated(`{"input":[`, `{"role":"system","content":"`+text+`"}`, n, `]}`), func(b []byte) (int, error) {
			a, err := Parse(format.Responses, b, ParseOptions{})
			return len(a.Instructions), err
		}},
		"blocks of a task": {repeated(`{"messages":[{"role":"user","content":[`, `{"type":"text","text":"`+text+`"}`, n, `]}]}`), func(b []byte) (int, error) {
			a, err := Parse(format.Messages, b, ParseOptions{})
			return len(a.Task), err
		}},
		"blocks of an answer": {repeated(`{"content":[`, `{"type":"text","text":"`+text+`"}`, n, `]}`), func(b []byte) (int, error) {
			a, err := ParseAnswer(format.Messages, b)
			return len(a.Text), err
		}},
		"items of an answer": {repeated(`{"output":[`, `{"type":"message","content":[{"type":"output_text","text":"`+text+`"}]}`, n, `]}`), func(b []byte) (int, error) {
			a, err := ParseAnswer(format.Responses, b)
			return len(a.Text), err
		}},
		"reasoning of an answer": {repeated(`{"output":[{"type":"reasoning","summary":[`, `{"type":"summary_text","text":"`+text+`"}`, n, `]}]}`), func(b []byte) (int, error) {
			a, err := ParseAnswer(format.Responses, b)
			return len(a.Reasoning), err
		}},
	} {
		var size int
		var err error
		cost := allocated(func() { size, err = tt.read(tt.src) })
		if err != nil || size != n*(len(text)+1)-1 {
			t.Errorf("%s: %d bytes, %v", name, size, err)
		}
		if cost > 40*uint64(len(tt.src)) {
			t.Errorf("%s: %d bytes allocated for %d", name, cost, len(tt.src))
		}
	}
}

// TestLongNames: one long name above very many arguments is not kept with each.
func TestLongNames(t *testing.T) {
	name := strings.Repeat("recipient", 20_000)
	for shape, args := range map[string][]byte{
		"array":   repeated(`{"`+name+`":[`, `1`, 20_000, `]}`),
		"objects": repeated(`{"`+name+`":[`, `{"a":1}`, 20_000, `]}`),
		"members": fmt.Appendf(nil, `{"%s":{%s"last":1}}`, name, members(20_000)),
	} {
		var p Privileges
		var a Proposal
		cost := allocated(func() { a = p.Proposal(Call{Name: "send", Arguments: args}) })
		if a.Malformed || len(a.Critical)+len(a.Free) <= maxArguments {
			t.Errorf("%s: malformed %v, %d arguments", shape, a.Malformed, len(a.Critical)+len(a.Free))
		}
		if cost > 64<<20 {
			t.Errorf("%s: %d bytes allocated for %d", shape, cost, len(args))
		}
	}
	p := Privileges{Rules: []ToolRule{{Tool: "*", Free: []string{name}}}}
	a := p.Proposal(Call{Name: "send", Arguments: []byte(`{"` + name + `":{"to":"x"},"` + name + `2":["y"],"` + name + `3":"z"}`)})
	b := p.Proposal(Call{Name: "send", Arguments: []byte(`{"` + name + `":{"to":"x"},"` + name + `4":["y"],"` + name + `3":"z"}`)})
	if len(a.Critical) != 3 || a.Digest() == b.Digest() {
		t.Errorf("%d critical, digests %s and %s", len(a.Critical), a.Digest(), b.Digest())
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":1,`, i)
	}
	return b.String()
}

// TestManyArguments: comparing two calls of hundreds of arguments, and looking for them in
// a long text, is done in one go.
func TestManyArguments(t *testing.T) {
	long := strings.Repeat("w ", 2000) // prose, and so free
	half := maxArguments / 2
	args := []byte(`{"many":["` + strings.Repeat(long+`","`, half) + `"]`)
	for i := range half {
		args = fmt.Appendf(args, `,"n%d":"%s"`, i, "v v v v v v v v v v v v v v")
	}
	args = append(args, '}')
	var p Privileges
	a := p.Proposal(Call{Name: "send", Arguments: args})
	b := p.Proposal(Call{Name: "send", Arguments: bytes.ReplaceAll(args, []byte("v v v"), []byte("u u u"))})
	if cost := allocated(func() { similarity(a.Free, b.Free) }); cost > 32<<20 {
		t.Errorf("similarity: %d bytes allocated for %d", cost, len(args))
	}

	var words, amounts []byte
	for i := range 8000 {
		words = fmt.Appendf(words, "%d ", i)
	}
	for i := range maxArguments {
		amounts = fmt.Appendf(amounts, `%d,`, 20_000+i)
	}
	asm, err := Parse(format.Chat, fmt.Appendf(nil, `{"messages":[{"role":"user","content":"%s"}]}`, words), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	target := p.Proposal(Call{Name: "pay", Arguments: fmt.Appendf(nil, `{"amount":[%s1]}`, amounts)})
	if cost := allocated(func() { asm.Problem([]Proposal{target}, 0) }); cost > 32<<20 {
		t.Errorf("problem: %d bytes allocated", cost)
	}
	j := &Judge{Targets: []Proposal{target}, Trusted: asm.Task}
	other := &Answer{Calls: []Call{{Name: "pay", Arguments: []byte(`{"amount":[1,2,3]}`)}}}
	if cost := allocated(func() { j.Observe(Probe{}, other) }); cost > 32<<20 {
		t.Errorf("observe: %d bytes allocated", cost)
	}
	var given []byte
	for i := range maxArguments {
		given = fmt.Appendf(given, `%d,`, i)
	}
	for range maxProposals - 1 { // each has what the user gave in as many places
		other.Calls = append(other.Calls, Call{Name: "pay", Arguments: fmt.Appendf(nil, `{"amount":[%s1]}`, given)})
	}
	var o Observation
	j.Metrics = nil
	var p2 []Proposal
	policy := &Privileges{}
	parsing := allocated(func() { p2 = policy.Proposals(other) })
	if cost := allocated(func() { o = j.Observe(Probe{}, other) }); cost > parsing+32<<20 || len(p2) != maxProposals || !slices.Equal(o.Recurrences[0].Tampered, []string{"amount"}) {
		t.Errorf("observe many: %d bytes allocated, %d for the calls, %v", cost, parsing, o.Recurrences)
	}
}

// TestUserGiven: a target whose critical arguments stand in the user's text, or in the
// operator's, is the user's.
func TestUserGiven(t *testing.T) {
	a, err := Parse(format.Chat, []byte(`{"messages":[{"role":"system","content":"Bills go to ann@example.org."},{"role":"user","content":"Pay 20 EUR from DE89 3704 0044 0532 0130 00."}]}`), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var p Privileges
	for args, want := range map[string]bool{
		`{"amount":20}`: true, `{"amount":"20.0","email":"ann@example.org"}`: true, `{"iban":"DE89370400440532013000"}`: true,
		`{"amount":21}`: false, `{"amount":20,"email":"eve@example.org"}`: false, `{"iban":"DE89370400440532013001"}`: false, `{}`: false,
	} {
		target := p.Proposal(Call{Name: "pay", Arguments: []byte(args)})
		if got := a.Problem([]Proposal{target}, 0).Targets[0].UserGiven; got != want {
			t.Errorf("%s: given %v", args, got)
		}
	}
}

// TestWalk: a text of very many sentences has the same cuts as if all were listed.
func TestWalk(t *testing.T) {
	for _, n := range []int{0, 1, 2, 511, 512, 513, 1 << 14, 1<<14 + 1, 1<<14 + 2, 300_000, 262_145} {
		text := strings.Repeat("a\n", n) + "end"
		var all []int
		for i := range n {
			all = append(all, 2*(i+1))
		}
		if got, _ := walk(text); !slices.Equal(got, coarser(all)) {
			t.Errorf("%d sentences: %d cuts, want %d", n, len(got), len(coarser(all)))
		}
	}
	text := strings.Repeat("\n", 4<<20)
	if cost := allocated(func() { walk(text) }); cost > 1<<20 {
		t.Errorf("%d bytes allocated for line feeds", cost)
	}
}

// TestReorderDrops: what no variant shows is found without a search for each message.
func TestReorderDrops(t *testing.T) {
	src := repeated(`{"input":[{"type":"message","role":"user","content":"Go"},`, `{"type":"reasoning","id":"r"}`, 100_000,
		`,{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"text"}]}`)
	a, err := Parse(format.Responses, src, ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	best := time.Hour
	for i := 0; i < 20 && best > 4*time.Second; i++ { // a busy machine may pause during some of them
		start := time.Now()
		b, err := a.Render(Variant{Kind: KindReorder, Kept: AllOf(1), Order: 7})
		if err != nil || len(b) > 1000 || bytes.Contains(b, []byte("reasoning")) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		best = min(best, time.Since(start))
	}
	if best > 4*time.Second { // tens of milliseconds; 10,000,000,000 comparisons take longer
		t.Errorf("it took %v", best)
	}
}
