// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// What a server comes to beside the conclusions of package surface.
const (
	unreachable = "unreachable"
	notChecked  = "not-checked"
	skipped     = "skipped" // disabled
)

// A preflight is what --json prints. Names, texts, messages and the sides of fields
// are strangers' text.
type preflight struct {
	Conclusion string           `json:"conclusion"`
	Servers    []*checkedServer `json:"servers"`
	Shadows    []checkedShadow  `json:"shadows,omitzero"`
}

type checkedServer struct {
	Name         string            `json:"name,omitzero"`
	Pin          string            `json:"pin,omitzero"` // as pellucid pins lists it
	Client       string            `json:"client,omitzero"`
	File         string            `json:"file,omitzero"`
	Conclusion   string            `json:"conclusion"`
	Why          string            `json:"why,omitzero"`
	Said         string            `json:"said,omitzero"` // by the reviewer that rejected
	Stderr       []string          `json:"stderr,omitzero"`
	Fingerprint  *surface.Digest   `json:"fingerprint,omitzero"`
	Items        int               `json:"items"`
	Octets       int               `json:"octets"`
	Reviewed     bool              `json:"reviewed"`         // by a model, now or
	Cached       bool              `json:"cached,omitzero"`  // before
	Pinned       bool              `json:"pinned"`           // now, for the first time
	Offered      int               `json:"offered,omitzero"` // items that were pinned now, being offered to more capable clients only
	Moved        bool              `json:"moved,omitzero"`
	Hidden       []checkedHidden   `json:"hidden,omitzero"`
	MoreHidden   int               `json:"more_hidden,omitzero"`
	Changes      []pinview.Change  `json:"changes,omitzero"`
	Wording      []checkedWording  `json:"wording,omitzero"`
	Told         []checkedTold     `json:"told,omitzero"`
	Removed      []surface.Removal `json:"removed,omitzero"`  // before a model sees it
	LeftOut      []checkedLeftOut  `json:"left_out,omitzero"` // no client sees it, for its form
	NotInspected []string          `json:"not_inspected"`

	review bool // by pass 2 it was rejected
}

type checkedHidden struct {
	Kind     surface.Kind `json:"kind"`
	Item     string       `json:"item,omitzero"`
	Pointer  string       `json:"pointer"`
	Code     finding.Code `json:"code"`
	Start    int          `json:"start"`
	End      int          `json:"end"`
	Shown    string       `json:"shown"`
	Messages []string     `json:"messages,omitzero"`

	place string
	key   surface.Key
	path  string
}

type checkedWording struct {
	Place  string         `json:"place"`
	Family surface.Family `json:"family"`
	Score  int            `json:"score"`
	Shown  string         `json:"shown"`

	key  surface.Key
	path string
}

type checkedShadow struct {
	How    string `json:"how"`
	Server string `json:"server"`
	Place  string `json:"place"`
	Other  string `json:"other"`
	Tool   string `json:"tool"`

	key  surface.Key
	path string
}

