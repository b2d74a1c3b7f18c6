// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/hex"
	"errors"
	"strings"
	"sync"
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
	t.Parallel()
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
			if !c.withheld {
				return
			}
			evidence := got.text("error", "data", "evidence")
			var id ID
			_, err := hex.Decode(id[:], []byte(evidence))
			if want := string(errUnrecorded.raw(&id)); err != nil || string(got["error"]) != want {
				t.Errorf("error %s, want %s", got["error"], want)
			}
			if !strings.Contains(r.log.String(), evidence) {
				t.Errorf("the log does not name %s: %s", evidence, r.log)
			}
		})
	}
}

// A slowSink takes its time over the results of tools, until it is told to go on.
type slowSink struct{ begun, goOn chan struct{} }

func (s slowSink) Record(d Decision) error {
	if d.Kind == "result" && d.Method == "tools/call" {
		s.begun <- struct{}{}
		<-s.goOn
	}
	return nil
}

// TestSlowSink: while the record of one answer is being written, a call that a rule
// denies has its answer, and its record.
func TestSlowSink(t *testing.T) {
	t.Parallel()
	s := slowSink{begun: make(chan struct{}), goOn: make(chan struct{})}
	release := sync.OnceFunc(func() { close(s.goOn) })
	defer release()
	r := newRig(t, func(cfg *Config) {
		cfg.Sink = s
		cfg.Tools = func(tool string) *Rule { return &Rule{Denied: tool == "look"} }
	})
	id := r.request("1", "tools/call", `{"name":"read"}`)
	r.server.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[]}}`)
	<-s.begun
	r.client.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"look"}}`)
	if got := parse(t, r.client.next()); string(got["id"]) != "2" || string(got.at("result", "isError")) != "true" {
		t.Errorf("the second call was answered with %s", got)
	}
	if log := r.log.String(); !strings.Contains(log, "a request of the client was refused: the configuration denies it") || strings.Contains(log, "server's message refused") {
		t.Errorf("the log says %s", log)
	}
	release()
	if got := parse(t, r.client.next()); string(got["id"]) != "1" || got["result"] == nil {
		t.Errorf("the first call was answered with %s", got)
	}
}
