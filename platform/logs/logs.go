// SPDX-License-Identifier: Apache-2.0

// Package logs makes the log of a program, which leaves out what repeats.
package logs

import (
	"context"
	"hash/maphash"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Levels are the words for the least level that is logged, the lowest first. Each is that
// slog.Level's own, in lower case.
var Levels = []string{"debug", "info", "warn", "error"}

// New returns a log that writes lines to w. Of warnings and errors that repeat, the first ten are written, and
// then one a minute with the number of those left out: a full disk has a line for each call, and would fill another.
// A line with another cause, tool or address is written once a minute, up to a hundred such of one message: a message
// that fills the log must not hide others.
func New(w io.Writer, json bool, level slog.Level) *slog.Logger {
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
	maxCauses     = 100  // lines of one message a minute that differ in more than a number or an id
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
	causes  map[uint64]struct{} // of the lines that were written since
	since   time.Time
}

var causeSeed = maphash.MakeSeed()

func (h *repeatLimiter) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	line, cause := repeatedLine{r.Message, h.server}, maphash.Hash{}
	cause.SetSeed(causeSeed)
	r.Attrs(func(a slog.Attr) bool {
		line.server = serverOf(a, line.server)
		if v := a.Value.Resolve(); isCause(a.Key) && (v.Kind() == slog.KindString || v.Kind() == slog.KindAny) {
			_, _ = cause.WriteString(a.Key + "=" + v.String() + "\n")
		}
		return true
	})
	write, leftOut := h.lines.admitLine(line, cause.Sum64())
	if !write {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int64("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// admitLine reports whether the line is written now, and how many of its kind were left out before it.
func (l *repeatedLines) admitLine(line repeatedLine, cause uint64) (write bool, leftOut int64) {
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
	if now := time.Now(); now.Sub(x.since) >= repeatEvery {
		x.since, x.causes = now, map[uint64]struct{}{}
	}
	_, known := x.causes[cause]
	further := !known && len(x.causes) < maxCauses
	if x.leftOut++; further {
		x.causes[cause] = struct{}{}
	}
	x.written.Do(func() { write = true })
	if write = write || further; write {
		leftOut, x.leftOut = x.leftOut-1, 0
	}
	return write, leftOut
}

// isCause reports whether lines that differ in this attribute say different things: an id and an excerpt differ each time.
func isCause(key string) bool {
	return key != "evidence" && key != "run" && key != "id" && key != "message" && key != "excerpt"
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
