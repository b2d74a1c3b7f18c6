// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const label = `{"act":"repaired","id":"0123"}`

// labelOf is the label in an answer or in the data of an event; "": there is none.
func labelOf(root strictjson.Value) string {
	for _, v := range []strictjson.Value{root, root.Get("response"), root.Get("message")} {
		if l := v.Get(format.LabelMember); l.Exists() {
			return string(l.Raw())
		}
	}
	return ""
}

// TestLabelled: an answer with a label is the same answer, and so is a stream with one in its
// first and last event.
func TestLabelled(t *testing.T) {
	for _, f := range forms {
		body := []byte(bodies[f.Name()])
		root := format.Parse(format.AppendLabelled(nil, format.Parse(body), []byte(label)))
		if got := labelOf(root); got != label {
			t.Errorf("%s: label %q", f.Name(), got)
		}
		plain := f.Read(format.Parse(body))
		if got := f.Read(root); got.Odd != 0 || cmp.Diff(plain.Calls(), got.Calls()) != "" || got.Text(format.PartText, "") != plain.Text(format.PartText, "") {
			t.Errorf("%s: %+v", f.Name(), got)
		}
		twice := format.AppendLabelled(nil, root, []byte(`{"act":"refused"}`))
		if n := bytes.Count(twice, []byte(`"pellucid":`)); n != 1 {
			t.Errorf("%s: %d labels", f.Name(), n)
		}
		for _, first := range []bool{false, true} {
			events := f.AppendEvents(nil, format.Parse(body))
			marked := format.AppendLabelledEvents(nil, f, events, []byte(label), first)
			got, odd, _ := stream(f, marked)
			if odd|got.Odd != 0 || cmp.Diff(plain.Calls(), got.Calls()) != "" || got.Text(format.PartText, "") != plain.Text(format.PartText, "") {
				t.Errorf("%s, %v: odd %d, %+v", f.Name(), first, odd|got.Odd, got)
			}
			var labels []int
			n := 0
			for _, e := range eventsOf(f, marked) {
				if len(e.Data) > 0 && e.Data[0] == '{' {
					if labelOf(format.Parse(e.Data)) == label {
						labels = append(labels, n)
					}
					n++
				}
			}
			want := []int{n - 1}
			if first && n > 1 {
				want = []int{0, n - 1}
			}
			if d := cmp.Diff(want, labels); d != "" {
				t.Errorf("%s, %v, of %d events: %s", f.Name(), first, n, d)
			}
			without := bytes.ReplaceAll(bytes.ReplaceAll(marked, []byte(`,"pellucid":`+label), nil), []byte(`"pellucid":`+label), nil)
			if !bytes.Equal(without, events) {
				t.Errorf("%s, %v: other bytes were changed", f.Name(), first)
			}
		}
	}
}

// TestLabelledStrange: what is not spelled as providers spell it stays, and nothing is lost.
func TestLabelledStrange(t *testing.T) {
	f := format.Of(format.Chat)
	for src, want := range map[string]string{
		"":                               "",
		"data: [DONE]\n\n":               "data: [DONE]\n\n",
		"data: {\n\n":                    "data: {\n\n",
		"data: {\"a\":\ndata: 1}\n\n":    "data: {\"a\":\ndata: 1}\n\n",
		": x\n\ndata: {\"a\":1}\r\n\r\n": ": x\n\ndata: {\"a\":1,\"pellucid\":" + label + "}\r\n\r\n",
		"data:{}\n\ndata: {\"a\":1}":     "data:{\"pellucid\":" + label + "}\n\ndata: {\"a\":1}",
		"data: {\"type\":\"message_start\",\"message\":null}\n\n": "data: {\"type\":\"message_start\",\"message\":null,\"pellucid\":" + label + "}\n\n",
	} {
		if got := format.AppendLabelledEvents(nil, f, []byte(src), []byte(label), true); string(got) != want {
			t.Errorf("%q: %q", src, got)
		}
	}
}

// FuzzLabelled: whatever the events are, nothing of them is lost, and a label is added at most twice.
func FuzzLabelled(f *testing.F) {
	for i, form := range forms {
		f.Add(i, form.AppendEvents(nil, format.Parse([]byte(bodies[form.Name()]))), true)
	}
	f.Add(0, []byte("data: {\"a\":\ndata: {}}\n\n"), true)
	f.Fuzz(func(t *testing.T, i int, events []byte, first bool) {
		form := forms[uint(i)%uint(len(forms))]
		got := format.AppendLabelledEvents(nil, form, events, []byte(label), first)
		if more := len(got) - len(events); more < 0 || more > 2*len(`,"pellucid":`+label) {
			if !bytes.Contains(events, []byte(`pellucid`)) {
				t.Errorf("%q: %q", events, got)
			}
		}
	})
}
