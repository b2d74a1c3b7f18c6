// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// tokenTable is the operator's file of control tokens (docs/spec/tokens.md). What the file
// says is not secret, but it is not shown: its digest tells a change.
func tokenTable(r *Rules) value {
	return value{
		read: (*compiler).controlTokens,
		write: func(d *dumper, name string) {
			if r.tokens != "" {
				d.word(name, quoted(r.tokens))
				d.hidden(name, string(r.tokensPrint[:]))
			}
		},
		kind: "`file:PATH`", schema: schema{"type": "string", "pattern": "^file:."},
	}
}

func (c *compiler) controlTokens(p place) {
	ref := c.text(p, maxText)
	path, isFile := strings.CutPrefix(ref, "file:")
	switch {
	case ref == "":
		return
	case !isFile || path == "":
		c.report(p, "want file:PATH of a file of control tokens")
		return
	}
	src, err := c.opt.read(path, scrub.MaxTokenFile)
	if err != nil {
		c.report(p, "%v", err)
		return
	}
	table, err := scrub.Builtin().With(string(src))
	if faults := (*scrub.TokenFileError)(nil); errors.As(err, &faults) {
		// What stands there is not shown: the file may be another than the operator thinks.
		line, _, _ := strings.Cut(faults.Faults[0], ":")
		c.report(p, "file %s, %s: this is no file of control tokens: pellucid scrub --tokens says why", finding.Quote(path), line)
		return
	}
	c.out.Tokens, c.out.tokens, c.out.tokensPrint = table, ref, sha256.Sum256(src)
}
