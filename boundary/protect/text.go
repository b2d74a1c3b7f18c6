// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/jsonc"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bounds of a client's file, in bytes: some clients keep their history in their JSON.
const (
	maxFile  = 32 << 20
	maxLines = 2 << 20 // of TOML and YAML
)

var limits = strictjson.Limits{Bytes: maxFile, MendSurrogates: true}

// A Syntax is the language of a client's file.
type Syntax string

// The syntaxes.
const (
	JSON Syntax = ""
	TOML Syntax = "toml"
	YAML Syntax = "yaml"
)

// A splice puts other bytes in the place of [start, end) of a text.
type splice struct {
	start, end int
	with       []byte
}

// splices applies a list, whose parts do not overlap, to src.
func splices(src []byte, list []splice) []byte {
	slices.SortStableFunc(list, func(a, b splice) int { // an insertion comes before what begins there
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	out := make([]byte, 0, len(src)+256*len(list))
	done := 0
	for _, s := range list {
		out = append(append(out, src[done:s.start]...), s.with...)
		done = s.end
	}
	return append(out, src[done:]...)
}

// shift returns list for a text that begins at from.
func shift(list []splice, from int) []splice {
	out := make([]splice, len(list))
	for i, s := range list {
		out[i] = splice{s.start - from, s.end - from, s.with}
	}
	return out
}

// A text is a client's file, parsed.
type text struct {
	syntax Syntax
	src    []byte // as it is
	root   *node
	doc    strictjson.Doc
}

var (
	mark       = []byte("\xef\xbb\xbf") // the byte order mark, which some editors write
	errObject  = errors.New("not an object")
	errUTF8    = errors.New("not UTF-8")
	errLarge   = errors.New("larger than 2 MiB")
	errRewrite = errors.New("the file cannot be changed without a change of what else it says")
)

// parse reads a file of the syntax. Comments are read in TOML and YAML whatever comments says.
func parse(src []byte, syntax Syntax, comments bool) (*text, error) {
	t := &text{syntax: syntax, src: src}
	if terminal.IsUTF16(src) {
		return nil, terminal.ErrUTF16
	}
	if syntax != JSON {
		return t, t.parseLines()
	}
	plain := src
	if comments {
		plain = jsonc.Plain(src)
	} else if bytes.HasPrefix(src, mark) {
		plain = append([]byte("   "), src[len(mark):]...)
	}
	if err := t.doc.Reset(plain, limits); err != nil {
		if e, ok := errors.AsType[*strictjson.SyntaxError](err); ok {
			return nil, fmt.Errorf("%w: %s", invalidAt("JSON", src, e.Offset), e.Code)
		}
		return nil, err
	}
	if t.root = fromJSON(t.doc.Root()); !t.root.is('{') {
		return nil, errObject
	}
	return t, nil
}

// invalidAt says where a file is not of its syntax: line and column in characters, from 1.
func invalidAt(syntax string, src []byte, offset int) error {
	before := src[:min(max(offset, 0), len(src))]
	line := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Errorf("it is not valid %s: line %d, column %d", syntax, bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[line:])+1)
}

func (t *text) parseLines() (err error) {
	switch {
	case len(t.src) > maxLines:
		return errLarge
	case !utf8.Valid(t.src):
		return errUTF8
	case t.syntax == YAML:
		t.root, err = parseYAML(t.src)
	default:
		plain := t.src
		if bytes.HasPrefix(plain, mark) {
			plain = append([]byte("   "), plain[len(mark):]...)
		}
		t.root, err = parseTOML(plain)
	}
	if err == nil && !t.root.is('{') {
		err = errObject
	}
	return err
}

// raw is n as it stands in the file, comments included.
func (t *text) raw(n *node) []byte {
	if !n.known() {
		return nil
	}
	return t.src[n.start:n.end]
}

// A holder is an object whose members are servers, or a list of objects that each have a name.
type holder struct {
	at  []string
	obj *node
}

// An item is a server of a holder.
type item struct {
	name string
	v    *node
}

// items is the servers of a holder, in the order of the file.
func (h holder) items() (out []item) {
	for _, m := range h.obj.all() {
		out = append(out, item{m.name, m.value})
	}
	for _, e := range h.obj.list() {
		out = append(out, item{e.get("name").str(), e})
	}
	return out
}

// find is the entry of that name below the objects of at; nil if it is not found, or, in a list,
// more than one.
func (t *text) find(at []string, name string) *node {
	n := t.root
	for _, a := range at {
		n = n.get(a)
	}
	var found *node
	for _, i := range (holder{obj: n}).items() {
		if i.name == name && found != nil {
			return nil
		} else if i.name == name {
			found = i.v
		}
	}
	return found
}

// holders finds the objects and lists of servers.
func (t *text) holders(paths [][]string) []holder {
	var out []holder
	for _, path := range paths {
		out = t.collect(out, nil, t.root, path)
	}
	return out
}

func (t *text) collect(out []holder, at []string, n *node, path []string) []holder {
	switch {
	case len(path) == 0 && (n.is('{') || n.is('[') && t.syntax == YAML):
		return append(out, holder{at, n})
	case !n.is('{') || len(path) == 0:
		return out
	case path[0] != "*":
		return t.collect(out, append(slices.Clip(at), path[0]), n.get(path[0]), path[1:])
	}
	for _, m := range n.all() {
		out = t.collect(out, append(slices.Clip(at), m.name), m.value, path[1:])
	}
	return out
}

// quote spells a string so that each of the syntaxes reads it.
func quote(s string) string {
	q := string(strictjson.AppendQuote(nil, s))
	if strings.IndexFunc(q, unprintable) < 0 {
		return q
	}
	var b strings.Builder
	for _, r := range q {
		if unprintable(r) {
			const hex = "0123456789abcdef"
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(hex[r>>shift&15])
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unprintable is what YAML or TOML do not allow raw in a string, or take for the end of a line.
func unprintable(r rune) bool {
	return r == 0x7f || 0x80 <= r && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// pair spells a member. The names that are written need no quotes outside of JSON.
func (t *text) pair(name, value string) string {
	switch t.syntax {
	case TOML:
		return name + " = " + value
	case YAML:
		return name + ": " + value
	}
	return quote(name) + ": " + value
}

// key spells a name.
func (t *text) key(name string) string {
	if t.syntax == JSON {
		return quote(name)
	}
	return name
}

// between is what separates the member m of obj from one that is written beside it.
func (t *text) between(obj *node, m *member) string {
	switch {
	case t.syntax == JSON:
		from := m.from
		for from > obj.start+1 && strings.IndexByte(" \t\r\n", t.src[from-1]) >= 0 {
			from--
		}
		if from == m.from {
			return ", "
		}
		return "," + string(t.src[from:m.from])
	case obj.flow:
		return ", "
	}
	return t.newLine(m.from) + string(t.src[m.from:m.key.start])
}

// newLine is a line end as the file has them, and the indentation of what stands at offset at.
func (t *text) newLine(at int) string {
	line := bytes.LastIndexByte(t.src[:at], '\n') + 1
	end := "\n"
	if line > 1 && t.src[line-2] == '\r' || line == 0 && bytes.Contains(t.src, []byte("\r\n")) {
		end = "\r\n"
	}
	return end + strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == ' ':
			return r
		case r == '\ufeff':
			return -1
		}
		return ' ' // the dash of an element
	}, string(t.src[line:at]))
}
