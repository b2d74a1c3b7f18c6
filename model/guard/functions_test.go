// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// old is a conversation of before tools: functions, function_call and their results.
func old(stream bool, task, result string) []byte {
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	streamed := map[bool]string{true: "true", false: "false"}[stream]
	return []byte(`{"model":"m","stream":` + streamed + `,"messages":[{"role":"user","content":` + quote(task) + `},` +
		`{"role":"assistant","content":null,"function_call":{"name":"read_mail","arguments":"{}"}},` +
		`{"role":"function","name":"read_mail","content":` + quote(result) + `}],` +
		`"functions":[{"name":"send_money","parameters":{"type":"object"}},{"name":"read_mail","parameters":{"type":"object"}}]}`)
}

// TestFunctions: calls in the form of before tools are held like any other.
func TestFunctions(t *testing.T) {
	for _, stream := range []bool{false, true} {
		r := newRig(t, func(a ask) reply {
			out := obedient(a)
			if len(out.Calls) > 0 {
				out.Text = ""
			}
			return out
		})
		for _, tt := range []struct{ task, result, act, pays string }{
			{"Sum up.", attack, "repaired", ""},
			{"Please pay bob 100.", "Nothing new.", "forwarded", "bob"},
		} {
			resp := r.post(format.Chat, old(stream, tt.task, tt.result))
			b, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(err, resp.StatusCode, string(b))
			}
			s := r.sink.last(t)
			said := string(b)
			if s.Act != tt.act || strings.Contains(said, "mallory") || strings.Contains(said, "function_call\":{") != (tt.pays != "") {
				t.Errorf("%s: %+v, %s", tt.task, s, said)
			}
		}
	}
}
