// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"encoding/json"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Found is what the boundary has found in an item. It holds no third-party text: codes, numbers,
// paths of the protocol's own words, and names of the configuration. It is kept with every item.
type Found struct {
	Findings []Finding `json:"findings,omitempty"`
	More     []Count   `json:"more,omitempty"` // findings beyond MaxFindings, by code
	Scores   []Score   `json:"scores,omitempty"`
	// Task is the method of the request about a task that the item has answered, and that gets it once it is
	// released; "": it is not about a task.
	Task string `json:"task,omitempty"`
}

// A Finding is one kind of finding at one place.
type Finding struct {
	Place string       `json:"place"` // as frame.Finding.Field
	Code  finding.Code `json:"code"`
	Count int          `json:"count"`
	Spans []Span       `json:"spans,omitempty"` // in the text at Place; at most maxSpans
}

// A Span is [Start, End) in bytes of a text as it was received.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// A Count is how often a code was found.
type Count struct {
	Code finding.Code `json:"code"`
	N    int          `json:"n"`
}

// A Score is what a classifier has said of the item.
type Score struct {
	Name    string  `json:"name"` // from the configuration
	Version string  `json:"version,omitempty"`
	Mode    string  `json:"mode"`
	P       float64 `json:"p"`
	Outcome string  `json:"outcome"`
	Code    string  `json:"label,omitempty"`  // the classifier's own reason
	Reason  string  `json:"reason,omitempty"` // why it has not judged
}

// Bounds of a Found.
const (
	MaxFindings = 200
	maxSpans    = 16 // of one Finding
)

// NewFound takes over what was found, within the bounds.
func NewFound(list []frame.Finding, scores []Score) Found {
	f := Found{Scores: scores}
	for _, x := range list {
		if len(f.Findings) == MaxFindings {
			f.Add(x.Code, x.Count)
			continue
		}
		own := Finding{Place: x.Field, Code: x.Code, Count: x.Count}
		for i, s := range x.Positions {
			if i == maxSpans { // the last one covers the rest
				own.Spans[maxSpans-1].End = x.Positions[len(x.Positions)-1].End
				break
			}
			own.Spans = append(own.Spans, Span{s.Start, s.End})
		}
		f.Findings = append(f.Findings, own)
	}
	return f
}

// Add counts findings of which no more is kept.
func (f *Found) Add(code finding.Code, n int) {
	for i := range f.More {
		if f.More[i].Code == code {
			f.More[i].N += n
			return
		}
	}
	f.More = append(f.More, Count{code, n})
}

// Counts are all findings by code, in the order in which the codes were found.
func (f *Found) Counts() []Count {
	var all Found
	for _, x := range f.Findings {
		all.Add(x.Code, x.Count)
	}
	for _, c := range f.More {
		all.Add(c.Code, c.N)
	}
	return all.More
}

// A Question is what was asked, as a document that is sealed with the item. It is kept where the
// operator asks for it.
type Question struct {
	ID        string `json:"id"`                  // of the item
	Arguments string `json:"arguments,omitempty"` // JSON, as the client has spelled it; "" where it is too long to be kept
	Bytes     int    `json:"bytes"`               // of the arguments
	Params    int    `json:"-"`                   // bytes of all parameters of the call
	// Context is what a model has read before it proposed the call, as the guard describes it.
	Context json.RawMessage `json:"context,omitempty"`
}

// MaxArguments is how many bytes of arguments are kept of one call.
const MaxArguments = 64 << 10

// Document is q as it is sealed.
func (q Question) Document() []byte {
	b, err := json.Marshal(q)
	if err != nil {
		return nil // never: Context is JSON of ours
	}
	return b
}

// ReadQuestion reads what was sealed with the item. Arguments that are not those of the recorded call
// are ErrOpened: another process may have stored them.
func (it *Item) ReadQuestion(document []byte) (q Question, err error) {
	if json.Unmarshal(document, &q) != nil || q.ID != it.ID {
		return Question{}, ErrOpened
	}
	if q.Arguments != "" && !it.IsCall() && CallOf(it.Principal, it.Server, it.Tool, []byte(q.Arguments)) != it.Call {
		return Question{}, ErrOpened
	}
	return q, nil
}

// maxHidden is how many bytes of decoded messages are kept with an item, to be listed and searched.
const maxHidden = 1 << 10

// hiddenIn decodes the messages in hidden characters of a body, one a line.
func hiddenIn(body []byte) string {
	var doc strictjson.Doc
	if doc.Reset(body, strictjson.Limits{MendSurrogates: true}) != nil {
		return ""
	}
	var b strings.Builder
	reveal(doc.Root(), &b)
	// Postgres keeps no NUL in a text.
	return strings.ReplaceAll(strings.ToValidUTF8(b.String()[:min(b.Len(), maxHidden)], ""), "\x00", "\ufffd")
}

func reveal(v strictjson.Value, b *strings.Builder) {
	if b.Len() >= maxHidden {
		return
	}
	switch v.Kind() {
	case '{':
		for name, m := range v.Members() {
			revealText(name.Text(), b)
			reveal(m, b)
		}
	case '[':
		for e := range v.Elements() {
			reveal(e, b)
		}
	case '"':
		revealText(v.Text(), b)
	}
}

func revealText(s string, b *strings.Builder) {
	for _, h := range scrub.Reveal(s) {
		if h.Message == "" || b.Len() >= maxHidden {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(h.Message)
	}
}
