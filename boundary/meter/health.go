// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Health answers requests about whether the process is alive and ready. Anyone may send
// them, so it says which checks fail and at most a [State] why.
type Health struct {
	checks   []check
	draining atomic.Bool

	mu   sync.Mutex
	at   time.Time
	last *healthAnswer
}

type check struct {
	name  string
	run   func(context.Context) error
	warns bool // it does not decide whether requests can be served
}

// A State is the error of a check whose reason may be shown to anyone: a constant of the
// program's.
type State string

func (s State) Error() string { return string(s) }

// Times of the checks: anybody may ask, but not make us work more than so often.
const (
	checkWait = 2 * time.Second
	checkTime = 1800 * time.Millisecond // of the check itself, so that it can still say why it has failed
	checkKeep = time.Second
)

// Add adds a check of readiness. name is a constant of the program's. All checks
// are to be added before the first question.
func (h *Health) Add(name string, run func(context.Context) error) {
	h.checks = append(h.checks, check{name: name, run: run})
}

// Warn adds a check whose failure is told, and does not make the process unready. It fails only by a
// [State].
func (h *Health) Warn(name string, run func(context.Context) error) {
	h.checks = append(h.checks, check{name: name, run: run, warns: true})
}

// Drain makes Ready say no from now on, so that no new client comes.
func (h *Health) Drain() { h.draining.Store(true) }

// Live says that the process runs: {"status":"ok"}.
func (h *Health) Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeHealth(w, r, http.StatusOK, healthAnswer{Status: "ok"})
	})
}

// Ready says whether requests can be served: 200 and {"status":"ok","checks":{"store":"ok"}},
// or 503 and a status of "failing" or "draining". A check is "ok", "failing", "timeout" or
// the State that its error wraps. Warnings are those of Warn that fail.
func (h *Health) Ready() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, status := h.run(r.Context()), http.StatusOK
		for _, result := range answer.Checks {
			if result != "ok" {
				answer.Status, status = "failing", http.StatusServiceUnavailable
			}
		}
		if h.draining.Load() {
			answer.Status, status = "draining", http.StatusServiceUnavailable
		}
		writeHealth(w, r, status, answer)
	})
}

type healthAnswer struct {
	Status   string            `json:"status"`
	Checks   map[string]string `json:"checks,omitempty"`
	Warnings map[string]string `json:"warnings,omitempty"`
}

func writeHealth(w http.ResponseWriter, r *http.Request, status int, answer healthAnswer) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// run runs the checks at the same time, unless it did so just now.
func (h *Health) run(parent context.Context) healthAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil && time.Since(h.at) < checkKeep {
		return *h.last
	}
	// Whoever asked may hang up: the answer is for all who ask in this second.
	ctx, stop := context.WithTimeout(context.WithoutCancel(parent), checkWait)
	defer stop()
	within, end := context.WithTimeout(ctx, checkTime)
	defer end()
	type result struct {
		check
		state string
	}
	results := make(chan result, len(h.checks))
	out := healthAnswer{Status: "ok", Checks: make(map[string]string, len(h.checks)), Warnings: map[string]string{}}
	for _, c := range h.checks {
		if !c.warns {
			out.Checks[c.name] = "timeout"
		}
		go func() {
			state := "ok"
			if err := c.run(within); err != nil {
				state = "failing"
				if s, ok := errors.AsType[State](err); ok {
					state = string(s)
				}
			}
			results <- result{c, state}
		}()
	}
	for range h.checks {
		select {
		case r := <-results:
			if !r.warns {
				out.Checks[r.name] = r.state
			} else if r.state != "ok" {
				out.Warnings[r.name] = r.state
			}
		case <-ctx.Done():
		}
	}
	h.at, h.last = time.Now(), &out
	return out
}
