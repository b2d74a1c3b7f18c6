// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/descriptions"
	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// The conclusions about a server, beside those of package surface.
const (
	Unreachable = "unreachable"
	notChecked  = "not-checked" // the person declined to start it
	skipped     = "skipped"     // its file has disabled it
)

// A Report says what came of all servers, to a person and as JSON. Names, texts,
// messages and the sides of fields are third-party text.
type Report struct {
	Conclusion string    `json:"conclusion"`
	Servers    []*Server `json:"servers"`
	Shadows    []Shadow  `json:"shadows,omitzero"`
}

// A Server says what came of one server.
type Server struct {
	Name         string            `json:"name,omitzero"`
	Pin          string            `json:"pin,omitzero"` // as pellucid pins lists it
	Client       string            `json:"client,omitzero"`
	File         string            `json:"file,omitzero"`
	Conclusion   string            `json:"conclusion"`
	Why          string            `json:"why,omitzero"`
	Said         string            `json:"said,omitzero"` // by the reviewer that rejected
	Stderr       []string          `json:"stderr,omitzero"`
	Lacks        []string          `json:"lacks,omitzero"`    // variables that it asked for and did not get
	Withheld     []string          `json:"withheld,omitzero"` // variables that it did not get because they carry secrets
	Fingerprint  *surface.Digest   `json:"fingerprint,omitzero"`
	Items        int               `json:"items"`
	Bytes        int               `json:"bytes"`
	Reviewed     bool              `json:"reviewed"`           // by a model, now or
	Cached       bool              `json:"cached,omitzero"`    // before
	Pinned       bool              `json:"pinned"`             // now, for the first time
	Offered      int               `json:"offered,omitzero"`   // items that were pinned now, being offered to more capable clients only
	Unsettled    int               `json:"unsettled,omitzero"` // items that changed while the server was checked for the first time
	Moved        bool              `json:"moved,omitzero"`
	Hidden       []Hidden          `json:"hidden,omitzero"`
	MoreHidden   int               `json:"more_hidden,omitzero"`
	Changes      []pinview.Change  `json:"changes,omitzero"`
	Wording      []Wording         `json:"wording,omitzero"`
	Told         []Told            `json:"told,omitzero"`
	Removed      []surface.Removal `json:"removed,omitzero"`  // before a model sees it
	LeftOut      []LeftOut         `json:"left_out,omitzero"` // no client sees it, for its form
	NotInspected []string          `json:"not_inspected"`

	review bool // by pass 2 it was rejected
}

// A Hidden is a place where a server hides text.
type Hidden struct {
	Kind     surface.Kind `json:"kind"`
	Item     string       `json:"item,omitzero"`
	Pointer  string       `json:"pointer"`
	Code     finding.Code `json:"code"`
	Start    int          `json:"start"`
	End      int          `json:"end"`
	Shown    string       `json:"shown"`
	Messages []string     `json:"messages,omitzero"`

	place string
	path  string
}

// A Wording is a place whose words manipulation often uses. It decides nothing.
type Wording struct {
	Place  string         `json:"place"`
	Family surface.Family `json:"family"`
	Score  int            `json:"score"`
	Shown  string         `json:"shown"`

	key  surface.Key
	path string
}

// A Told is a title, a description or an instruction that the model which comes with the
// program takes for an order to a model. It decides nothing.
type Told struct {
	Place   string  `json:"place"`
	Score   float64 `json:"score"` // 0 to 1; no probability
	Shown   string  `json:"shown"`
	Version string  `json:"version"` // of the model

	key  surface.Key
	path string
}

// A Shadow is a name or text of one server that reaches into another. It decides nothing.
type Shadow struct {
	How    string `json:"how"`
	Server string `json:"server"`
	Place  string `json:"place"`
	Other  string `json:"other"`
	Tool   string `json:"tool"`

	key  surface.Key
	path string
}

