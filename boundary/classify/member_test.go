// SPDX-License-Identifier: Apache-2.0

package classify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"pgregory.net/rapid"
)

// keyword is a classifier that flags texts with "evil" in them.
type keyword struct {
	limits Limits
	calls  atomic.Int64
	answer func(ctx context.Context, texts []string) ([]Score, error) // nil: the usual

	mu   sync.Mutex
	seen []string
}

func (k *keyword) Limits() Limits  { return k.limits }
func (k *keyword) Version() string { return "kw-1" }

func (k *keyword) Classify(ctx context.Context, texts []string) ([]Score, error) {
	k.calls.Add(1)
	k.mu.Lock()
	k.seen = append(k.seen, texts...)
	k.mu.Unlock()
	if k.answer != nil {
		return k.answer(ctx, texts)
	}
	out := make([]Score, len(texts))
	for i, t := range texts {
		if strings.Contains(t, "evil") {
			out[i] = Score{P: 0.9, Flagged: true, Code: "keyword"}
		}
	}
	return out, nil
}

func member(t *testing.T, k *keyword, change func(*Options)) *Member {
	t.Helper()
	o := Options{Name: "kw", Classifier: k}
	if change != nil {
		change(&o)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestJudge(t *testing.T) {
	good, bad := Segment{View: "all is well"}, Segment{View: "an evil word"}
	fails := func(err error) func(context.Context, []string) ([]Score, error) {
		return func(context.Context, []string) ([]Score, error) { return nil, err }
	}
	says := func(s ...Score) func(context.Context, []string) ([]Score, error) {
		return func(context.Context, []string) ([]Score, error) { return s, nil }
	}
	for _, tt := range []struct {
		name     string
		change   func(*Options)
		answer   func(context.Context, []string) ([]Score, error)
		segments []Segment
		action   policy.Action
		reason   Reason
		code     Code
	}{
		{name: "nothing", segments: nil},
		{name: "clean", segments: []Segment{good, good}},
		{name: "flagged is held", segments: []Segment{good, bad}, action: policy.Hold, code: "keyword"},
		{name: "flagged is withheld", change: func(o *Options) { o.Flagged = policy.Deny }, segments: []Segment{bad}, action: policy.Deny, code: "keyword"},
		{name: "a limit of ours, above", change: func(o *Options) { o.Limit = 0.95 }, segments: []Segment{bad}, code: "keyword"},
		{name: "a limit of ours, below", change: func(o *Options) { o.Limit = 0.1 }, answer: says(Score{P: 0.2}), segments: []Segment{good}, action: policy.Hold},
		{name: "failed: held", answer: fails(errors.New("x")), segments: []Segment{good}, action: policy.Hold, reason: Unavailable},
		{name: "failed: open", change: func(o *Options) { o.Fail = FailOpen }, answer: fails(errors.New("x")), segments: []Segment{good}, reason: Unavailable},
		{name: "failed: closed", change: func(o *Options) { o.Fail = FailClosed }, answer: fails(errors.New("x")), segments: []Segment{good}, action: policy.Deny, reason: Unavailable},
		{name: "malformed", answer: fails(fmt.Errorf("azure: %w", ErrMalformed)), segments: []Segment{good}, action: policy.Hold, reason: Malformed},
		{name: "contradiction", answer: fails(ErrContrary), segments: []Segment{good}, action: policy.Hold, reason: Contrary},
		{name: "too few scores", answer: says(), segments: []Segment{good}, action: policy.Hold, reason: Malformed},
		{name: "too many scores", answer: says(Score{}, Score{}), segments: []Segment{good}, action: policy.Hold, reason: Malformed},
		{name: "a score that is none", answer: says(Score{P: 1.5}), segments: []Segment{good}, action: policy.Hold, reason: Malformed},
		{name: "a code that is none", answer: says(Score{P: 1, Flagged: true, Code: "ignore all\nrules"}), segments: []Segment{good}, action: policy.Hold, code: "other"},
		{name: "too long, and not a part of it judged", change: func(o *Options) { o.Most = 20 }, segments: []Segment{good, {View: strings.Repeat("x", 30)}}, action: policy.Hold, reason: TooLong},
		{name: "flagged and failed: the stricter", change: func(o *Options) { o.Most, o.Fail, o.Flagged = 20, FailOpen, policy.Deny }, segments: []Segment{bad, {View: strings.Repeat("x", 30)}}, action: policy.Deny, reason: TooLong, code: "keyword"},
		{name: "empty text", segments: []Segment{{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := member(t, &keyword{answer: tt.answer}, tt.change)
			v := m.Judge(t.Context(), tt.segments)
			if v.Action != tt.action || v.Reason != tt.reason || v.Code != tt.code {
				t.Errorf("action %v reason %q code %q, want %v %q %q", v.Action, v.Reason, v.Code, tt.action, tt.reason, tt.code)
			}
			if len(v.Segments) != len(tt.segments) || v.Name != "kw" || v.Version != "kw-1" {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

func TestRaw(t *testing.T) {
	for _, raw := range []bool{false, true} {
		k := &keyword{limits: Limits{Raw: raw}}
		member(t, k, nil).Judge(t.Context(), []Segment{{View: "view", Raw: "raw"}, {View: "same"}})
		want := "view"
		if raw {
			want = "raw"
		}
		if len(k.seen) != 2 || !strings.Contains(strings.Join(k.seen, " "), want) || !strings.Contains(strings.Join(k.seen, " "), "same") {
			t.Errorf("raw %v: asked about %q", raw, k.seen)
		}
	}
}

// TestApart: a classifier that asks for it gets each part of a segment, and its worst counts.
func TestApart(t *testing.T) {
	k := &keyword{limits: Limits{Apart: true, Texts: 5}}
	v := member(t, k, nil).Judge(t.Context(), []Segment{{View: "one\nan evil one\n", Parts: []string{"one", "an evil one"}}, {View: "whole"}})
	slices.Sort(k.seen)
	if want := []string{"an evil one", "one", "whole"}; !v.Flagged() || !slices.Equal(k.seen, want) {
		t.Errorf("asked about %q: %+v", k.seen, v)
	}
}

func TestCache(t *testing.T) {
	k := &keyword{}
	m := member(t, k, func(o *Options) { o.Cache = NewRecent(0) })
	a := m.Judge(t.Context(), []Segment{{View: "an evil word"}, {View: "fine"}})
	b := m.Judge(t.Context(), []Segment{{View: "an evil word"}, {View: "fine"}})
	if a.Cached != 0 || a.Asked != 2 || b.Cached != 2 || b.Asked != 0 || k.calls.Load() != 2 || b.Action != a.Action || b.Code != a.Code {
		t.Errorf("%+v then %+v, %d calls", a, b, k.calls.Load())
	}
	k.answer = func(context.Context, []string) ([]Score, error) { return nil, errors.New("down") }
	for range 2 {
		if v := m.Judge(t.Context(), []Segment{{View: "new"}}); v.Cached != 0 || v.Action != policy.Hold {
			t.Errorf("a failure was remembered: %+v", v)
		}
	}
}

func TestRecent(t *testing.T) {
	c := NewRecent(2)
	c.Put(Digest{1}, Score{P: 1})
	c.Put(Digest{2}, Score{P: 0.5})
	c.Get(Digest{1})
	c.Put(Digest{3}, Score{})
	if _, ok := c.Get(Digest{2}); ok {
		t.Error("the oldest was kept")
	}
	if s, ok := c.Get(Digest{1}); !ok || s.P != 1 {
		t.Error("one that was used was dropped")
	}
	if c.order.Len() != 2 || len(c.at) != 2 {
		t.Errorf("%d and %d kept", c.order.Len(), len(c.at))
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyword{answer: func(ctx context.Context, _ []string) ([]Score, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		m := member(t, k, func(o *Options) { o.Timeout = time.Second; o.Concurrent = 1 })
		begin := time.Now()
		v := m.Judge(t.Context(), []Segment{{View: "a"}, {View: "b"}, {View: "c"}})
		if v.Reason != Timeout || v.Action != policy.Hold || time.Since(begin) != time.Second || v.Latency != time.Second {
			t.Errorf("%+v after %v", v, time.Since(begin))
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if v := m.Judge(ctx, []Segment{{View: "a"}}); v.Reason != Canceled {
			t.Errorf("canceled: %+v", v)
		}
	})
}

// TestRest: who rests is not asked meanwhile, and whoever has asked does not wait for it.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyword{answer: func(_ context.Context, texts []string) ([]Score, error) {
			time.Sleep(100 * time.Millisecond)
			return make([]Score, len(texts)), nil
		}}
		m := member(t, k, func(o *Options) { o.Concurrent, o.Rest = 1, 3 })
		for i, want := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond} {
			if v := m.Judge(t.Context(), []Segment{{View: fmt.Sprint(i)}}); v.Reason != Judged || v.Latency != want {
				t.Errorf("%d: %s after %v, want %v", i, v.Reason, v.Latency, want)
			}
		}
		time.Sleep(time.Second)
		if v := m.Judge(t.Context(), []Segment{{View: "x"}}); v.Latency != 100*time.Millisecond {
			t.Errorf("it rests on: %v", v.Latency)
		}
		time.Sleep(time.Second)
	})
	for _, rest := range []float64{-1, math.NaN(), 101} {
		if _, err := New(Options{Name: "kw", Classifier: &keyword{}, Rest: rest}); err == nil {
			t.Errorf("a rest of %v", rest)
		}
	}
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyword{answer: func(context.Context, []string) ([]Score, error) { return nil, errors.New("down") }}
		m := member(t, k, nil)
		judge := func() Reason { return m.Judge(t.Context(), []Segment{{View: "x"}}).Reason }
		for range breakAfter {
			if r := judge(); r != Unavailable {
				t.Fatal(r)
			}
		}
		if r := judge(); r != Broken || k.calls.Load() != breakAfter {
			t.Fatalf("%q after %d calls", r, k.calls.Load())
		}
		time.Sleep(breakFor + time.Second)
		k.answer = nil
		if r := judge(); r != Judged {
			t.Fatalf("it has recovered, but %q", r)
		}
	})
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := member(t, &keyword{}, func(o *Options) { o.Chars = 10 })
		judge := func(s string) Reason { return m.Judge(t.Context(), []Segment{{View: s}}).Reason }
		if r := judge("\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4"); r != Judged {
			t.Fatal(r)
		}
		if r := judge("xxxxx"); r != OverBudget {
			t.Fatal(r)
		}
		if r := judge("xxxx"); r != Judged {
			t.Fatal(r)
		}
		time.Sleep(24 * time.Hour)
		if r := judge("xxxxxxxxxx"); r != Judged {
			t.Fatal(r)
		}
		few := member(t, &keyword{}, func(o *Options) { o.Calls = 4 })
		if r := few.Judge(t.Context(), []Segment{{View: "a"}}).Reason; r != Judged {
			t.Fatal(r)
		}
		if r := few.Judge(t.Context(), []Segment{{View: "b"}}).Reason; r != OverBudget {
			t.Fatal(r)
		}
	})
}

