// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/jsonc"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// mask stands for a value in a diff.
const mask = `"********"`

// diff shows a person what happens to each entry, line by line: "-" goes, "+" comes,
// " " stays. Nothing outside of the entries is shown, and of what is in env and
// headers, or looks like a secret in an argument or URL, the names only. Lines hold
// third-party text as the file has it.
func (c *Change) diff() []string {
	var out []string
	for _, s := range c.Servers {
		if string(s.before) == string(s.after) {
			continue
		}
		out = append(out, "@@ "+s.where()+" @@")
		out = append(out, lineDiff(masked(s.before), masked(s.after))...)
	}
	return out
}

// masked is an entry without its secrets.
func masked(src []byte) []string {
	// Without comments: an old secret may stand in one.
	t, err := parse(jsonc.Plain(src), false)
	if err != nil {
		return []string{mask}
	}
	var edits []splice
	hide := func(v strictjson.Value) {
		edits = append(edits, splice{v.Offset(), end(v), []byte(mask)})
	}
	root := t.doc.Root()
	for _, obj := range []strictjson.Value{root, root.Get("command")} {
		for _, name := range []string{"env", "headers"} {
			if v := obj.Get(name); v.Kind() == '{' {
				for _, value := range v.Members() {
					hide(value)
				}
			} else if v.Exists() {
				hide(v)
			}
		}
		after := false
		for arg := range obj.Get("args").Elements() {
			s := arg.Text()
			if after && !strings.HasPrefix(s, "-") && !ownArg.MatchString(s) || secretive(s) {
				hide(arg)
			}
			after = secretFlag.MatchString(s)
		}
	}
	for name, value := range root.Members() {
		switch n := name.Text(); {
		case slices.Contains(urlNames, n) && secretive(value.Text()), secretName.MatchString(n):
			hide(value)
		}
	}
	lines := strings.Split(string(splices(t.src, edits)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return lines
}

var (
	secretName = regexp.MustCompile(`(?i)token|secret|password|passwd|credential|api_?-?key|oauth|^auth`)
	secretFlag = regexp.MustCompile(`(?i)^--?[a-z0-9_-]*(token|secret|password|passwd|credential|key|auth|header)[a-z0-9_-]*$`)
	secretArg  = regexp.MustCompile(`(?i)(token|secret|password|passwd|credential|key|auth|bearer)[a-z0-9_-]*\s*[=: ]\s*.`)
	secretURL  = regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]*://[^/]*@`)
	secretWord = regexp.MustCompile(`^[A-Za-z0-9_+/=-]{24,}$`)
	hasDigit   = regexp.MustCompile(`[0-9]`)
)

// ownArg is what rewrite itself writes: a header's name and its variable's.
var ownArg = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+=env:PELLUCID_HEADER_[A-Z0-9_]+$")

// secretive reports whether an argument looks like a secret. It rather hides too
// much than too little.
func secretive(s string) bool {
	if ownArg.MatchString(s) || s == "env:"+urlVariable || isVariable(s) && strings.ToUpper(s) == s && !secretWord.MatchString(s) {
		return false
	}
	if _, rest, isURL := strings.Cut(s, "://"); isURL && keyed(rest) {
		return true
	}
	return secretArg.MatchString(s) || secretURL.MatchString(s) || secretWord.MatchString(s) && hasDigit.MatchString(s)
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
