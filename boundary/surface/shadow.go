// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// How says why an item of one server may be taken for another server's.
type How string

// The ways.
const (
	SameName  How = "same-name"  // both have a tool of this name
	LookAlike How = "look-alike" // … of names that a reader takes for one another
	Mentions  How = "mentions"   // a text of the one names a tool of the other
)

// A Shadow is one tool of Other that a tool or text of Server may be taken for, or
// talks about. It is for a person to judge: many honest servers have a tool "search".
type Shadow struct {
	How    How
	Server string
	Place  Place // what stands there; the item alone for a name
	Other  string
	Tool   string // of Other: third-party text
}

// maxShadows bounds what Shadows returns.
const maxShadows = 1000

// Shadows compares the tools of servers that one client will see together. Servers are
// named by the operator. At most 1,000 are returned, in order of the servers' names.
func Shadows(servers map[string]*Surface) []Shadow {
	names := slices.Sorted(maps.Keys(servers))
	out := sameNames(names, servers)
	out = append(out, mentions(names, servers)...)
	slices.SortStableFunc(out, func(a, b Shadow) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Other, b.Other), strings.Compare(a.Tool, b.Tool))
	})
	return out[:min(len(out), maxShadows)]
}

type owner struct{ server, tool string }

// sameNames reports each pair once, under the server whose name comes later.
func sameNames(names []string, servers map[string]*Surface) (out []Shadow) {
	seen := map[string][]owner{} // by look
	for _, server := range names {
		var mine []owner
		for _, it := range servers[server].items {
			if it.Kind != Tool || len(out) >= maxShadows {
				continue
			}
			me := owner{server, it.Name}
			reported := map[owner]bool{}
			for _, look := range toolLooks(it.Name) {
				for _, other := range seen[look] {
					if reported[other] || other.server == server {
						continue
					}
					reported[other] = true
					how := LookAlike
					if other.tool == it.Name {
						how = SameName
					}
					out = append(out, Shadow{how, server, Place{Key: it.Key}, other.server, other.tool})
				}
			}
			mine = append(mine, me)
		}
		for _, me := range mine {
			for _, look := range toolLooks(me.tool) {
				// Of many servers with one name it is enough to name a few.
				if len(seen[look]) < 8 {
					seen[look] = append(seen[look], me)
				}
			}
		}
	}
	return out
}

// toolLooks are the readings of a tool's name, without what joins its words.
func toolLooks(name string) []string {
	l := looks(name)
	joints := strings.NewReplacer("_", "", "-", "", ".", "", " ", "", "/", "", ":", "")
	a, b := "i"+joints.Replace(l[0]), "l"+joints.Replace(l[1])
	return []string{a, b}
}

// mentions finds the names of other servers' tools in a server's texts.
func mentions(names []string, servers map[string]*Surface) (out []Shadow) {
	owners := map[string][]owner{}
	for _, server := range names {
		for _, it := range servers[server].items {
			if it.Kind == Tool && distinctive(it.Name) {
				owners[it.Name] = append(owners[it.Name], owner{server, it.Name})
			}
		}
	}
	for _, server := range names {
		reported := map[owner]bool{}
		for _, it := range servers[server].items {
			var doc strictjson.Doc
			if doc.Reset(it.JSON, itemLimits) != nil {
				continue
			}
			walk(doc.Root(), nil, func(v strictjson.Value, t *trail, isName bool) {
				for word := range identifiers(v.Text()) {
					for _, o := range owners[word] {
						if o.server == server || reported[o] || len(out) >= maxShadows {
							continue
						}
						if _, own := servers[server].Item(Key{Tool, word}); own {
							continue
						}
						reported[o] = true
						out = append(out, Shadow{Mentions, server, t.place(it.Key, isName), o.server, o.tool})
					}
				}
			})
		}
	}
	return out
}

// distinctive reports whether a tool's name is no ordinary word: it has several
// words in it, as read_file and readFile have.
func distinctive(name string) bool {
	if len(name) < 6 {
		return false
	}
	for i := 1; i < len(name)-1; i++ {
		if c := name[i]; c == '_' || c == '-' || 'A' <= c && c <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z' {
			return true
		}
	}
	return false
}

// identifiers yields what could be a tool's name.
func identifiers(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for start := 0; start < len(s); {
			if !identifying(s[start]) {
				start++
				continue
			}
			end := start
			for end < len(s) && identifying(s[end]) {
				end++
			}
			if !yield(strings.Trim(s[start:end], ".-")) {
				return
			}
			start = end
		}
	}
}

func identifying(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_-.", c) >= 0
}
