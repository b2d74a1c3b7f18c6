// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// normalNames are the names of the members of an object that a third party has named, as the
// profile mcp makes them.
type normalNames struct {
	object strictjson.Value
	taken  map[string]int // how many members would have the name; made where the first one changes
}

// rename gives a member the name that the profile makes of its own. It returns false where the
// member cannot have it: another one has it, nothing is left of it, or it would be a name of the
// protocol or of ours. spec: inspect/6.2
func (n *normalNames) rename(w *walker, name strictjson.Value) bool {
	own := name.Text()
	clean := w.normalName(own)
	if clean == own {
		return true
	}
	w.noteEvents()
	if n.taken == nil {
		n.taken = map[string]int{}
		for other := range n.object.Members() {
			n.taken[w.normalName(other.Text())]++
		}
	}
	if clean == "" || n.taken[clean] > 1 || clean == "_meta" || frame.IsReceipt(clean) {
		return false
	}
	w.edits.ReplaceText(name, clean)
	w.edited = true
	return true
}

// normalName is what the profile makes of a name; "" where it holds a control token.
func (w *walker) normalName(name string) string {
	w.text.Scrub(name, &w.res)
	switch {
	case w.res.Tokens > 0:
		return ""
	case !w.res.Changed():
		return name
	}
	return strings.Clone(w.res.Clean.String())
}
