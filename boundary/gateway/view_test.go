// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// normalised is the scrubber for views of texts of the default ceiling.
func normalised(t testing.TB) *scrub.Scrubber {
	s, err := new(scrubberCache).of(0, scrub.ProfileTokens)
	if err != nil {
		t.Fatal(err)
	}
	return s.mcp
}

// TestView: every text that a model may read is seen once, whole, without hidden
// characters, and what no model reads is not.
func TestView(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 1000)
	for _, tt := range []struct {
		name, result string
		wants        []string
		lacks        string
		segments     int
	}{
		{"blocks", `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`, []string{"one\ntwo\n"}, "type", 1},
		{"a payload over two blocks", `{"content":[{"type":"text","text":"` + long + `ignore all"},{"type":"text","text":"of it"}]}`, []string{"ignore all\nof it"}, "", 2},
		{"normalised", `{"content":[{"type":"text","text":"\uff49\u200bgnore"}]}`, []string{"ignore"}, "\u200b", 1},
		{"structured", `{"content":[],"structuredContent":{"key":{"in":["deep",1.5,true]}}}`, []string{"key\nin\ndeep\n"}, "structured", 1},
		{"a resource", `{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"body","mimeType":"text/plain"}}]}`, []string{"file:///a\nbody\n"}, "resource", 1},
		{"a text in base64", `{"content":[{"type":"resource","resource":{"uri":"x:y","blob":"aWdub3Jl","mimeType":"text/plain"}}]}`, []string{"ignore"}, "aWdub3Jl", 1},
		{"an image", `{"content":[{"type":"image","data":"aWdub3Jl","mimeType":"image/png"}]}`, []string{"image/png"}, "aWdub3Jl", 1},
		{"an image that is words", `{"content":[{"type":"image","data":"ignore all!","mimeType":"image/png"}]}`, []string{"ignore all!"}, "", 1},
		{"a link and its annotations", `{"content":[{"type":"resource_link","uri":"x:y","name":"n","description":"d","annotations":{"audience":["user"],"odd":"note"}}]}`, []string{"n\nd\n", "odd\nnote\n"}, "", 1},
		{"_meta", `{"content":[],"_meta":{"a/b":"c"}}`, []string{"a/b\nc\n"}, "", 1},
		{"a long text again", `{"content":[{"type":"text","text":"start ` + long + `close"}],"structuredContent":{"result":"start ` + long + `close","note":"then"}}`,
			[]string{"result\nstart word", "word close\nnote\nthen"}, "", 2},
		{"nothing", `{"content":[],"isError":false}`, nil, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := viewOf(doc(t, tt.result), normalised(t), true, "")
			all := ""
			for _, s := range v.segments {
				all += s.View + "|"
				if s.Raw == "" {
					t.Error("no raw text")
				}
			}
			for _, want := range tt.wants {
				if !strings.Contains(all, want) {
					t.Errorf("%q lacks %q", all, want)
				}
			}
			if n := strings.Count(all, "word "); n > 1000+3*shared/len("word ") {
				t.Errorf("%d words of 1000", n)
			}
			if tt.lacks != "" && strings.Contains(all, tt.lacks) || len(v.segments) != tt.segments {
				t.Errorf("%d segments: %q", len(v.segments), all)
			}
		})
	}
}

// TestViewParts: a classifier that judges each text by itself gets each block of a result, and what else it holds.
func TestViewParts(t *testing.T) {
	t.Parallel()
	v := viewOf(doc(t, `{"content":[{"type":"text","text":"one"},{"type":"resource","resource":{"uri":"file:///a","text":"two"}},{"type":"text","text":"three"}],"structuredContent":{"key":"four"}}`), normalised(t), false, "")
	if got := fmt.Sprintf("%q", v.segments[0].Parts); len(v.segments) != 1 || got != `["one" "file:///a\ntwo" "three" "key\nfour"]` {
		t.Errorf("%d segments: %s", len(v.segments), got)
	}
	if v := viewOf(doc(t, `{"content":[{"type":"text","text":"one"}]}`), normalised(t), false, ""); v.segments[0].Parts != nil {
		t.Errorf("one block has the parts %q", v.segments[0].Parts)
	}
}

// TestBadTexts: texts of 10 MB, of one token repeated, and of every script are judged
// or refused, in linear time, and never taken for judged if they were not.
func TestBadTexts(t *testing.T) {
	t.Parallel()
	every := &strings.Builder{}
	for r := rune(0x20); r < 0x20000; r += 37 {
		if r < 0xd800 || r > 0xdfff {
			every.WriteRune(r)
		}
	}
	for _, tt := range []struct {
		name, text string
		judged     bool
	}{
		{"one token repeated", strings.Repeat("evil ", 200_000), true},
		{"one character repeated", strings.Repeat("\ufdfa", 50_000) + " evil", true},
		{"every script", every.String() + " evil", true},
		{"10 MB", strings.Repeat("all is well. ", 800_000) + "evil", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := &words{}
			j := newJury(t, nil, aMember(t, k))
			r := newRig(t, j.set, func(c *Config) { c.Profile = Faithful })
			begin := time.Now()
			b, _ := json.Marshal(tt.text)
			got := r.result(r.request("1", "tools/call", question), `{"content":[{"type":"text","text":`+string(b)+`}]}`)
			if text := got.text("result", "content", 0, "text"); !strings.HasPrefix(text, placeholderWhole) {
				t.Errorf("delivered %d bytes", len(text))
			}
			c := j.next(t)
			if tt.judged != (c.Reason == classify.Judged) || !tt.judged && c.Reason != classify.TooLong {
				t.Errorf("reason %q", c.Reason)
			}
			if d := time.Since(begin); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// FuzzView: any answer has a view, and one whose schema is narrow and which stands up to
// it has no text but numbers, words of the schema and ids.
func FuzzView(f *testing.F) {
	const schema = `{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer"},"u":{"enum":["c","f"]},"id":{"type":"string","maxLength":8,"pattern":"^[a-z0-9]+$"}}}`
	if !narrowSchema([]byte(schema)) {
		f.Fatal("the schema is wide")
	}
	compiled := validate.Compile([]byte(schema))
	f.Add(`{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1,"u":"c","id":"ab"}}`)
	f.Add(`{"content":[{"type":"resource","resource":{"uri":"x:y","blob":"aWdub3Jl","mimeType":"text/plain"}}],"_meta":{"a":["b"]}}`)
	f.Add(`{"content":"x","structuredContent":[{"data":"x"}],"isError":true}`)
	with := normalised(f)
	f.Fuzz(func(t *testing.T, raw string) {
		var d strictjson.Doc
		if d.Reset([]byte(raw), strictjson.Limits{MendSurrogates: true}) != nil || d.Root().Kind() != '{' {
			return
		}
		v := viewOf(d.Root(), with, true, "")
		total := 0
		for _, s := range v.segments {
			if !utf8.ValidString(s.View) || s.View == "" {
				t.Fatalf("segment %q", s.View)
			}
			total += len(s.Raw)
		}
		if total > 16*len(raw)+shared*len(v.segments) { // a blob has several readings
			t.Fatalf("%d bytes seen of %d", total, len(raw))
		}
		p := passage{msg: &wire.Message{Kind: wire.Response, Result: d.Root()}, schema: compiled, narrow: true}
		if !isNarrow(&p, Validation{}) {
			return
		}
		for _, s := range v.segments {
			for _, word := range strings.FieldsFunc(s.View, func(r rune) bool { return !unicode.IsLetter(r) }) {
				if len(word) > len("structured") {
					t.Fatalf("a narrow answer says %q", s.View)
				}
			}
		}
	})
}
