// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// fencedBodies opens the fences of a result of srv/read in their order, each with the labels of
// the one before. What is not in a fence stays as it is.
func fencedBodies(t *testing.T, r *rig, content json.RawMessage) (texts []string, notices int) {
	t.Helper()
	var blocks []struct {
		Text     string
		Resource struct{ Text string }
	}
	if err := json.Unmarshal(content, &blocks); err != nil {
		t.Fatal(err)
	}
	var first frame.Origin
	for _, b := range blocks {
		text := b.Text + b.Resource.Text
		notices += strings.Count(text, frame.Notice)
		if o, body, err := r.key.Open(text, first); err == nil {
			text, first = "framed "+body, o
		}
		texts = append(texts, strings.TrimSpace(text[:min(len(text), 25)]))
	}
	return texts, notices
}

// TestNotice: the first framed text of a result as it is delivered has the notice and the
// labels, also where the block that had them is not delivered.
func TestNotice(t *testing.T) {
	t.Parallel()
	const text, bad = `{"type":"text","text":"%s"}`, `{"type":"resource","resource":{"text":"bad","uri":"\u200b"}}`
	const link, gone = `{"type":"resource_link","uri":"a:b","name":"a"}`, "[pellucid withheld this c"
	block := func(s string) string { return fmt.Sprintf(text, s) }
	for name, c := range map[string]struct{ blocks, want []string }{
		"one":                    {[]string{block("a")}, []string{"framed a"}},
		"several":                {[]string{block("a"), block("b"), block("")}, []string{"framed a", "framed b", "framed"}},
		"the first is no text":   {[]string{link, block("a"), block("b")}, []string{"", "framed a", "framed b"}},
		"an empty first":         {[]string{block(""), block("a")}, []string{"framed", "framed a"}},
		"a resource":             {[]string{`{"type":"resource","resource":{"uri":"a:b","text":"a"}}`, block("b")}, []string{"framed a", "framed b"}},
		"the first is withheld":  {[]string{bad, block("a"), block("b")}, []string{gone, "framed a", "framed b"}},
		"the second is withheld": {[]string{block("a"), bad, block("b")}, []string{"framed a", gone, "framed b"}},
		"a split token":          {[]string{block("<|im_"), block("start|>"), block(""), block("a")}, []string{gone, gone, "framed", "framed a"}},
		"only a split token":     {[]string{block("<|im_"), block("start|>")}, []string{gone, gone}},
		"a look-alike":           {[]string{block("<pellucid-0>"), block("<pellucid-0>")}, []string{"framed &lt;pellucid-0>", "framed &lt;pellucid-0>"}},
	} {
		r := newRig(t)
		got := r.result(r.request("1", "tools/call", eras["legacy"]), `{"content":[`+strings.Join(c.blocks, ",")+`]}`)
		texts, notices := fencedBodies(t, r, got.at("result", "content"))
		wanted := min(1, strings.Count(strings.Join(c.want, " "), "framed"))
		if strings.Join(texts, "|") != strings.Join(c.want, "|") || notices != wanted {
			t.Errorf("%s: %q with %d notices, want %q", name, texts, notices, c.want)
		}
	}
}

// TestNoticeOfManyPieces: the block with the notice is given up after texts of it were settled.
func TestNoticeOfManyPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	blocks := []string{`{"type":"text","text":"<|im_"}`, `{"type":"text","text":"start|>"}`}
	for range 3 * maxPieces {
		blocks = append(blocks, `{"type":"text","text":"`+strings.Repeat("a", 100)+`"}`)
	}
	got := r.result(r.request("1", "tools/call", eras["legacy"]), `{"content":[`+strings.Join(blocks, ",")+`]}`)
	texts, notices := fencedBodies(t, r, got.at("result", "content"))
	if notices != 1 || len(texts) != len(blocks) || !strings.HasPrefix(texts[2], "framed a") || !strings.HasPrefix(texts[len(texts)-1], "framed a") {
		t.Errorf("%d notices, %d texts, %.200q", notices, len(texts), texts)
	}
}

// TestGrowthOfBlocks: many short blocks arrive whole, and a result becomes at most three times as
// long from 100 blocks on.
func TestGrowthOfBlocks(t *testing.T) {
	key, err := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInspector(Config{Name: "srv", Key: key, Sink: NewLines(discard{})})
	if err != nil {
		t.Fatal(err)
	}
	for _, blocks := range []int{1, 100, 500, 1000, 2000} {
		block := `{"type":"text","text":"` + strings.Repeat("abcdefgh", 5) + `"},`
		raw := []byte(`{"content":[` + strings.TrimSuffix(strings.Repeat(block, blocks), ",") + `]}`)
		out, _, err := in.Inspect(t.Context(), ToolResult{Server: "srv", Tool: "read", Raw: raw})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Content []struct{ Text string }
			Meta    map[string]map[string]json.RawMessage `json:"_meta"`
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Content) != blocks {
			t.Errorf("%d of %d blocks arrive", len(got.Content), blocks)
		}
		first := frame.Origin{}
		for _, c := range got.Content {
			o, body, err := key.Open(c.Text, first)
			if first = o; err != nil || len(body) != 40 {
				t.Fatalf("%d blocks: %v: %s", blocks, err, c.Text)
			}
		}
		for name, value := range got.Meta[frame.MetaKey] {
			if s := string(value); s == "[]" || s == "{}" || s == `""` || s == "null" {
				t.Errorf("%d blocks: %s is empty", blocks, name)
			}
		}
		factor := float64(len(out)) / float64(len(raw))
		t.Logf("%d blocks: %d bytes become %d (%.2f times)", blocks, len(raw), len(out), factor)
		if blocks >= 100 && factor > 3 {
			t.Errorf("%d blocks: %.2f times", blocks, factor)
		}
	}
}

// TestLeftOutBlocks: what must go is counted in the text and in the record.
func TestLeftOutBlocks(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1046: "1,046", 1234567: "1,234,567"} {
		if got := groupThousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	r := newRig(t)
	const blocks = 100_000
	got := r.result(r.request("1", "tools/call", eras["legacy"]), `{"content":[`+strings.TrimSuffix(strings.Repeat(`{"type":"text","text":""},`, blocks), ",")+`]}`)
	texts, _ := fencedBodies(t, r, got.at("result", "content"))
	left := blocks - len(texts) + 1
	last := got.text("result", "content", len(texts)-1, "text")
	if want := fmt.Sprintf("[pellucid: %s of 100,000 blocks left out: they are too many for their length; run: pellucid explain ", groupThousands(left)); !strings.HasPrefix(last, want) {
		t.Errorf("%d left out: %s", left, last)
	}
	var note struct {
		Findings []struct {
			Code  finding.Code
			Count int
		}
	}
	if err := json.Unmarshal(got.at("result", "_meta", frame.MetaKey), &note); err != nil || len(note.Findings) != 1 || note.Findings[0].Code != finding.TooMany || note.Findings[0].Count != left {
		t.Errorf("%v: %+v", err, note)
	}
}
