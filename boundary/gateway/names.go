// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// memberNames are the names of the members of an object that a third party has named.
type memberNames struct {
	object strictjson.Value
	taken  map[string]int // how many members would have the name; made where the first one changes
}

// rename gives a member the name that the profile makes of its own, of which code says why it may not be
// delivered, or ok. It returns why the member must be left out, or ok: another one has that name, nothing
// is left of it, or it would be a name of the protocol or of ours. spec: inspect/6.2
func (n *memberNames) rename(w *walker, name strictjson.Value, code finding.Code) finding.Code {
	own := name.Text()
	if len(own) > maxName {
		return code
	}
	w.scrubCounted(own, w.text)
	clean := strings.Clone(withoutLayout(w.res.Clean.String()))
	if clean == own {
		return code
	}
	if code == ok {
		w.noteEvents()
	}
	delete(w.names, visibleName(own)) // it does not repeat a name that was delivered
	if n.taken == nil {
		n.taken = map[string]int{}
		for other := range n.object.Members() {
			n.taken[visibleName(w.cleanName(other.Text()))]++
		}
	}
	if clean == "" || n.taken[visibleName(clean)] > 1 || clean == "_meta" || frame.IsReceipt(clean) || w.isOdd(clean) {
		return finding.RefusedName
	}
	w.edits.ReplaceText(name, clean)
	w.edited = true
	return ok
}

// cleanName returns what the profile makes of a name, if it stands alone.
func (w *walker) cleanName(name string) string {
	if len(name) > maxName {
		return name
	}
	w.text.Scrub(name, &w.res)
	return strings.Clone(withoutLayout(w.res.Clean.String()))
}

func withoutLayout(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(layout, r) {
			return -1
		}
		return r
	}, name)
}

// visibleName returns a name without its hidden characters.
func visibleName(name string) string {
	return strings.Map(func(r rune) rune {
		if ucd.Of(r)&ucd.Hidden != 0 {
			return -1
		}
		return r
	}, name)
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
