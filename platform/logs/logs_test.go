// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeatedLines: a line that repeats is written ten times, then once a minute with the number of those left
// out, for each server by itself; what is information is written each time.
func TestRepeatedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := New(&out, false, slog.LevelInfo)
		for i := range 100 {
			log.Error("disk full", "server", "a", "id", i)
			log.With("server", "b").Error("disk full")
			log.Info("admitted")
		}
		for line, want := range map[string]int{"server=a": 10, "server=b": 10, "admitted": 100, "left_out": 0} {
			if got := strings.Count(out.String(), line); got != want {
				t.Errorf("%s: %d lines, want %d", line, got, want)
			}
		}
		out.Reset()
		time.Sleep(time.Minute)
		log.Error("disk full", "server", "a")
		log.Error("disk full", "server", "a")
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "left_out=90") {
			t.Errorf("a minute later: %s", got)
		}
	})
}

// TestRepeatedLinesOfOtherCauses: what repeats does not hide another cause, tool or address, and these are bounded.
func TestRepeatedLinesOfOtherCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := New(&out, false, slog.LevelInfo)
		withheld := func(tool string) {
			log.Warn("withheld", "server", "a", "tool", tool, "evidence", rand.Text(), "run", "show "+rand.Text())
		}
		for range 100 {
			withheld("noisy")
		}
		withheld("quiet")
		log.Error("not recorded", "server", "a", "error", errors.New("disk full"))
		for i := range 100 {
			log.Error("not recorded", "server", "a", "error", errors.New("disk full"), "records", i)
		}
		log.Error("not recorded", "server", "a", "error", errors.New("no such table"))
		for line, want := range map[string]int{"tool=noisy": 10, "tool=quiet": 1, "left_out=90": 1, "disk full": 10, "no such table": 1} {
			if got := strings.Count(out.String(), line); got != want {
				t.Errorf("%s: %d lines, want %d", line, got, want)
			}
		}
		out.Reset()
		for range 1000 {
			log.Warn("refused", "value", rand.Text())
		}
		if got := strings.Count(out.String(), "refused"); got != maxCauses {
			t.Errorf("%d lines of a message in a minute, want %d", got, maxCauses)
		}
	})
}

func TestRepeatedLinesAreBounded(t *testing.T) {
	l := repeatedLines{lines: map[repeatedLine]*repeats{}}
	for i := range 3 * maxRepeatings {
		l.admitLine(repeatedLine{server: strings.Repeat("x", i%7) + time.Duration(i).String()}, 0)
	}
	if len(l.lines) > maxRepeatings {
		t.Errorf("%d lines are remembered", len(l.lines))
	}
}
