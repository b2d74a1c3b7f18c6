// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Latency is how long a server took to answer, since this process started.
type Latency struct {
	Server   string
	Answers  int64
	P50, P99 time.Duration // half of the answers, and 99 of 100, came within that; the true value is at most a tenth less
}

// Latencies are those of each server that has answered, in the order of their names. Servers without a label of their own
// are counted together as "other".
func (m *Meter) Latencies() []Latency { return m.answers.list() }

// answers counts answers of each server by their time.
type answers struct {
	mu sync.RWMutex
	of map[string]*times
}

// The bounds of times grow by a tenth from the shortest on. What took longer than the longest is counted in the last.
const (
	shortest = 50 * time.Microsecond
	growth   = 1.1
	bounds   = 170 // the longest is 8 minutes
)

type times [bounds]atomic.Int64

// bound is the longest time that counts in a place.
func bound(place int) time.Duration {
	return time.Duration(float64(shortest) * math.Pow(growth, float64(place)))
}

func (a *answers) add(server string, took time.Duration) {
	a.mu.RLock()
	t := a.of[server]
	a.mu.RUnlock()
	if t == nil {
		a.mu.Lock()
		if a.of == nil {
			a.of = map[string]*times{}
		}
		if t = a.of[server]; t == nil {
			t = &times{}
			a.of[server] = t // labels are bounded
		}
		a.mu.Unlock()
	}
	place := 0
	if took > shortest {
		place = min(bounds-1, int(math.Ceil(math.Log(float64(took)/float64(shortest))/math.Log(growth))))
	}
	t[place].Add(1)
}

func (a *answers) list() (out []Latency) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, server := range slices.Sorted(maps.Keys(a.of)) {
		var n [bounds]int64
		l := Latency{Server: server}
		for i := range n {
			n[i] = a.of[server][i].Load()
			l.Answers += n[i]
		}
		l.P50, l.P99 = within(&n, l.Answers, 50), within(&n, l.Answers, 99)
		out = append(out, l)
	}
	return out
}

// within is the time within which so many of 100 answers came.
func within(n *[bounds]int64, all, percent int64) time.Duration {
	seen := int64(0)
	for i := range n {
		if seen += n[i]; seen > 0 && 100*seen >= percent*all {
			return bound(i)
		}
	}
	return 0
}
