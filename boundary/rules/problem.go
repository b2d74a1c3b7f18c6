// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Problem is one mistake in a file. Its fields hold constants, labels, numbers
// and what finding.Quote made of anything else; never a secret.
type Problem struct {
	line, column int    // from 1; 0: of the whole file
	path         string // of the member, as servers.files.timeout; "" for the file itself
	setting      string // the setting of a command line that is wrong, as "--set timeout"; "": the file is
	Fault        string // what is wrong, and what is wanted
	excerpt      string // quoted, of what stands there; "" where that may be a secret
}

// String is the problem as one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.setting != "" && p.setting != ofCommandLine {
		_, path, _ := strings.Cut(p.setting, " ")
		switch i := strings.Index("."+p.path+".", "."+path+"."); {
		case path == "" || p.path == "":
			p.path = ""
		case i >= 0 || strings.Contains("."+p.path, "."+path+"["):
			i = strings.Index("."+p.path, "."+path)
			p.setting, p.path = p.setting+p.path[i+len(path):], ""
		}
		b.WriteString(p.setting + ": ")
	}
	if p.line > 0 {
		b.WriteString("line " + strconv.Itoa(p.line) + ", column " + strconv.Itoa(p.column) + ": ")
	}
	if p.path != "" {
		b.WriteString(p.path + ": ")
	}
	b.WriteString(p.Fault)
	if p.excerpt != "" {
		b.WriteString(": " + p.excerpt)
	}
	return b.String()
}

// Problems are the mistakes in a file, in its order, at most 64; after that one
// that says so ends the list.
type Problems []Problem

const maxProblems = 64

// Error lists all problems, each on its line.
func (p Problems) Error() string {
	var b strings.Builder
	b.WriteString("rules: configuration refused:")
	for _, x := range p {
		b.WriteString("\n  " + x.String())
	}
	return b.String()
}

// OfCommandLine reports whether all of them are in settings of a command line.
func (p Problems) OfCommandLine() bool {
	return !slices.ContainsFunc(p, func(x Problem) bool { return x.setting == "" })
}

// sorted puts p in the order of the file and cuts it.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	if len(p) > maxProblems {
		p = append(p[:maxProblems:maxProblems], Problem{Fault: "more problems follow"})
	}
	return p
}

// A name of the file's author stands in a path as it is only where it cannot be
// mistaken for anything else.
func pathName(s string) string {
	if isName(s) {
		return s
	}
	return finding.Quote(s)
}

// isName: 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit.
func isName(s string) bool {
	return s != "" && len(s) <= 64 && isAlnum(s[0]) && strings.IndexFunc(s, func(r rune) bool {
		return r > 0x7e || !isAlnum(byte(r)) && !strings.ContainsRune("._-", r)
	}) < 0
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
