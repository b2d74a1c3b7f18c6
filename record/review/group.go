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

// A Group is a group of items for programs. Hidden is third-party text.
type Group struct {
	Digest     string    `json:"digest,omitzero"`
	Server     string    `json:"server,omitzero"`
	Tool       string    `json:"tool,omitzero"`
	Code       string    `json:"code,omitzero"`
	Principal  string    `json:"principal,omitzero"`
	Items      int       `json:"items"`
	Principals int       `json:"principals"`
	Oldest     time.Time `json:"oldest"`
	Newest     time.Time `json:"newest"`
	Last       string    `json:"last"` // id of the newest item
	Hidden     string    `json:"hidden,omitzero"`
}

// NewGroup is a group of items for programs.
func NewGroup(g *hold.Group) Group {
	last := Believed(&g.Last)
	names := Believed(&hold.Item{Server: g.Server, Tool: g.Tool, Principal: g.Principal})
	out := Group{Items: g.N, Principals: g.Principals, Oldest: g.Oldest, Newest: g.Newest, Last: last.ID, Hidden: g.Last.Hidden, Principal: names.Principal}
	if g.Server != "" {
		out.Server = names.Server
	}
	if g.Tool != "" {
		out.Tool = names.Tool
	}
	if g.Code != "" {
		out.Code = believedCode(finding.Code(g.Code))
	}
	if g.Digest != (hold.Digest{}) {
		out.Digest = g.Digest.String()
	}
	return out
}

// WriteGroups prints a table of groups.
func WriteGroups(dst io.Writer, by hold.GroupBy, list []hold.Group) error {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ITEMS\tPRINCIPALS\tOLDEST\tNEWEST\tOF\tLAST\tHIDDEN TEXT SAID")
	for i := range list {
		g := NewGroup(&list[i])
		of := g.Server
		switch by {
		case hold.ByDigest:
			of = Source(&list[i].Last) + " " + code(&list[i].Last) + " " + g.Digest
		case hold.ByTool:
			of += "/" + g.Tool
		case hold.ByCode:
			of = g.Code
		case hold.ByPrincipal:
			of = terminal.Inline(g.Principal)
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\t%s\n", g.Items, g.Principals, terminal.Minute(g.Oldest), terminal.Minute(g.Newest), of, g.Last, hiddenLine(g.Hidden))
	}
	return w.Flush()
}

// hiddenLine is a decoded message for one line of a table.
func hiddenLine(s string) string {
	const most = 60
	if s == "" {
		return "-"
	}
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "\u2026"
	}
	return terminal.Inline(s)
}

// An Exception is an exception for programs. Why is the reviewer's text.
type Exception struct {
	ID      string    `json:"id"`
	Server  string    `json:"server"`
	Tool    string    `json:"tool,omitzero"`
	Code    string    `json:"code"`
	Digest  string    `json:"digest,omitzero"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"` // left out where it is proposed
	Why     string    `json:"why,omitzero"`
	By      string    `json:"by"`
	Second  string    `json:"second,omitzero"`
	Keep    float64   `json:"keep,omitzero"` // seconds that one that is proposed will last
	Revoked time.Time `json:"revoked,omitzero"`
	Revoker string    `json:"revoker,omitzero"`
}

// NewException is an exception for programs.
func NewException(e *hold.Exception) Exception {
	names := Believed(&hold.Item{ID: e.ID, Server: e.Server, Tool: e.Tool})
	out := Exception{ID: names.ID, Server: names.Server, Code: believedCode(e.Code), Since: e.Since, Until: e.Until, Why: e.Why, By: frame.Label(e.By), Keep: e.Keep.Seconds(), Revoked: e.Revoked}
	if e.Second != "" {
		out.Second = frame.Label(e.Second)
	}
	if e.Tool != "" {
		out.Tool = names.Tool
	}
	if e.Digest != (hold.Digest{}) {
		out.Digest = e.Digest.String()
	}
	if !e.Revoked.IsZero() {
		out.Revoker = frame.Label(e.Revoker)
	}
	return out
}

// WriteExceptions prints a table of exceptions.
func WriteExceptions(dst io.Writer, list []hold.Exception) error {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tCODE\tTOOL\tRESULT\tSINCE\tUNTIL\tBY\tWHY")
	for i := range list {
		e := NewException(&list[i])
		until, result, tool, why := terminal.Minute(e.Until), "every one", e.Server+"/*", "-"
		if list[i].Proposed() {
			until = "proposed"
		}
		if e.Second != "" {
			e.By += ", " + e.Second
		}
		if !e.Revoked.IsZero() {
			until = "revoked " + terminal.Minute(e.Revoked)
		}
		if e.Digest != "" {
			result = e.Digest
		}
		if e.Tool != "" {
			tool = e.Server + "/" + e.Tool
		}
		if e.Why != "" {
			why = terminal.Inline(e.Why)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.ID, e.Code, tool, result, terminal.Minute(e.Since), until, e.By, why)
	}
	return w.Flush()
}