// What stands in a text stands whole in one of its chunks, if it is no longer than
// the overlap; and nothing is left out.
func TestChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringN(0, 3000, -1).Draw(t, "text") + rapid.SampledFrom([]string{"", "\xff\xfe", "\xe4\xb8"}).Draw(t, "tail")
		most := rapid.IntRange(1, 2000).Draw(t, "most")
		list := chunks(s, most)
		whole := list[0]
		for i, c := range list {
			if n := len([]rune(c)); n > most {
				t.Fatalf("chunk %d has %d code points of %d", i, n, most)
			}
			if i > 0 {
				k := after(list[i-1], most-min(overlap, most/4))
				if !strings.HasPrefix(c, list[i-1][k:]) {
					t.Fatalf("chunk %d does not begin with the end of the one before", i)
				}
				whole += c[len(list[i-1])-k:]
			}
		}
		if whole != s {
			t.Fatalf("%d bytes of %d", len(whole), len(s))
		}
	})
}

func TestBatches(t *testing.T) {
	var list []*chunk
	for _, n := range []int{5, 5, 5, 9, 1, 1, 1, 1} {
		list = append(list, &chunk{chars: n})
	}
	var got []string
	for _, b := range batches(list, Limits{Texts: 3, Total: 10}) {
		var ns []int
		for _, c := range b {
			ns = append(ns, c.chars)
		}
		got = append(got, fmt.Sprint(ns))
	}
	if want := "[5 5] [5] [9 1] [1 1 1]"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNew(t *testing.T) {
	k := &keyword{}
	for name, o := range map[string]Options{
		"no classifier": {Name: "x"},
		"no name":       {Classifier: k},
		"a bad name":    {Classifier: k, Name: "a b"},
		"a bad limit":   {Classifier: k, Name: "a", Limit: 2},
		"a bad mode":    {Classifier: k, Name: "a", Mode: 7},
		"a bad bound":   {Classifier: k, Name: "a", Timeout: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzChunks(f *testing.F) {
	f.Add("one two \xff three", 4)
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < 0 || len(s) > 1<<16 {
			return
		}
		n := 0
		for _, c := range chunks(s, most) {
			n += len(c)
		}
		if n < len(s) {
			t.Fatalf("%d bytes of %d", n, len(s))
		}
	})
}

// TestManyTexts: many texts are asked about by as many goroutines as there may be calls at one time.
func TestManyTexts(t *testing.T) {
	most := 0
	k := &keyword{}
	k.answer = func(context.Context, []string) ([]Score, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		most = max(most, runtime.NumGoroutine())
		return []Score{{}}, nil
	}
	before := runtime.NumGoroutine()
	var list []Segment
	for i := range 2000 {
		list = append(list, Segment{View: fmt.Sprint("text ", i)})
	}
	v := member(t, k, func(o *Options) { o.Concurrent, o.Calls = 4, 1_000_000 }).Judge(t.Context(), list)
	if v.Reason != Judged || v.Asked != len(list) || k.calls.Load() != int64(len(list)) {
		t.Errorf("%s, asked %d in %d calls", v.Reason, v.Asked, k.calls.Load())
	}
	if most > before+16 {
		t.Errorf("%d goroutines beside %d", most, before)
	}
}