// fill tells what came of a server that could be read.
func (r *checkedServer) fill(s *surface.Surface, o *surface.Outcome) {
	sum := s.Fingerprint()
	r.Conclusion, r.Fingerprint, r.Pinned = string(o.Conclusion), &sum, o.Pinned
	r.Items, r.Octets, r.Offered = len(s.Items()), s.Octets(), len(o.Offered)
	r.Reviewed, r.Cached = o.Reviewed, o.Cached
	if o.Why != nil {
		r.Why, r.Said = o.Why.Error(), reviewerSaid(o.Why)
		if plain := reviewer.Failure(o.Why); plain != "" {
			r.Why, r.review = plain+": "+r.Why, true
		}
	}
	for i := range o.Inspection.Hits {
		h := &o.Inspection.Hits[i]
		hidden := checkedHidden{Kind: h.Key.Kind, Item: h.Key.Name, Pointer: h.Pointer, Code: h.Code,
			Start: h.Start, End: h.End, Shown: h.Shown(), place: h.Place.String(), key: h.Key, path: h.Path}
		for _, m := range h.Messages() {
			hidden.Messages = append(hidden.Messages, m.Message)
		}
		r.Hidden = append(r.Hidden, hidden)
	}
	r.MoreHidden = o.Inspection.More
	if a := o.Admission; a != nil && !a.First {
		r.Moved = a.Moved
		for _, c := range a.Changes {
			if c.Verdict != surface.Unchanged {
				r.Changes = append(r.Changes, pinview.NewChange(c, a.State(c.Key), surface.Field.Show))
			}
		}
	}
	for _, w := range s.Lint() {
		r.Wording = append(r.Wording, checkedWording{w.Place.String(), w.Family, w.Score, w.Shown(), w.Key, w.Path})
	}
	r.Told = told(s)
	r.Removed = s.Removals()
	for _, l := range s.LeftOut() {
		r.LeftOut = append(r.LeftOut, checkedLeftOut{l.Method, l.Entry, l.Name, l.Keyword, l.Place, l.String()})
	}
	r.omitted(s, o)
}

// A checkedLeftOut is an entry of a list. The name is third-party text.
type checkedLeftOut struct {
	Method  string `json:"method"`
	Entry   int    `json:"entry"`
	Name    string `json:"name,omitzero"`
	Keyword string `json:"keyword"`
	Place   string `json:"place,omitzero"`

	shown string
}

// omitted lists what nobody has looked at.
func (r *checkedServer) omitted(s *surface.Surface, o *surface.Outcome) {
	not := func(format string, args ...any) {
		r.NotInspected = append(r.NotInspected, fmt.Sprintf(format, args...))
	}
	if !o.Reviewed && !r.review {
		not("the meaning of the words: the review by a model (pass 2) was not made")
	}
	for _, u := range s.Unlisted() {
		switch {
		case u.Declared:
			not("%s: the server says that it has this list, and answered with error %d", u.Method, u.Code)
		case u.Code != noSuchMethod:
			not("%s: the server answered with error %d", u.Method, u.Code)
		}
	}
	for _, b := range o.Inspection.Blobs {
		not("%s: a data URI that holds no text", b)
	}
}

// noSuchMethod is JSON-RPC's.
const noSuchMethod = -32601

// conclude makes the worst of all servers the conclusion.
func (r *preflight) conclude() {
	for _, is := range []string{string(surface.Rejected), string(surface.Differs), unreachable, string(surface.Clean)} {
		for _, s := range r.Servers {
			if s.Conclusion == is {
				r.Conclusion = is
				return
			}
		}
	}
	r.Conclusion = notChecked
}

func (r *preflight) exit() error {
	switch r.Conclusion {
	case string(surface.Clean):
		return nil
	case string(surface.Rejected):
		return exit.With(exit.Rejected, nil)
	case string(surface.Differs):
		return exit.With(exit.Changed, nil)
	case unreachable:
		return exit.With(exit.NoServer, nil)
	}
	return errors.New("check: nothing was checked")
}

// write tells a person.
func (r *preflight) write(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	count := map[string]int{}
	for i, s := range r.Servers {
		if i > 0 {
			fmt.Fprintln(w)
		}
		s.write(w, p)
		count[s.Conclusion]++
	}
	if len(r.Shadows) > 0 {
		terminal.Section(w, p, "one server in another's light")
		for _, s := range r.Shadows {
			what := map[string]string{string(surface.SameName): "has the same name as", string(surface.LookAlike): "looks like",
				string(surface.Mentions): "talks about"}[s.How]
			fmt.Fprintf(w, "  %s: %s %s %s of %s\n", terminal.Inline(s.Server), terminal.Inline(s.Place), what, finding.Quote(s.Tool), terminal.Inline(s.Other))
		}
	}
	if len(r.Servers) > 1 {
		var parts []string
		for _, is := range []string{string(surface.Clean), string(surface.Differs), string(surface.Rejected), unreachable, notChecked, skipped} {
			if count[is] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", count[is], is))
			}
		}
		fmt.Fprintf(w, "\n%s: %s\n", terminal.Plural(len(r.Servers), "server"), strings.Join(parts, ", "))
	}
	return w.Flush()
}

