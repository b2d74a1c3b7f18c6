// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/jsonc"
)

// mask stands for a value in a diff.
const mask = `"********"`

// diff shows a person what happens to each entry, line by line: "-" goes, "+" comes,
// " " stays. Nothing outside of the entries is shown, and of what is in env and
// headers, or looks like a secret in an argument or URL, the names only. Lines hold
// third-party text as the file has it.
func (c *Change) diff() []string {
	before, errBefore := parse(c.file.src, c.syntax, true)
	after, errAfter := parse(c.after, c.syntax, true)
	var out []string
	for _, s := range c.Servers {
		if string(s.before) == string(s.after) {
			continue
		}
		out = append(out, "@@ "+s.where()+" @@")
		if errBefore != nil || errAfter != nil {
			continue
		}
		out = append(out, lineDiff(before.masked(s.At, s.Name), after.masked(s.At, s.Name))...)
	}
	return out
}

// masked is the lines of an entry without its secrets, and without comments: an old secret may
// stand in one.
func (t *text) masked(at []string, name string) []string {
	v := t.find(at, name)
	if !v.known() {
		return []string{mask}
	}
	d := dialectOf(t.syntax, at)
	src, comments := t.uncommented(v)
	m := masking{hidden: comments, from: v.start}
	for _, obj := range []*node{v, v.get(d.command), v.get(d.nested)} {
		for _, name := range []string{d.env, d.headers} {
			n := obj.get(name)
			for _, member := range n.all() {
				m.hide(member.value)
			}
			if !n.is('{') {
				m.hide(n)
			}
		}
		m.arguments(obj.get(d.args).list())
	}
	if words := v.get(d.command).list(); d.whole && len(words) > 0 {
		m.arguments(words[1:])
	}
	for _, member := range v.all() {
		switch n := member.value; {
		case member.name == d.env || member.name == d.headers || member.name == d.bearer || member.name == d.fromEnv:
		case member.name == d.command && secretive(n.str()), slices.Contains(d.urls, member.name) && secretive(n.str()), secretName().MatchString(member.name):
			m.hide(n)
		}
	}
	lines := strings.Split(string(splices(src, m.hidden)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return lines
}

// A masking collects what of an entry is not shown.
type masking struct {
	from   int // where the entry begins
	hidden []splice
}

// hide puts the mask in the place of a value, and of all that is hidden in it already.
func (m *masking) hide(n *node) {
	if !n.known() || n.end == n.start {
		return
	}
	start, end := n.start-m.from, n.end-m.from
	m.hidden = slices.DeleteFunc(m.hidden, func(s splice) bool { return start <= s.start && s.end <= end })
	m.hidden = append(m.hidden, splice{start, end, []byte(mask)})
}

// arguments hides those that look like a secret.
func (m *masking) arguments(args []*node) {
	after := false
	for _, arg := range args {
		s := arg.str()
		if after && !strings.HasPrefix(s, "-") && !ownArg().MatchString(s) || secretive(s) {
			m.hide(arg)
		}
		after = secretFlag().MatchString(s)
	}
}

// uncommented is v as it stands in the file, and what takes the comments out of it, where they
// are not spaces already.
func (t *text) uncommented(v *node) (src []byte, gone []splice) {
	src = t.raw(v)
	if t.syntax == JSON {
		return jsonc.Plain(src), nil
	}
	inside := make([]bool, len(src))
	for n := range v.scalars() {
		for i := max(n.start-v.start, 0); n.known() && i < min(n.end-v.start, len(src)); i++ {
			inside[i] = true
		}
	}
	for i := 0; i < len(src); i++ {
		if src[i] != '#' || inside[i] {
			continue
		}
		start := i
		for i < len(src) && src[i] != '\n' && src[i] != '\r' {
			i++
		}
		gone = append(gone, splice{start, i, nil})
	}
	return src, gone
}

var (
	secretName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)token|secret|password|passwd|credential|api_?-?key|oauth|^auth`)
	})
	secretFlag = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^--?[a-z0-9_-]*(token|secret|password|passwd|credential|key|auth|header)[a-z0-9_-]*$`)
	})
	secretArg = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(token|secret|password|passwd|credential|key|auth|authorization|bearer)[a-z0-9_-]*["']?\s*[=: ]\s*.`)
	})
	secretURL  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]*://[^/]*@`) })
	secretWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_+/=-]{24,}$`) })
	hasDigit   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]`) })
)

// ownArg is what rewrite itself writes: a header's name and its variable's.
var ownArg = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+=env:PELLUCID_HEADER_[A-Z0-9_]+$")
})

// secretive reports whether an argument looks like a secret. It rather hides too
// much than too little.
func secretive(s string) bool {
	if ownArg().MatchString(s) || s == "env:"+urlVariable || isVariable(s) && strings.ToUpper(s) == s && !secretWord().MatchString(s) {
		return false
	}
	if _, rest, isURL := strings.Cut(s, "://"); isURL && keyed(rest) {
		return true
	}
	return secretArg().MatchString(s) || secretURL().MatchString(s) || secretWord().MatchString(s) && hasDigit().MatchString(s)
}

// maxDiff bounds the lines of an entry that are compared.
const maxDiff = 400

// lineDiff is a longest common subsequence of lines, said as a diff.
func lineDiff(a, b []string) []string {
	var out []string
	if len(a) > maxDiff || len(b) > maxDiff {
		return append(prefixed(out, "-", a), prefixed(nil, "+", b)...)
	}
	// length[i][j] is that of the longest common subsequence of a[i:] and b[j:].
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return prefixed(prefixed(out, "-", a[i:]), "+", b[j:])
}

func prefixed(out []string, prefix string, lines []string) []string {
	for _, l := range lines {
		out = append(out, prefix+l)
	}
	return out
}
