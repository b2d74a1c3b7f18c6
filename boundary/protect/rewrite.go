// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// rewrite puts every server of src behind the program. The servers come in the order of the
// file. wrapped names those that an earlier run has put behind it.
func (o Options) rewrite(src []byte, f Format, wrapped func(at []string, name string) bool) ([]byte, []Server, error) {
	t, err := parse(src, f.Syntax, f.Comments)
	if err != nil {
		return nil, nil, err
	}
	var edits []splice
	var servers []Server
	labels := map[string]bool{}
	for _, h := range t.holders(f.Paths) {
		for _, i := range h.items() {
			s := Server{At: h.at, Name: i.name, Disabled: i.v.disabled()}
			e := entry{t: t, v: i.v, dialect: f.dialectOf(h.at), options: &o, name: s.Name, label: label(s.Name, labels), before: wrapped(h.at, s.Name)}
			var own []splice
			why := e.rewrite()
			if why == already || why == whyFormer {
				front, _ := WithoutFormer(e.dialect.wrapFlags(e.v, o.Binary))
				s.Warning = e.looseningWarning(front)
			} else if why == "" && e.before {
				s.Warning = e.looseningWarning(nil)
			}
			switch {
			case slices.Contains(o.Skip, s.Name):
				s.Action, s.Why = Skipped, "as asked"
			case why == already && !o.asked.in(e.dialect.wrapFlags(e.v, o.Binary)):
				s.Action, s.Why = Skipped, whyFlags
			case why == already:
				s.Action = Already
			case why == whyFormer:
				s.Action, s.Why, own = Updated, whyUpdated, e.edits
			case why == "" && h.obj.is('[') && t.find(h.at, s.Name) == nil:
				s.Action, s.Why = Skipped, whyName
			case why != "":
				s.Action, s.Why = Skipped, why
			default:
				s.Action, s.Why, own = Wrapped, e.advice, e.edits
			}
			if i.v.known() {
				s.before = bytes.Clone(t.raw(i.v))
				s.after = s.before
			}
			if own != nil {
				s.after = splices(s.before, shift(own, i.v.start))
				edits = append(edits, own...)
			}
			servers = append(servers, s)
		}
	}
	after := splices(src, edits)
	return after, servers, t.checked(after, f, o.Binary, servers)
}

// checked reads what was made of a file in TOML or YAML, whose parts are not found by rules as
// simple as those of JSON: it must say what it said, but for the servers that were rewritten.
// Their values are kept for undo.
func (t *text) checked(after []byte, f Format, binary string, servers []Server) error {
	if t.syntax == JSON {
		return nil
	}
	u, err := parse(after, f.Syntax, f.Comments)
	if err != nil {
		return errRewrite
	}
	changed := map[*node]*node{}
	for i := range servers {
		s := &servers[i]
		if s.Action != Wrapped && s.Action != Updated {
			continue
		}
		was, is := t.find(s.At, s.Name), u.find(s.At, s.Name)
		if !is.known() || !bytes.Equal(u.raw(is), s.after) || f.dialectOf(s.At).wrapWords(is, binary) == nil {
			return errRewrite
		}
		s.was, s.is, changed[was] = was.value(), is.value(), is
	}
	if !t.root.sameBut(u.root, changed) {
		return errRewrite
	}
	return nil
}

// sameBut reports whether two files say the same but for the entries of changed, which may
// differ.
func (n *node) sameBut(m *node, changed map[*node]*node) bool {
	switch {
	case n == nil || m == nil:
		return n == m
	case changed[n] != nil:
		return changed[n] == m
	case n.kind != m.kind || n.str() != m.str() || len(n.all()) != len(m.all()) || len(n.list()) != len(m.list()):
		return false
	}
	for i, a := range n.all() {
		if b := m.all()[i]; a.name != b.name || !a.value.sameBut(b.value, changed) {
			return false
		}
	}
	for i, a := range n.list() {
		if !a.sameBut(m.list()[i], changed) {
			return false
		}
	}
	return true
}

// disabled reports whether an entry says that its client does not start it at present.
func (n *node) disabled() bool { return n.get("disabled").is('t') || n.get("enabled").is('f') }

// A Found is one server that a client's file has.
type Found struct {
	At       []string
	Name     string
	Disabled bool
	// Entry is the server as a member of mcpServers has it, in JSON, whatever the client's own
	// names are.
	Entry json.RawMessage
}

// Servers reads the servers of the client's file at path, and reports whether it has a place
// for them.
func (f Format) Servers(path string, src []byte) (all []Found, place bool, err error) {
	f = f.of(path, src)
	t, err := parse(src, f.Syntax, f.Comments)
	if err != nil {
		return nil, false, err
	}
	holders := t.holders(f.Paths)
	for _, h := range holders {
		for _, i := range h.items() {
			all = append(all, Found{At: h.at, Name: i.name, Disabled: i.v.disabled(), Entry: f.dialectOf(h.at).common(i.v)})
		}
	}
	return all, len(holders) > 0, nil
}

// maxLabel leaves room for a number behind a label.
const maxLabel = 64

// label makes of a server's name one that wrap takes, another for every server.
func label(name string, taken map[string]bool) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || b.Len() > 0 && strings.IndexByte("._-", c) >= 0
		if !ok && b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			c, ok = '-', true
		}
		if ok && b.Len() < maxLabel {
			b.WriteByte(c)
		}
	}
	base := strings.TrimRight(b.String(), "-")
	if base == "" {
		base = "server"
	}
	out := base
	for n := 2; taken[out]; n++ {
		out = base + "-" + itoa(n)
	}
	taken[out] = true
	return out
}

// where is a server's place for a person.
func (s Server) where() string {
	parts := make([]string, 0, len(s.At)+1)
	for _, p := range append(slices.Clip(s.At), s.Name) {
		parts = append(parts, finding.Quote(p))
	}
	return strings.Join(parts, " / ")
}