func (r *checkedServer) write(w io.Writer, p terminal.Palette) {
	name := r.Name
	if name == "" {
		name = "surface"
	}
	fmt.Fprint(w, p.Bold(terminal.Inline(name)))
	if r.File != "" {
		fmt.Fprintf(w, "  %s", terminal.Inline(r.File))
	}
	fmt.Fprintln(w)
	paint := map[string]func(string) string{string(surface.Clean): p.Green, string(surface.Differs): p.Yellow}[r.Conclusion]
	if paint == nil {
		paint = p.Red
	}
	row := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-13s %s\n", label, terminal.Printable(fmt.Sprintf(format, args...)))
	}
	if r.Why != "" {
		row(paint(fmt.Sprintf("%-13s", r.Conclusion)), "%s", r.Why)
	} else {
		row(paint(fmt.Sprintf("%-13s", r.Conclusion)), "%s, %s octets", terminal.Plural(r.Items, "item"), terminal.Thousands(r.Octets))
	}
	if r.Said != "" {
		fmt.Fprintf(w, "  %-13s %s\n", "reviewer", pinview.Hanging(cutText(r.Said, maxSaidShown)))
	}
	for _, line := range r.Stderr {
		row("it said", "%s", line)
	}
	if r.Fingerprint != nil {
		row("fingerprint", "%s", r.Fingerprint)
	}
	if r.Reviewed {
		row("reviewed", "%s", map[bool]string{false: "OK, now", true: "OK, remembered"}[r.Cached])
	}
	if r.Pinned {
		row("pinned", "now: what differs from this later waits for you")
	}
	if r.Offered > 0 {
		row("pinned", "now: %s that it offers only to clients with more capabilities", terminal.Plural(r.Offered, "item"))
	}
	if r.Moved {
		row("note", "it is reached in another way than when it was pinned")
	}
	r.writeHidden(w, p, row)
	for _, c := range r.Changes {
		c.Write(w, p)
	}
	if r.Conclusion == string(surface.Differs) {
		row("decide", "pellucid pins diff %s, then approve or block", terminal.ShellWord(r.Pin))
	}
	for _, x := range r.Wording {
		row("wording", "%s: %s (%d): %s", x.Place, x.Family, x.Score, x.Shown)
	}
	for _, x := range r.Told {
		row("told", "%s: reads like an order to a model (%.2f): %s", x.Place, x.Score, x.Shown)
	}
	for _, x := range r.Removed {
		row("removed", "%s: %s, %s, before a model sees it", x.Key(), terminal.Plural(x.N, "part"), x.Code)
	}
	for _, x := range r.LeftOut {
		row("left out", "%s: not what the protocol's schema allows", x.shown)
	}
	for _, x := range r.NotInspected {
		row("not inspected", "%s", x)
	}
}

// maxSaidShown is how much of a reviewer's answer is shown, in octets; --json has more.
const maxSaidShown = 1000

// cutText is the beginning of s, of at most most octets, between characters.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + " …"
}

func (r *checkedServer) writeHidden(w io.Writer, p terminal.Palette, row func(label, format string, args ...any)) {
	for _, h := range r.Hidden {
		row("hidden text", "%s, octets %d to %d: %s", h.place, h.Start, h.End, h.Code)
		fmt.Fprintf(w, "    %s\n", terminal.Printable(h.Shown))
		for _, m := range h.Messages {
			fmt.Fprintf(w, "    it says: %s\n", p.Yellow(strings.ReplaceAll(terminal.Printable(m), "\n", "\n      ")))
		}
	}
	if r.MoreHidden > 0 {
		row("hidden text", "and in %d more places", r.MoreHidden)
	}
}
