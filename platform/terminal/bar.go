// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A Bar is a Progress of a whole: the share that is done, what its owner says of it, and how
// long the rest will take. The nil Bar does nothing.
type Bar struct {
	line  Progress
	total int64
	begun time.Time
	stop  chan struct{}
	end   sync.Once
	work  sync.WaitGroup

	mu   sync.Mutex
	n    int64
	what string
}

// longest is the most that a Bar says of the time that is left.
const longest = 1000 * time.Hour

// redraw is how often a Bar is written.
const redraw = 200 * time.Millisecond

// NewBar writes on stderr until Done. It returns nil where stderr is no terminal, or a dumb
// one. total is the length of the whole in whatever unit, 0 if it is not known.
func NewBar(stderr io.Writer, getenv func(string) string, name string, total int64) *Bar {
	if !isObeying(stderr) || getenv("TERM") == "dumb" {
		return nil
	}
	return newBar(stderr, name, total)
}

func newBar(w io.Writer, name string, total int64) *Bar {
	b := &Bar{line: Progress{w: w, prefix: name + "  "}, total: total, begun: time.Now(), stop: make(chan struct{})}
	b.work.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			b.line.Say(b.text(time.Now()))
			select {
			case <-tick.C:
			case <-b.stop:
				return
			}
		}
	})
	return b
}

// text is what the line says at a point in time.
func (b *Bar) text(now time.Time) string {
	b.mu.Lock()
	n, what := min(b.n, b.total), b.what
	b.mu.Unlock()
	if n <= 0 {
		return what
	}
	left := time.Duration(min(float64(now.Sub(b.begun))*float64(b.total-n)/float64(n), float64(longest)))
	return fmt.Sprintf("%.0f %%  %s  %s left", 100*float64(n)/float64(b.total), what, left.Round(time.Second))
}

// At says how much of the whole is done, and what stands beside the share.
func (b *Bar) At(n int64, what string) {
	if b != nil {
		b.mu.Lock()
		b.n, b.what = n, what
		b.mu.Unlock()
	}
}

// Done takes the line away.
func (b *Bar) Done() {
	if b != nil {
		b.end.Do(func() { close(b.stop) })
		b.work.Wait()
		b.line.Done()
	}
}
