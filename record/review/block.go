// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A Block is a block for programs.
type Block struct {
	ID       string `json:"id"`
	Scope    string `json:"scope"`
	Server   string `json:"server"`
	Tool     string `json:"tool,omitempty"`
	Text     string `json:"text,omitempty"`
	Evidence string `json:"evidence"`
	Severity int    `json:"severity"`
	Since    string `json:"since"`
	Until    string `json:"until"`
	Lifted   string `json:"lifted,omitempty"`
	By       string `json:"by,omitempty"`
}

// NewBlock is a block for programs.
func NewBlock(b *hold.Block) Block {
	origin := frame.Origin{Server: b.Server, Tool: b.Tool}.Labels()
	named := func(id string) string { // as Believed does
		if id == "" || hold.ValidID(id) {
			return id
		}
		return finding.Quote(id)
	}
	out := Block{ID: named(b.ID), Scope: b.Scope(), Server: origin.Server, Evidence: named(b.Evidence), Severity: b.Severity,
		Since: b.Since.UTC().Format(time.RFC3339), Until: b.Until.UTC().Format(time.RFC3339)}
	if b.Tool != "" {
		out.Tool = origin.Tool
	}
	if b.Text != (hold.Digest{}) {
		out.Text = b.Text.String()
	}
	if !b.Lifted.IsZero() {
		out.Lifted, out.By = b.Lifted.UTC().Format(time.RFC3339), frame.Label(b.By)
	}
	return out
}

// WriteBlocks prints a table of blocks.
func WriteBlocks(dst io.Writer, list []hold.Block) error {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSCOPE\tSINCE\tUNTIL\tSOURCE\tSEVERITY\tEVIDENCE")
	for i := range list {
		b := NewBlock(&list[i])
		source := b.Server
		if b.Tool != "" {
			source += "/" + b.Tool
		}
		until := terminal.Minute(list[i].Until)
		if b.Lifted != "" {
			until = "lifted " + terminal.Minute(list[i].Lifted)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", b.ID, b.Scope, terminal.Minute(list[i].Since), until, source, b.Severity, b.Evidence)
	}
	return w.Flush()
}
