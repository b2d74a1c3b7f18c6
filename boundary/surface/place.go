// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Place is a string somewhere in a surface: a value or the name of a member.
type Place struct {
	Key Key // of the item it stands in

	// Pointer leads from the item, or from the page, to the value: a JSON pointer in
	// which only names of the protocol and of JSON Schema are spelled; any other is
	// written #n, its ordinal from 0. It holds nothing of a third party's.
	Pointer string
	// Path is the same for a person: names stand as they are where they are plain, and
	// else as finding.Quote writes them.
	Path string
	// Name says that it is the last name itself, not the value below it.
	Name bool
	// Within is "" or what the text was decoded from: "data URI".
	Within string
}

// known are the names that a Pointer spells.
var known = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`
		tools prompts resources resourceTemplates nextCursor instructions serverInfo capabilities protocolVersion
		name title version description websiteUrl icons src mimeType sizes theme
		inputSchema outputSchema annotations execution arguments uri uriTemplate _meta
		readOnlyHint destructiveHint idempotentHint openWorldHint audience priority lastModified
		type properties items required enum const default examples additionalProperties pattern format
		anyOf allOf oneOf not if then else $ref $defs definitions $schema $id $comment
		prefixItems contains patternProperties propertyNames dependentSchemas dependentRequired`) {
		all[name] = true
	}
	return all
}()

// A trail is the way to a value, newest step first. It lives on the stack of
// whoever walks and is spelled out only where something is found.
type trail struct {
	up    *trail
	name  strictjson.Value // zero: an element
	index int              // of the member or element
}

func (t *trail) place(key Key, isName bool) Place {
	var pointer, path []string
	for ; t != nil; t = t.up {
		ordinal := strconv.Itoa(t.index)
		if !t.name.Exists() {
			pointer, path = append(pointer, ordinal), append(path, ordinal)
			continue
		}
		name := t.name.Text()
		path = append(path, shownName(name))
		if known[name] {
			pointer = append(pointer, name)
		} else {
			pointer = append(pointer, "#"+ordinal)
		}
	}
	return Place{Key: key, Pointer: joinReversed(pointer), Path: joinReversed(path), Name: isName}
}

func joinReversed(parts []string) string {
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(parts[i])
	}
	return b.String()
}

// DiffCommand returns the command that shows what waits of a server, by the name called or else by its identity; where a
// single item is given, what waits of that one. Names that a shell would not take as they are do not stand in it. flag
// follows.
func DiffCommand(called, identity, flag string, items ...Key) string {
	isWord := func(s string) bool { return plainName(s) && !strings.Contains(s, "$") }
	run := "pellucid pins diff"
	switch {
	case isWord(called):
		run += " " + called
	case identity != "":
		run += " " + identity
	default:
		return run + flag
	}
	if len(items) == 1 && isWord(items[0].Name) {
		run += " " + items[0].Kind.String() + "/" + items[0].Name
	}
	return run + flag
}

// shownName is a name as a person may see it.
func shownName(name string) string {
	if plainName(name) {
		return name
	}
	return finding.Quote(name)
}

func plainName(s string) bool {
	if s == "" || len(s) > finding.QuoteLimit {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_-.$@", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// String is for a person: the item and the path within it.
func (p Place) String() string {
	s := p.Key.String() + " " + p.Path
	if p.Name {
		s += " (the name itself)"
	}
	if p.Within != "" {
		s += " (in a " + p.Within + ")"
	}
	return s
}

// String is for a person: a name that is not plain is quoted.
func (k Key) String() string {
	if k.Kind == Server {
		return k.Kind.String()
	}
	return k.Kind.String() + " " + shownName(k.Name)
}

// A visitor sees every string of a value.
type visitor func(v strictjson.Value, t *trail, isName bool)

// walk calls visit for every name and every string below v, in the order of the text.
func walk(v strictjson.Value, t *trail, visit visitor) {
	switch v.Kind() {
	case '"':
		visit(v, t, false)
	case '[':
		i := 0
		for e := range v.Elements() {
			walk(e, &trail{up: t, index: i}, visit)
			i++
		}
	case '{':
		i := 0
		for name, val := range v.Members() {
			at := trail{t, name, i}
			visit(name, &at, true)
			walk(val, &at, visit)
			i++
		}
	}
}
