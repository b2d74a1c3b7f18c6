// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A toldView says what a decision has done. It is shown once, to the person who decided.
type toldView struct {
	To       Own // "deny", "release"
	Done     Own // "": nothing
	Proposed Own
	Second2  Own
	Sealed2  Own
	Others   Own
	Rest     bool // the rest is not decided yet
	Refused  bool // nothing was decided, because
	First    bool // another reviewer was first
	Second   bool // a second person is needed
	Sealed   bool // it is encrypted
	Granted  bool // an exception
	Waits    bool // for a second person
	Until    Own
}

func toldOf(to hold.State, d *hold.Decided) toldView {
	t := toldView{To: "deny"}
	if to == hold.Released {
		t.To = "release"
	}
	for _, x := range []struct {
		n    int
		word *Own
	}{{d.Done, &t.Done}, {d.Proposed, &t.Proposed}, {d.Second, &t.Second2}, {d.Sealed, &t.Sealed2}, {d.Others, &t.Others}} {
		if x.n > 0 {
			*x.word = things(x.n, "item")
		}
	}
	return t
}

// tellings are what is to be said to persons on their next page. The address has a random name, so that no link
// can make the page say what was not done.
type tellings struct {
	mu   sync.Mutex
	list []telling
}

type telling struct {
	name, person string
	view         toldView
}

// maxTellings bounds them: the oldest are left out.
const maxTellings = 256

func (t *tellings) put(person string, v toldView) string {
	name := hold.NewID()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.list = append(t.list, telling{name, person, v}); len(t.list) > maxTellings {
		t.list = slices.Delete(t.list, 0, 1)
	}
	return name
}

// take returns what is to be said under the name; nil: nothing.
func (t *tellings) take(name, person string) *toldView {
	if name == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.list, func(x telling) bool { return x.name == name && x.person == person })
	if i < 0 {
		return nil
	}
	v := t.list[i].view
	t.list = slices.Delete(t.list, i, i+1)
	return &v
}

// row is a line of the queue: the newest item of a group, or an item.
func (s *queueQuery) row(it *hold.Item, key string, now time.Time) reviewRow {
	list := s.values()
	r := reviewRow{Key: marked.Spelled(key), Picked: slices.Contains(s.sel, key), To: pathTo("review/"+segment(it.ID), "list", list.Encode()),
		Server: marked.Identifier(it.Server), Tool: nameOf(it.Tool), Who: nameOf(it.Principal), Size: size(int64(it.Bytes))}
	if it.State == hold.Held || it.State == hold.Released {
		r.Left = lasts(it.Until.Sub(now)) + " left"
	}
	for _, c := range it.Found.Counts() {
		if len(r.Codes) < 4 && c.Code != it.Code {
			r.Codes = append(r.Codes, codeName(c.Code))
		}
	}
	r.Codes = append([]Own{codeName(it.Code)}, r.Codes...)
	switch {
	case it.Hidden != "":
		said := marked.Of(firstLine(it.Hidden))
		r.Said = &said
	case it.IsCall():
		r.Note = "A call that waits before it is carried out."
	case it.Body == nil && it.Hidden == "" && it.State != hold.Held && it.State != hold.Released:
		r.Note = "Its content is gone."
	default:
		r.Note = "No hidden message was decoded. The item shows the text."
	}
	most := 1
	var spans []hold.Span
	for _, f := range it.Found.Findings {
		for _, sp := range f.Spans {
			spans, most = append(spans, sp), max(most, sp.End)
		}
	}
	for _, sp := range spans[:min(len(spans), 40)] {
		r.Ribbon.Marks = append(r.Ribbon.Marks, ribbonAt(sp.Start, sp.End, max(most, min(it.Bytes, 2*most)), "f-light"))
	}
	for _, ask := range []struct {
		verb string
		to   *Path
	}{{"deny", &r.Deny}, {"release", &r.Release}} {
		v := url.Values{}
		for name, values := range list {
			v[name] = values
		}
		v.Set("ask", ask.verb)
		v.Set("sel", key)
		*ask.to = queuePath("review", v)
	}
	return r
}

func firstLine(s string) string {
	for i := range len(s) {
		if s[i] == '\n' || i >= 280 {
			return s[:i]
		}
	}
	return s
}

// ribbonOf marks where edits are in a text.
func ribbonOf(edits []scrub.Edit, n int) (r ribbonView) {
	for _, e := range edits[:min(len(edits), 100)] {
		class := Own("f-denied")
		if e.OutEnd > e.Out {
			class = "f-changed"
		} else if len(e.Class.Code()) > 7 && e.Class.Code()[:7] == "hidden-" {
			class = "f-light"
		}
		r.Marks = append(r.Marks, ribbonAt(e.Start, e.End, n, class))
	}
	return r
}
