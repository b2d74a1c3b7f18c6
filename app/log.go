// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// NewLog returns a log that writes lines to w. Of warnings and errors that repeat, the first ten are written, and
// then one a minute with the number of those left out: a full disk has a line for each call, and would fill another.
func NewLog(w io.Writer, json bool, level slog.Level) *slog.Logger {
	opt := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, opt)
	if json {
		h = slog.NewJSONHandler(w, opt)
	}
	return slog.New(&repeatLimiter{Handler: h, lines: &repeatedLines{lines: map[repeatedLine]*repeats{}}})
}

const (
	firstRepeats  = 10
	repeatEvery   = time.Minute
	maxRepeatings = 4096 // different lines that are remembered
)

// A repeatLimiter is a Handler that leaves out warnings and errors that repeat.
type repeatLimiter struct {
	slog.Handler
	server string // the attribute of that name
	lines  *repeatedLines
}

// A repeatedLine is what makes two log lines the same: an id or a count in them may differ.
type repeatedLine struct{ message, server string }

type repeatedLines struct {
	mu    sync.Mutex
	lines map[repeatedLine]*repeats
}

type repeats struct {
	written rate.Sometimes
	leftOut int64
}

func (h *repeatLimiter) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	line := repeatedLine{r.Message, h.server}
	r.Attrs(func(a slog.Attr) bool { line.server = serverOf(a, line.server); return true })
	write, leftOut := h.lines.next(line)
	if !write {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int64("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// next reports whether the line is written now, and how many of its kind were left out before it.
func (l *repeatedLines) next(line repeatedLine) (write bool, leftOut int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.lines[line]
	if x == nil {
		if len(l.lines) >= maxRepeatings {
			clear(l.lines)
		}
		x = &repeats{written: rate.Sometimes{First: firstRepeats, Interval: repeatEvery}}
		l.lines[line] = x
	}
	x.leftOut++
	x.written.Do(func() { write, leftOut, x.leftOut = true, x.leftOut-1, 0 })
	return write, leftOut
}

func serverOf(a slog.Attr, otherwise string) string {
	if a.Key == "server" {
		return a.Value.String()
	}
	return otherwise
}

func (h *repeatLimiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := &repeatLimiter{h.Handler.WithAttrs(attrs), h.server, h.lines}
	for _, a := range attrs {
		with.server = serverOf(a, with.server)
	}
	return with
}

func (h *repeatLimiter) WithGroup(name string) slog.Handler {
	return &repeatLimiter{h.Handler.WithGroup(name), h.server, h.lines}
}
