// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// memberNames are the names of the members of an object that a third party has named.
type memberNames struct {
	object strictjson.Value
	taken  map[string]int // how many members would have the name; made where the first one changes
}

// renameIfOdd gives a member a name that may be delivered, where its own may not be or is not as the
// profile makes it. It returns why the member must be left out, or ok: another one has that name, nothing
// is left of it, or it would be a name of the protocol or of ours. spec: inspect/6.2
func (n *memberNames) renameIfOdd(w *walker, name strictjson.Value) finding.Code {
	code := w.name(name)
	if code == ok && !w.normalises {
		return ok
	}
	own := name.Text()
	clean := w.cleanName(own)
	if clean == own {
		return code
	}
	if code == ok {
		w.noteEvents()
	}
	if n.taken == nil {
		n.taken = map[string]int{}
		for other := range n.object.Members() {
			n.taken[w.cleanName(other.Text())]++
		}
	}
	if clean == "" || n.taken[clean] > 1 || clean == "_meta" || frame.IsReceipt(clean) || w.isOdd(clean) {
		return finding.RefusedName
	}
	w.edits.ReplaceText(name, clean)
	w.edited = true
	return ok
}

// cleanName returns what the profile makes of a name.
func (w *walker) cleanName(name string) string {
	if len(name) > maxName {
		return name
	}
	w.text.Scrub(name, &w.res)
	clean := w.res.Clean.String()
	if strings.ContainsAny(clean, layout) {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(layout, r) {
				return -1
			}
			return r
		}, clean)
	}
	return strings.Clone(clean)
}

// isOdd reports whether a name holds what is hidden, a control token or a claim of a role.
func (w *walker) isOdd(name string) bool {
	w.strict.Scrub(name, &w.res)
	return w.isOddName(name)
}

// isOddName is isOdd where w.res is about the name.
func (w *walker) isOddName(name string) bool {
	return w.res.Changed() || strings.ContainsAny(name, layout) || w.speaks(name)
}
