// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// runRows cleans one member of every row.
func (c *scrubCmd) runRows(e *env, s *scrub.Scrubber) error {
	x := rowScrubber{scrubber: s}
	return terminal.EditRows(e.Stdout, e.Stdin, terminal.RowOptions{File: c.File, Key: c.Key, Verb: "scrub", Done: "cleaned"}, x.clean)
}

// A rowScrubber cleans the text of a row.
type rowScrubber struct {
	scrubber *scrub.Scrubber
	result   scrub.Result
}

func (x *rowScrubber) clean(row, text strictjson.Value, e *strictjson.Edits) error {
	in := text.Text()
	x.scrubber.Scrub(in, &x.result)
	if x.result.Refused != 0 { // then it must not come out as one
		e.Replace(text, []byte("null"))
		return refusal(&x.result)
	}
	if out := x.result.Clean.String(); out != in {
		e.ReplaceText(text, out)
	}
	return nil
}
