package gateway

import (
	"errors"
	"strings"
	"testing"
)

// A brokenSink cannot record the results of tools.
type brokenSink struct{}

func (s brokenSink) Record(d Decision) error {
	if d.Method == "tools/call" {
		return errors.New("no room")
	}
	return nil
}

// TestRequireEvidence: what cannot be recorded is not delivered where evidence is
// required, but for tools that the operator says are not privileged; the error is
// constant, and what is no tool's result passes.
func TestRequireEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		required, unprivileged, withheld bool
	}{
		"best effort":  {false, false, false},
		"required":     {true, false, true},
		"unprivileged": {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(cfg *Config) {
				cfg.Sink, cfg.RequireEvidence = brokenSink{}, c.required
				cfg.Tools = func(string) *Rule { return &Rule{Unprivileged: c.unprivileged} }
			})
			got := r.result(r.request("1", "tools/call", `{"name":"read"}`), `{"content":[{"type":"text","text":"MARKER"}]}`)
			if delivered := strings.Contains(string(got["result"]), "MARKER"); delivered == c.withheld {
				t.Errorf("delivered: %v: %s", delivered, got)
			}
			if want := string(errUnrecorded.raw(nil)); c.withheld && string(got["error"]) != want {
				t.Errorf("error %s, want %s", got["error"], want)
			}
		})
	}
}
