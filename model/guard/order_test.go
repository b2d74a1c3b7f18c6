// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

// TestBlockOrder: what a client puts where an index says is tested as it is put there, or
// not at all.
func TestBlockOrder(t *testing.T) {
	const (
		look  = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"get_it","input":{}}}`
		first = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"pay","input":{}}}`
		after = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"pay","input":{}}}`
		to0   = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`
		to1   = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`
		none  = `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}`
		stop0 = `{"type":"content_block_stop","index":0}`
	)
	for _, tt := range []struct {
		events  []string
		strange bool
	}{
		{[]string{first, to0, stop0, after, to1}, false},
		{[]string{look, to0, stop0, after, to1}, false},
		{[]string{first, after, to0}, true},
		{[]string{look, after, to0}, true},
		{[]string{look, to1, stop0, first}, true}, // the second block under the first one's index
		{[]string{after, to1}, true},
		{[]string{first, none}, true},
	} {
		r := newReading(format.Of(format.Messages), gate{policy: counterfactual.GuessPrivileges()})
		for _, e := range tt.events {
			r.event(eventstream.Event{Data: []byte(e), HasData: true})
		}
		if a := r.answer(); a.strange != tt.strange {
			t.Errorf("%q: %v", strings.Join(tt.events, " "), a.strange)
		}
	}
}

// TestCutText: of text that goes on as it comes only so much is kept.
func TestCutText(t *testing.T) {
	r := newReading(format.Of(format.Chat), gate{policy: counterfactual.GuessPrivileges()})
	e := eventstream.Event{Data: []byte(`{"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("a", 1<<20) + `"}}]}`), HasData: true}
	for range 20 {
		r.event(e)
	}
	if n := len(r.answer().said.Text); n != format.MaxKept {
		t.Errorf("%d bytes are kept", n)
	}
}
