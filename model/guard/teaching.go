// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"sync"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A teaching is what a request says of calls that are written as text. Some clients look for
// such calls in the text of an answer, in blocks of code as well. They have to teach the model
// how to write one; so where the operator's text holds the beginning of one, every call counts
// that is written so. Elsewhere a call that is shown as code does not count, and where the
// request offers tools, no call of another name does.
type teaching struct {
	f    format.Format
	body []byte

	once    sync.Once
	taught  bool
	offered map[string]bool
}

func (t *teaching) read() {
	t.once.Do(func() {
		var doc strictjson.Doc
		if doc.Reset(t.body, strictjson.Limits{}) != nil {
			return
		}
		t.offered = map[string]bool{}
		t.f.Places(doc.Root(), func(p format.Place) {
			switch p.Kind {
			case format.PlaceTool:
				t.offered[p.Name] = true
			case format.PlaceSystem:
				var w format.Writing
				began, _ := w.Add(p.Value.Text())
				t.taught = t.taught || began
			}
		})
	})
}

// isTaught reports whether the request teaches how to write a call.
func (t *teaching) isTaught() bool {
	if t == nil {
		return false
	}
	t.read()
	return t.taught
}

// counts reports whether a call counts that is written as text. shown: it is shown as code.
func (t *teaching) counts(name string, shown bool) bool {
	switch {
	case t.isTaught():
		return true
	case t == nil || shown:
		return !shown
	}
	return len(t.offered) == 0 || name == "" || t.offered[name]
}
