// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// FuzzCassette: what is read is written as it was meant, and read again.
func FuzzCassette(f *testing.F) {
	for _, rec := range []recording{
		{path: "/chat/completions", request: []byte("{}"), status: 200, header: [][2]string{{"Content-Type", "application/json"}}, answer: []byte("{\"a\":\"\u202e\"}\n"), end: endWhole},
		{path: "/messages", request: []byte(`{"a":1}`), status: 429, answer: []byte{0xff}, end: endCut},
		{path: "/responses", request: []byte(`{}`), end: endTimeout},
		{path: "/responses", request: []byte(`{}`), end: endUnreachable},
	} {
		f.Add(rec.appendLine([]byte(first + "\n")))
	}
	f.Add([]byte(first + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var all []recording
		if err := readCassette(bytes.NewReader(src), func(r recording) { all = append(all, r) }); err != nil {
			if len(err.Error()) > 100 {
				t.Errorf("%q", err.Error())
			}
			return
		}
		out := []byte(first + "\n")
		for _, rec := range all {
			out = rec.appendLine(out)
		}
		if i := bytes.IndexFunc(out, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
			t.Errorf("%q stands raw", out[i])
		}
		var again []recording
		if err := readCassette(iotest.HalfReader(bytes.NewReader(out)), func(r recording) { again = append(again, r) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all, again, cmp.AllowUnexported(recording{}), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}
