// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A naive pipeline is what one writes in an afternoon from the libraries that
// the grounding RFC recommends (its section 10.2): a normaliser, a replacer for
// the confusables and a regular expression for each thing to be stripped. It is
// measured, never used: it neither reaches a fix point nor says what it did.
type naive struct {
	confusables *strings.Replacer
	strip       []*regexp.Regexp
}

func newNaive() *naive {
	var pairs []string
	for r := rune(0x80); r <= ucd.MaxRune; r++ {
		if b, ok := ucd.ASCIIPrototype(r); ok {
			pairs = append(pairs, string(r), string(b))
		}
	}
	n := &naive{confusables: strings.NewReplacer(pairs...)}
	for _, expr := range []string{
		`[\x{200B}-\x{200F}\x{202A}-\x{202E}\x{2060}-\x{206F}\x{FEFF}\x{FE00}-\x{FE0F}\x{E0000}-\x{E007F}]`,
		`(?i)<\|[a-z0-9_]+\|>|\[/?INST\]|<</?SYS>>`,
		`(?s)<!--.*?-->`,
		`</?[A-Za-z][^<>]*>`,
		`!?\[([^\]]*)\]\(([^)\s]*)[^)]*\)`,
		`\x1b\[[0-9;]*[A-Za-z]`,
	} {
		n.strip = append(n.strip, regexp.MustCompile(expr))
	}
	return n
}

func (n *naive) clean(s string) string {
	s = n.confusables.Replace(norm.NFKC.String(s))
	for _, re := range n.strip {
		s = re.ReplaceAllString(s, "$1")
	}
	return s
}
