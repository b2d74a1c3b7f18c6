// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"log/slog"
	"sync"
	"time"
)

// quiet logs events that a hostile peer can cause as often as it likes. It writes a few lines a
// second, and says how many it left out.
type quiet struct {
	log     *slog.Logger
	mu      sync.Mutex
	since   time.Time
	n       int
	skipped int
}

const linesPerSecond = 10

func (q *quiet) warn(msg string, args ...any) {
	shown, missed := q.admit(time.Now())
	if missed > 0 {
		q.log.Warn("similar log lines were left out", "lines", missed)
	}
	if shown {
		q.log.Warn(msg, args...)
	}
}

// admit reports whether a line may be shown, and how many lines were left out since the last
// report of them.
func (q *quiet) admit(now time.Time) (shown bool, missed int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.since) >= time.Second {
		missed = q.skipped
		q.since, q.n, q.skipped = now, 0, 0
	}
	if q.n++; q.n > linesPerSecond {
		q.skipped++
		return false, missed
	}
	return true, missed
}
