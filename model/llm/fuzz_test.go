// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// FuzzAnswer: any bytes are an answer or an error of this package; what is an
// answer is consistent.
func FuzzAnswer(f *testing.F) {
	for _, tt := range wireCases {
		f.Add(string(tt.format), tt.stream, tt.text)
	}
	f.Fuzz(func(t *testing.T, name string, stream bool, text string) {
		if format.Of(format.Name(name)) == nil {
			t.Skip()
		}
		r, err := complete(t, format.Name(name), stream, text)
		if err != nil {
			if err.Code == "" || strings.Contains(err.Error(), "\n") || len(err.Error()) > 80 {
				t.Errorf("%q", err.Error())
			}
			return
		}
		switch {
		case r.Stop == "", (r.Stop == format.StopCalls) && len(r.Calls) == 0, r.Whole() && len(r.Calls) > 0:
			t.Errorf("stop %q with %d calls", r.Stop, len(r.Calls))
		case len(r.Calls) > format.MaxCalls, len(r.Text) > len(text), !utf8.ValidString(r.Text):
			t.Error("more than was said")
		case r.Usage.Input < 0 || r.Usage.Output < 0 || r.Usage.Cached+r.Usage.CacheWrite > r.Usage.Input:
			t.Errorf("usage %+v", r.Usage)
		}
		for _, c := range r.Calls {
			if c.Problem == "" && (!format.Parse(c.Arguments).Exists() || c.Name != "get_weather" || c.ID == "") {
				t.Errorf("a call without a problem: %+v", c)
			}
		}
	})
}