// fill tells what came of a server that could be read.
func (r *Server) fill(s *surface.Surface, o *surface.CheckResult) {
	sum := s.Fingerprint()
	r.Conclusion, r.Fingerprint, r.Pinned = string(o.Conclusion), &sum, o.Pinned
	r.Items, r.Bytes, r.Offered = len(s.Items()), s.Bytes(), len(o.Offered)
	r.Reviewed, r.Cached = o.Reviewed, o.Cached
	if o.Why != nil {
		r.Why, r.Said = o.Why.Error(), said(o.Why)
		if plain := reviewer.Failure(o.Why); plain != "" {
			r.Why, r.review = plain+": "+r.Why, true
		}
	}
	for i := range o.Inspection.Hits {
		h := &o.Inspection.Hits[i]
		hidden := Hidden{Kind: h.Key.Kind, Item: h.Key.Name, Pointer: h.Pointer, Code: h.Code,
			Start: h.Start, End: h.End, Shown: h.Shown(), place: h.Place.String(), path: h.Path}
		for _, m := range h.Messages() {
			hidden.Messages = append(hidden.Messages, m.Message)
		}
		r.Hidden = append(r.Hidden, hidden)
	}
	r.MoreHidden = o.Inspection.More
	if a := o.Admission; a != nil && !a.First {
		r.Moved = a.Moved
		for _, c := range a.Changes {
			if c.Difference != surface.Unchanged && !slices.ContainsFunc(o.Unsettled, func(u surface.Change) bool { return u.Key == c.Key }) {
				r.Changes = append(r.Changes, pinview.NewChange(c, a.State(c.Key), surface.Field.Show))
			}
		}
	}
	for _, c := range o.Unsettled {
		r.Unsettled++
		r.Changes = append(r.Changes, pinview.NewChange(c, surface.Pending, surface.Field.Show))
	}
	r.describe(s)
	r.Removed = s.Removals()
	for _, l := range s.LeftOut() {
		r.LeftOut = append(r.LeftOut, LeftOut{l.Method, l.Entry, l.Name, l.Keyword, l.Place, l.String()})
	}
	r.omitted(s, o)
}

// describe tells what the rules of wording and the model find in the server's own words.
func (r *Server) describe(s *surface.Surface) {
	for _, v := range descriptions.New().Judge(context.Background(), s.Items()) {
		for _, w := range v.Wording {
			r.Wording = append(r.Wording, Wording{w.Place.String(), w.Family, w.Score, w.Shown(), w.Key, w.Path})
		}
		for _, x := range v.Told {
			r.Told = append(r.Told, Told{x.Place.String(), float64(int(x.Score*100)) / 100, x.Shown, v.Of.Version, x.Key, x.Path})
		}
		if v.Of.Reason != classify.Judged {
			r.NotInspected = append(r.NotInspected, fmt.Sprintf("%s: the model has not judged its descriptions: %s", v.Item.Key, v.Of.Reason))
		}
	}
}

// A LeftOut is an entry of a list. The name is third-party text.
type LeftOut struct {
	Method  string `json:"method"`
	Entry   int    `json:"entry"`
	Name    string `json:"name,omitzero"`
	Keyword string `json:"keyword"`
	Place   string `json:"place,omitzero"`

	shown string
}

// omitted lists what was not inspected.
func (r *Server) omitted(s *surface.Surface, o *surface.CheckResult) {
	not := func(format string, args ...any) {
		r.NotInspected = append(r.NotInspected, fmt.Sprintf(format, args...))
	}
	if !o.Reviewed && !r.review {
		not("the meaning of the words: no model reviewed them: --review-model")
	}
	for _, u := range s.Unlisted() {
		switch {
		case u.Declared:
			not("%s: the server says that it has this list, and answered with error %d", u.Method, u.Code)
		case u.Code != noSuchMethod:
			not("%s: the server answered with error %d", u.Method, u.Code)
		}
	}
	for _, method := range s.Looped() {
		not("%s: the list repeats a cursor, or has one that is not a string, and ends there", method)
	}
	for _, b := range o.Inspection.Blobs {
		not("%s: a data URI that holds no text", b)
	}
}

// noSuchMethod is JSON-RPC's.
const noSuchMethod = -32601

// conclude makes the worst of all servers the conclusion.
func (r *Report) conclude() {
	for _, is := range []string{string(surface.Rejected), string(surface.Differs), Unreachable, string(surface.Clean)} {
		for _, s := range r.Servers {
			if s.Conclusion == is {
				r.Conclusion = is
				return
			}
		}
	}
	r.Conclusion = notChecked
}

// said is what a model said of a surface that it did not pass, for a person: third-party
// text.
func said(err error) string {
	var rejected *surface.RejectedError
	if !errors.As(err, &rejected) {
		return ""
	}
	return strings.TrimSpace(rejected.Said)
}
