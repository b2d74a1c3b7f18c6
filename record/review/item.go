// SPDX-License-Identifier: Apache-2.0

// Package review is what a reviewer reads of results that are held and of sources that are blocked.
package review

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Believed is an item as it is shown. A process that writes to a shared database must not
// write to a reviewer's terminal, or fill it: a member that is not what it should be is
// quoted, and cut.
func Believed(it *hold.Item) *hold.Item {
	out := *it
	if !hold.ValidID(it.ID) {
		out.ID = finding.Quote(it.ID)
	}
	if !it.State.Known() {
		out.State = frame.Other
	}
	out.Server = frame.Label(it.Server)
	if it.Tool != "" && !frame.IsLabel(it.Tool) {
		out.Tool = "?" // it is not known
	}
	for _, s := range []*string{&out.Principal, &out.Rule, &out.By} {
		if len(*s) > terminal.MaxInline || !utf8.ValidString(*s) {
			*s = finding.Quote(*s)
		}
	}
	return &out
}

// Source is the server of an item and its tool, where these are names.
func Source(it *hold.Item) string {
	it = Believed(it)
	if it.Tool == "" {
		return it.Server
	}
	return it.Server + "/" + it.Tool
}

// code is the finding of an item, where it is one.
func code(it *hold.Item) string {
	if it.Code.Known() {
		return string(it.Code)
	}
	return frame.Other
}

// reasonOf says for a person why an item is held: a rule where nothing was found, else the finding.
func reasonOf(it *hold.Item) string {
	if it.Code == finding.Held && frame.IsLabel(it.Rule) {
		return it.Rule
	}
	return code(it)
}

// An Item is an item for programs. Body and the messages in Hidden are third-party text.
type Item struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Server    string    `json:"server"`
	Tool      string    `json:"tool,omitzero"`
	Principal string    `json:"principal,omitzero"`
	Rule      string    `json:"rule"`
	Code      string    `json:"code"`
	Call      string    `json:"call"`
	Digest    string    `json:"digest"`
	Bytes     int       `json:"bytes"`
	Held      time.Time `json:"held"`
	Until     time.Time `json:"until"`
	Decided   time.Time `json:"decided,omitzero"`
	By        string    `json:"by,omitzero"`
	Findings  []Finding `json:"findings,omitzero"`

	Scores   []hold.Score `json:"scores,omitzero"`
	Sealed   bool         `json:"sealed,omitzero"` // only of NewShown: the body was not opened
	Body     *string      `json:"body,omitzero"`
	Hidden   []Hidden     `json:"hidden,omitzero"`
	Question *Question    `json:"question,omitzero"` // only of NewShown
}

// A Question is what is known of the question for programs. Arguments and Context are third-party text.
type Question struct {
	Missing   string          `json:"missing,omitzero"` // why it is not there
	Bytes     int             `json:"bytes,omitzero"`
	Arguments string          `json:"arguments,omitzero"`
	Context   json.RawMessage `json:"context,omitzero"`
}

// A Hidden is a message that hidden characters of a text spell.
type Hidden struct {
	Place   string `json:"place"`
	Kind    string `json:"kind"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Message string `json:"message"`
}

// NewItem is an item for programs, without its body.
func NewItem(it *hold.Item) *Item {
	it = Believed(it)
	return &Item{
		ID: it.ID, State: string(it.State), Server: it.Server, Tool: it.Tool, Principal: it.Principal, Rule: it.Rule,
		Code: code(it), Call: it.Call.String(), Digest: it.Digest.String(), Bytes: it.Bytes,
		Held: it.Held, Until: it.Until, Decided: it.Decided, By: it.By, Findings: Findings(&it.Found), Scores: Scores(&it.Found),
	}
}

// NewShown is an item for programs with its body and with what hides in it. The body is left
// out while it is encrypted.
func NewShown(it *hold.Item, a Asked) *Item {
	out := NewItem(it)
	switch {
	case a.Question != nil:
		out.Question = &Question{Bytes: a.Bytes, Arguments: a.Arguments, Context: a.Context}
	case a.Why != "":
		out.Question = &Question{Missing: a.Why}
	}
	if out.Sealed = it.Sealed(); out.Sealed || it.Body == nil {
		return out
	}
	body := string(it.Body)
	out.Body = &body
	for t := range texts(it.Body) {
		for _, h := range scrub.Reveal(t.text) {
			out.Hidden = append(out.Hidden, Hidden{t.place, fmt.Sprint(h.Kind), h.Start, h.End, h.Message})
		}
	}
	return out
}

// WriteItems prints a table of items.
func WriteItems(dst io.Writer, items []hold.Item) error {
	w := tabwriter.NewWriter(dst, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tHELD\tUNTIL\tTOOL\tCODE\tBYTES")
	for i := range items {
		it := Believed(&items[i])
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", it.ID, it.State, terminal.Minute(it.Held), terminal.Minute(it.Until), Source(it), codes(it), it.Bytes)
	}
	return w.Flush()
}

// Show prints an item for a person: what was found, what was asked, and every text of its body.
func Show(dst io.Writer, p terminal.Palette, it *hold.Item, a Asked) error {
	sealed := it.Sealed()
	it = Believed(it)
	w := bufio.NewWriter(dst)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s %s\n", p.Dim(fmt.Sprintf("%-10s", name)), terminal.Inline(value))
		}
	}
	row("item", it.ID)
	row("state", string(it.State))
	row("tool", Source(it))
	row("principal", it.Principal)
	if why := reasonOf(it); why != it.Rule {
		row("held for", why+" ("+it.Rule+")")
	} else {
		row("held for", why)
	}
	row("held", terminal.Minute(it.Held)+", until "+terminal.Minute(it.Until))
	if it.By != "" {
		row("decided", terminal.Minute(it.Decided)+" by "+it.By)
	}
	row("digest", it.Digest.String())
	row("size", terminal.Plural(it.Bytes, "byte"))
	showFound(w, p, it)
	showAsked(w, p, a)
	if sealed {
		terminal.Section(w, p, "its content is encrypted to its reviewers: --identity opens it")
		return w.Flush()
	}
	if it.Body == nil {
		gone := "its content is gone"
		switch it.State {
		case hold.Taken:
			gone += ": it was delivered"
		case hold.Denied:
			gone += ": the item was denied"
		case hold.Expired:
			gone += ": the item has expired"
		}
		terminal.Section(w, p, gone)
		return w.Flush()
	}
	showTexts(w, p, it.Body)
	return w.Flush()
}

// Open decrypts the body of an item with the identities of a reviewer; nil where nothing is
// encrypted. What the store keeps may have been encrypted by another process, since the key
// is public: the body must be the one that was held.
func Open(it *hold.Item, identities string) ([]byte, error) {
	if !it.Sealed() {
		return nil, nil
	}
	body, err := capture.Open(it.Body, identities)
	switch {
	case err != nil:
		return nil, err
	case !it.Opened(body):
		return nil, hold.ErrOpened
	}
	return body, nil
}
