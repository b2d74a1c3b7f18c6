// SPDX-License-Identifier: Apache-2.0

package pinview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A Row says in one line what is pinned of a server, to a person and as JSON.
type Row struct {
	Server  string    `json:"server"` // its identity, or the name that the operator gave the pin
	Names   []string  `json:"names,omitzero"`
	Since   time.Time `json:"since,omitzero"` // zero: it was never pinned
	Items   int       `json:"items"`
	Live    int       `json:"live"`
	Pending int       `json:"pending"`
	Blocked int       `json:"blocked"`
	In      string    `json:"in"` // where the pin is kept

	Rejected   string    `json:"rejected,omitzero"` // why the server is, as a whole; escaped
	RejectedAt time.Time `json:"rejected_at,omitzero"`
}

// NewRow counts the items of a pin. in says where the pin is kept.
func NewRow(in string, pin *surface.Pin) Row {
	r := Row{Server: pin.Server, Names: pin.Names, In: in, Since: pin.Since, Items: len(pin.Items), Rejected: pin.Rejected, RejectedAt: pin.RejectedAt}
	for i := range pin.Items {
		switch pin.Items[i].State() {
		case surface.Pending:
			r.Pending++
		case surface.Blocked:
			r.Blocked++
		default:
			r.Live++
		}
	}
	return r
}

// Called returns the first name that the server is known by, or its identity.
func (r *Row) Called() string {
	if len(r.Names) > 0 {
		return r.Names[0]
	}
	return r.Server
}

// Counts says for a person how many items there are, and in which states.
func (r *Row) Counts() string {
	return fmt.Sprintf("%s, %d live, %d pending, %d blocked", terminal.Plural(r.Items, "item"), r.Live, r.Pending, r.Blocked)
}

// names are those that the server is known by, for a person.
func (r *Row) names() string {
	if len(r.Names) == 0 {
		return terminal.ShellWord(r.Server)
	}
	return words(r.Names)
}

// WriteRows shows a person a table, and below it why servers are rejected.
func WriteRows(dst io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSINCE\tITEMS\tLIVE\tPENDING\tBLOCKED\tIN\tIDENTITY")
	for _, r := range rows {
		since := "never"
		if !r.Since.IsZero() {
			since = terminal.Minute(r.Since)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.names(), since, r.Items, r.Live, r.Pending, r.Blocked, r.In, terminal.ShellWord(r.Server))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Rejected != "" {
			writeRejected(dst, r.names(), r.RejectedAt, r.Rejected)
		}
	}
	return nil
}

func writeRejected(w io.Writer, server string, at time.Time, why string) {
	fmt.Fprintf(w, "%s is rejected since %s: %s\n", server, terminal.Minute(at), terminal.Inline(why))
}

// Several is the error of verb where a name means several servers. It lists how to name one
// of them.
func Several(verb, name string, servers []string) error {
	return fmt.Errorf("%s: several servers are called %s: say which by its identity: %s", verb, terminal.ShellWord(name), words(servers))
}

func words(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = terminal.ShellWord(n)
	}
	return strings.Join(out, ", ")
}
