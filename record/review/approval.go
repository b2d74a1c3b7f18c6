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

// An Approval is an approval for programs.
type Approval struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Principal string `json:"principal,omitempty"`
	Call      string `json:"call"`
	Item      string `json:"item"`
	Since     string `json:"since"`
	Until     string `json:"until"`
	By        string `json:"by"`
	Revoked   string `json:"revoked,omitempty"`
	Revoker   string `json:"revoker,omitempty"`
	Uses      int    `json:"uses"`
	Used      string `json:"used,omitempty"`
}

// NewApproval is an approval for programs.
func NewApproval(a *hold.Approval) Approval {
	named := func(id string) string { // as Believed does
		if hold.ValidID(id) {
			return id
		}
		return finding.Quote(id)
	}
	when := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	out := Approval{ID: named(a.ID), Tool: frame.Label(a.Tool), Call: a.Call.String(), Item: named(a.Item), Since: when(a.Since), Until: when(a.Until),
		By: frame.Label(a.By), Revoked: when(a.Revoked), Uses: a.Uses, Used: when(a.Used)}
	if a.Principal != "" {
		out.Principal = Believed(&hold.Item{Principal: a.Principal}).Principal
	}
	if out.Revoked != "" {
		out.Revoker = frame.Label(a.Revoker)
	}
	return out
}

// WriteApprovals prints a table of approvals.
func WriteApprovals(dst io.Writer, list []hold.Approval) error {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTOOL\tPRINCIPAL\tSINCE\tUNTIL\tBY\tUSES\tITEM")
	for i := range list {
		a := NewApproval(&list[i])
		until := terminal.Minute(list[i].Until)
		if a.Revoked != "" {
			until = "revoked " + terminal.Minute(list[i].Revoked)
		}
		principal := "-"
		if a.Principal != "" {
			principal = terminal.Inline(a.Principal)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", a.ID, a.Tool, principal, terminal.Minute(list[i].Since), until, a.By, a.Uses, a.Item)
	}
	return w.Flush()
}
