// SPDX-License-Identifier: Apache-2.0

// Package speed measures what scrubbing one field costs beside what libraries would do, what the boundary
// adds to a call beside other proxies, and what an open session costs.
package speed

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A Case is one measured pair of a text and a way to treat it.
type Case struct {
	Name string `json:"name"` // "ascii/mcp", "ascii/norm.NFKC"
	// NS is the median time for one field of 2,000 bytes, in nanoseconds.
	NS float64 `json:"ns"`
	// MemcpyRatio is NS over the median time to copy the same bytes.
	MemcpyRatio float64 `json:"memcpy_ratio"`
	MBPerS      float64 `json:"mb_per_s"` // 10^6 bytes received a second
	Allocs      float64 `json:"allocs"`   // heap allocations a field, once warm
}

// Options says how long to measure. The zero Options is what the published
// figures use.
type Options struct {
	Rounds   int                   // each case is measured once a round; 0 = 11
	Slice    time.Duration         // how long in each round; 0 = 4 ms
	Progress func(done, total int) // may be nil
}

// A subject is something that is measured.
type subject struct {
	name  string
	text  string
	field func(string)
	// batch is how many calls fill a slice of time.
	batch int
	times []float64
}

// Measure runs every case. All of them take turns in each round, so that what
// else the machine does in the meantime falls on all alike; a case's figure is
// the median of its rounds.
func Measure(o Options) ([]Case, error) {
	if o.Rounds <= 0 {
		o.Rounds = 11
	}
	if o.Slice <= 0 {
		o.Slice = 4 * time.Millisecond
	}
	subjects, err := newSubjects()
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		s.calibrate(o.Slice)
	}
	for round := range o.Rounds {
		if o.Progress != nil {
			o.Progress(round, o.Rounds)
		}
		for _, s := range subjects {
			s.times = append(s.times, s.run(s.batch))
		}
	}
	if o.Progress != nil {
		o.Progress(o.Rounds, o.Rounds)
	}
	return cases(subjects), nil
}

// memcpyName is the way that every other is compared with.
const memcpyName = "memcpy"

// newSubjects pairs every text with every way.
func newSubjects() ([]*subject, error) {
	type way struct {
		name  string
		field func(string)
	}
	dst := make([]byte, textBytes)
	n := newNaive()
	ways := []way{{memcpyName, func(s string) { copy(dst, s) }}}
	for _, p := range []struct {
		name    string
		profile scrub.Profile
	}{{"mcp", scrub.MCP}, {"faithful", scrub.Faithful}, {"veritas-0.1", scrub.Veritas}} {
		s, err := scrub.Compile(scrub.Policy{Profile: p.profile})
		if err != nil {
			return nil, fmt.Errorf("speed: %w", err)
		}
		r := new(scrub.Result)
		ways = append(ways, way{p.name, func(in string) { s.Scrub(in, r) }})
	}
	var sink string
	ways = append(ways,
		way{"norm.NFKC", func(s string) { sink = norm.NFKC.String(s) }},
		way{"naive", func(s string) { sink = n.clean(s) }})
	_ = sink
	var out []*subject
	for _, text := range texts() {
		for _, w := range ways {
			out = append(out, &subject{name: text.name + "/" + w.name, text: text.text, field: w.field})
		}
	}
	return out, nil
}

// calibrate warms s up and finds how many calls fill a slice.
func (s *subject) calibrate(slice time.Duration) {
	s.run(3)
	for s.batch = 1; s.batch < 1<<24; s.batch *= 2 {
		if ns := s.run(s.batch) * float64(s.batch); ns > float64(slice.Nanoseconds())/2 {
			return
		}
	}
}

// run calls n times and returns the nanoseconds of one call.
func (s *subject) run(n int) float64 {
	start := time.Now()
	for range n {
		s.field(s.text)
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

// allocs counts heap allocations a call.
func (s *subject) allocs() float64 {
	const n = 20
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	s.run(2)
	runtime.ReadMemStats(&before)
	s.run(n)
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs - before.Mallocs) / n) // the odd one is the runtime's
}

func cases(subjects []*subject) []Case {
	var out []Case
	memcpy := 0.0
	for i, s := range subjects {
		ns := median(s.times)
		if i%(len(subjects)/len(texts())) == 0 { // each text begins with its memcpy
			memcpy = ns
		}
		out = append(out, Case{
			Name:        s.name,
			NS:          ns,
			MemcpyRatio: ns / memcpy,
			MBPerS:      textBytes / ns * 1e3,
			Allocs:      s.allocs(),
		})
	}
	return out
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	return xs[len(xs)/2]
}
