// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func compile(t testing.TB, profile scrub.Profile) *scrub.Scrubber {
	t.Helper()
	s, err := scrub.Compile(scrub.Policy{Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEditRows: what comes out of each input, and what the error says.
func TestEditRows(t *testing.T) {
	for _, c := range []struct {
		name, in, want, err string
		profile             scrub.Profile
	}{
		{"nothing", "", "", "", scrub.Faithful},
		{"order and spelling", `{"id":"\u0061", "text":"a\u200bb" ,"n":1.50e+1}`, `{"id":"\u0061", "text":"ab" ,"n":1.50e+1}` + "\n", "", scrub.Faithful},
		{"carriage return, empty line, no line feed", "{\"text\":\"a\"}\r\n\n{\"text\":\"b\"}", "{\"text\":\"a\"}\n\n{\"text\":\"b\"}\n", "", scrub.Faithful},
		{"half a character", `{"text":"a\ud800b"}`, `{"text":"a\ufffdb"}` + "\n", "", scrub.Faithful},
		{"no text", "{}\n{\"text\":\"b\"}\n", "{\"error\":\"row 1: the row has no member \\\"text\\\"\"}\n{\"text\":\"b\"}\n",
			`v: 1 of 2 rows could not be done: its answer has the member "error"`, scrub.Faithful},
		{"not an object", "[1]\n", "{\"error\":\"row 1: not an object\",\"row\":\"[1]\"}\n", `v: 1 of 1 row could not be done: its answer has the member "error"`, scrub.Faithful},
		{"hidden text that is not JSON", "\x00\u202e<|" + "im_start|>\n", "", "v: 1 of 1 row", scrub.Faithful},
		{"refused", `{"text":"a\u202eb"}` + "\n", "{\"text\":null,\"error\":\"row 1: scrub: refused: suspicious-unicode, the first at byte 1\"}\n", "v: 1 of 1 row", scrub.Surface},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			err := EditRows(&out, strings.NewReader(c.in), RowOptions{Key: "text", Verb: "v", Done: "done"}, CleanRows(compile(t, c.profile)))
			if c.want != "" && out.String() != c.want || strings.ContainsAny(out.String(), "\x00\u202e") || strings.Contains(out.String(), "im_start") {
				t.Errorf("%q, want %q", out.String(), c.want)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)) {
				t.Errorf("error %v, want %s", err, c.err)
			}
		})
	}
}

// TestEditRowsLong: of a row that is too long, the beginning comes out, and those after it are read.
func TestEditRowsLong(t *testing.T) {
	in := io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("x"), MaxInput+1)), strings.NewReader("\n{\"text\":\"z\"}\n"))
	var out bytes.Buffer
	err := EditRows(&out, in, RowOptions{Key: "text", Verb: "v", Done: "done"}, CleanRows(compile(t, scrub.Faithful)))
	if err == nil || !strings.HasPrefix(out.String(), `{"error":"row 1: longer than 32 MiB"`) || !strings.HasSuffix(out.String(), "\n{\"text\":\"z\"}\n") {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}

// broken fails after n bytes.
type broken struct{ n int }

func (b *broken) Write(p []byte) (int, error) {
	if b.n -= len(p); b.n < 0 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

func (b *broken) Read([]byte) (int, error) { return 0, errors.New("torn") }

func TestEditRowsFails(t *testing.T) {
	rows := strings.Repeat("{\"text\":\"a\"}\n", 3)
	o := RowOptions{Key: "text", Verb: "v", Done: "done"}
	if err := EditRows(&broken{5}, strings.NewReader(rows), o, CleanRows(compile(t, scrub.Faithful))); err == nil || err.Error() != "v: write: full" {
		t.Errorf("writing: %v", err)
	}
	if err := EditRows(io.Discard, &broken{}, o, CleanRows(compile(t, scrub.Faithful))); err == nil || err.Error() != "v: read standard input: torn" {
		t.Errorf("reading: %v", err)
	}
	o.File = "absent/absent.jsonl"
	if err := EditRows(io.Discard, nil, o, nil); err == nil || !strings.HasPrefix(err.Error(), `v: open "absent/absent.jsonl": `) {
		t.Errorf("opening: %v", err)
	}
}

// FuzzEditRows: whatever comes in, every row comes out as one line, an object or an empty
// line, without a hidden character of a row that was not read.
func FuzzEditRows(f *testing.F) {
	f.Add([]byte("{\"text\":\"a\\u200bb\"}\n\n[1]\n{\"text\":\"x\",\"text\":\"y\"}"), false)
	f.Add([]byte("\x00\xff\u202e<|"+"im_start|>\n{\"text\":\"\\ud800\"}\r\n"), true)
	f.Fuzz(func(t *testing.T, in []byte, refuse bool) {
		profile := scrub.Faithful
		if refuse {
			profile = scrub.Surface
		}
		var out bytes.Buffer
		EditRows(&out, bytes.NewReader(in), RowOptions{Key: "text"}, CleanRows(compile(t, profile)))
		want := bytes.Count(in, []byte("\n"))
		if len(in) > 0 && in[len(in)-1] != '\n' {
			want++
		}
		if got := bytes.Count(out.Bytes(), []byte("\n")); got != want {
			t.Fatalf("%d lines of %d", got, want)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			var doc strictjson.Doc
			if err := doc.Reset(line, strictjson.Limits{MendSurrogates: true}); err != nil || doc.Root().Kind() != '{' {
				t.Fatalf("%q: %v", line, err)
			}
		}
	})
}

// TestNewCleaned: everything that was found stands in the report, and lists are never null.
func TestNewCleaned(t *testing.T) {
	s := compile(t, scrub.Faithful)
	var r scrub.Result
	report := func(text string) string {
		s.Scrub(text, &r)
		var b strings.Builder
		if err := WriteJSON(&b, NewCleaned(s, text, &r)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := report("plain"); !strings.Contains(got, `"text":"plain","changed":false,"profile":"faithful"`) || !strings.HasSuffix(got, `"control_tokens":0,"events":[],"flags":[],"hidden":[]}`+"\n") {
		t.Error(got)
	}
	got := report("a" + tagged("do it") + "b")
	for _, want := range []string{`"text":"ab","changed":true`, `"events":[{"class":"hidden-tag","start":1,"end":21,"out":1,"out_end":1}`, `"hidden":[{"kind":"tag characters","start":1,"end":21,"message":"do it"}]`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing: %s", want, got)
		}
	}
}
