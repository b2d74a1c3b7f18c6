// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/jsonc"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxFile bounds a client's file, in bytes: some keep their history in it.
const maxFile = 32 << 20

var limits = strictjson.Limits{Bytes: maxFile, MendSurrogates: true}

// A Format says where in a client's file its servers are.
type Format struct {
	Paths [][]string // of the objects that hold servers; "*" is every member
	// Comments says that the client reads comments.
	Comments bool
}

// Generic is the format of a file that somebody names: all that clients use.
var Generic = Format{Comments: true, Paths: [][]string{
	{"mcpServers"}, {"servers"}, {"mcp", "servers"}, {"context_servers"}, {"projects", "*", "mcpServers"},
}}

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

// A text is a client's file, parsed.
type text struct {
	src []byte // as it is
	doc strictjson.Doc
}

func parse(src []byte, comments bool) (*text, error) {
	t := &text{src: src}
	plain := src
	if comments {
		plain = jsonc.Plain(src)
	}
	if err := t.doc.Reset(plain, limits); err != nil {
		return nil, err
	}
	if t.doc.Root().Kind() != '{' {
		return nil, errors.New("not an object")
	}
	return t, nil
}

// raw is v as it stands in the file, comments included.
func (t *text) raw(v strictjson.Value) []byte { return t.src[v.Offset():end(v)] }

func end(v strictjson.Value) int { return v.Offset() + len(v.Raw()) }

// A holder is an object whose members are servers.
type holder struct {
	at  []string
	obj strictjson.Value
}

// holders finds the objects of servers.
func (t *text) holders(paths [][]string) []holder {
	var out []holder
	for _, path := range paths {
		out = collect(out, nil, t.doc.Root(), path)
	}
	return out
}

func collect(out []holder, at []string, v strictjson.Value, path []string) []holder {
	switch {
	case v.Kind() != '{':
		return out
	case len(path) == 0:
		return append(out, holder{at, v})
	case path[0] != "*":
		return collect(out, append(slices.Clip(at), path[0]), v.Get(path[0]), path[1:])
	}
	for name, member := range v.Members() {
		out = collect(out, append(slices.Clip(at), strings.Clone(name.Text())), member, path[1:])
	}
	return out
}

// ErrOpenCode says why opencode is not handled.
var ErrOpenCode = errors.New(`a configuration of opencode, whose servers stand under "mcp" with commands that are lists: ` +
	`protect does not handle it: write "pellucid", "wrap", "--name", NAME, "--" before the words of each command`)

// isOpenCode reports whether a file is a configuration of opencode.
func (t *text) isOpenCode() bool {
	for _, v := range t.doc.Root().Get("mcp").Members() {
		if kind := v.Get("type").Text(); (kind == "local" || kind == "remote") && (v.Get("command").Kind() == '[' || v.Get("url").Exists()) {
			return true
		}
	}
	return false
}

// rewrite puts every server of src behind the program. The servers come in the
// order of the file.
func (o Options) rewrite(src []byte, f Format) ([]byte, []Server, error) {
	t, err := parse(src, f.Comments)
	if err != nil {
		return nil, nil, err
	}
	var edits []splice
	var servers []Server
	labels := map[string]bool{}
	if t.isOpenCode() {
		return nil, nil, ErrOpenCode
	}
	for _, h := range t.holders(f.Paths) {
		for name, v := range h.obj.Members() {
			s := Server{At: h.at, Name: strings.Clone(name.Text()), Disabled: Disabled(v)}
			e := entry{t: t, v: v, binary: o.Binary, label: label(s.Name, labels)}
			var own []splice
			switch why := e.rewrite(); {
			case slices.Contains(o.Skip, s.Name):
				s.Action, s.Why = Skipped, "as asked"
			case why == already:
				s.Action = Already
			case why != "":
				s.Action, s.Why = Skipped, why
			default:
				s.Action, s.Why, own = Wrapped, e.advice, e.edits
			}
			s.before = bytes.Clone(t.raw(v))
			s.after = s.before
			if own != nil {
				s.after = splices(s.before, shift(own, v.Offset()))
				edits = append(edits, own...)
			}
			servers = append(servers, s)
		}
	}
	return splices(src, edits), servers, nil
}

// shift returns list for a text that begins at from.
func shift(list []splice, from int) []splice {
	out := make([]splice, len(list))
	for i, s := range list {
		out[i] = splice{s.start - from, s.end - from, s.with}
	}
	return out
}

// Disabled reports whether an entry says that its client does not start it at present.
func Disabled(v strictjson.Value) bool {
	return v.Get("disabled").Kind() == 't' || v.Get("enabled").Kind() == 'f'
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
