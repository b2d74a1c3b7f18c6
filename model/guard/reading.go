// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A part says what an event of a stream is to whoever waits for it.
type part uint8

const (
	partPreamble part = iota // says nothing yet: kept until something else comes
	partShown                // of the answer: it goes on as it is
	partHeld                 // from here on a call is proposed that must not go on by itself
	partFault                // the provider reports an error: the answer ends without an end
	partEnd
)

// An answer is what a provider has said, as far as it matters here.
type answer struct {
	said   counterfactual.Answer
	input  int64 // tokens; 0 = not said
	output int64
	// strange: there is something in it that this package does not read, and that a
	// client may take for a call.
	strange bool
	// bare: a response without any output.
	bare bool
	// fetched: the provider has run something on the way, whose result the model has read
	// before it proposed what comes behind.
	fetched bool
}

// privileged reports whether a decision is needed.
func (a *answer) privileged(p *counterfactual.Policy) bool {
	for _, c := range a.said.Calls {
		if p.Privilege(c.Name) > 0 {
			return true
		}
	}
	return a.strange
}

// A reading takes in a stream, event by event.
type reading interface {
	event(e eventstream.Event) part
	answer() *answer
	// tail ends, with a text, a stream of which nothing after the last event that was
	// partShown has been passed on.
	tail(text string) []byte
}

// A format is what this package knows of a wire format.
type format struct {
	format  counterfactual.Format
	path    string
	reading func(*counterfactual.Policy) reading
	// whole reads a body that is no stream.
	whole func(root strictjson.Value) *answer
	// refusal is a body that says a text, in the name of a model.
	refusal func(id, model, text string) []byte
	// events are the events that say what a body says.
	events func(root strictjson.Value) []byte
	// fault is the body of an error.
	fault func(kind, text string) []byte
}

var formats = []*format{
	{counterfactual.FormatChat, "/v1/chat/completions", newChat, chatWhole, chatRefusal, chatEvents, openAIFault},
	{counterfactual.FormatResponses, "/v1/responses", newResponses, responsesWhole, responsesRefusal, responsesEvents, openAIFault},
	{counterfactual.FormatMessages, "/v1/messages", newMessages, messagesWhole, messagesRefusal, messagesEvents, messagesFault},
}

// lenient is what is forgiven to models: they cut strings in the middle of a
// surrogate pair.
var lenient = strictjson.Limits{MendSurrogates: true}

// parse reads an object; the Value is absent if the text is not an object.
func parse(src []byte) strictjson.Value {
	var doc strictjson.Doc
	if doc.Reset(src, lenient) != nil || doc.Root().Kind() != '{' {
		return strictjson.Value{}
	}
	return doc.Root()
}

// typed reads the data of an event that says its type itself. It is absent if it is no
// object, if it is of another type than the event's name says, or if another client may
// take a member of it for one of members.
func typed(e eventstream.Event, members ...string) (v strictjson.Value, kind string) {
	v = parse(e.Data)
	kind = v.Get("type").Text()
	if _, stray := v.Strays(members); stray || e.Name != "" && e.Name != kind {
		return strictjson.Value{}, ""
	}
	return v, kind
}

// read reads a body that is no stream.
func (f *format) read(body []byte) *answer {
	root := parse(body)
	if !root.Exists() {
		return &answer{strange: true}
	}
	a := f.whole(root)
	said, err := counterfactual.ParseAnswer(f.format, root.Raw())
	if err != nil {
		return &answer{strange: true}
	}
	a.said = *said
	return a
}

// collected is what the readings have in common.
type collected struct {
	policy  *counterfactual.Policy
	text    strings.Builder
	calls   []*pending
	argued  int // bytes of their arguments
	held    bool
	strange bool
	fetched bool
	input   int64
	output  int64
}

// A pending call is one whose arguments are still coming in.
type pending struct {
	id, name  string
	arguments strings.Builder
}

// call takes in a new call, and says what its events are.
func (c *collected) call(id, name string) *pending {
	p := &pending{id: strings.Clone(id), name: strings.Clone(name)}
	c.calls = append(c.calls, p)
	if c.policy.Privilege(p.name) > 0 {
		c.held = true
	}
	return p
}

// passed reports whether a call has gone to the client: the first one that has not
// is the first that is held.
func (c *collected) passed() bool {
	return len(c.calls) > 0 && c.policy.Privilege(c.calls[0].name) == 0
}

// odd takes note of something that is not read.
func (c *collected) odd() part {
	c.held, c.strange = true, true
	return partHeld
}

// bare says what an event is that has no data, or lines that some readers take for data.
func (c *collected) bare(e eventstream.Event) (is part, yes bool) {
	switch {
	case e.Odd:
		return c.odd(), true
	case !e.HasData:
		return c.part(partPreamble), true
	}
	return 0, false
}

// maxSaid bounds what is kept, in bytes, of an answer that goes on as it comes: its
// text is cut there, and a call that is longer is one that is not read.
const maxSaid = 8 << 20

// say takes in a piece of the text.
func (c *collected) say(s string) {
	c.text.WriteString(s[:min(len(s), max(maxSaid-c.text.Len(), 0))])
}

// argue takes in a piece of a call's arguments.
func (c *collected) argue(p *pending, s string) {
	if c.argued += len(s); c.argued > maxSaid {
		c.odd()
		return
	}
	p.arguments.WriteString(s)
}

// part is what an event is that is part of the answer.
func (c *collected) part(of part) part {
	if c.held {
		return partHeld
	}
	return of
}

func (c *collected) answer() *answer {
	a := &answer{input: c.input, output: c.output, strange: c.strange, fetched: c.fetched}
	a.said.Text = c.text.String()
	for _, p := range c.calls {
		arguments := cmp.Or(p.arguments.String(), "{}")
		a.said.Calls = append(a.said.Calls, counterfactual.Call{ID: p.id, Name: p.name, Arguments: []byte(arguments)})
	}
	return a
}

// count reads a number of tokens; 0 if the value is not a number.
func count(v strictjson.Value) int64 {
	n, ok := v.Int64()
	if !ok || n < 0 || n > 1<<40 {
		return 0
	}
	return n
}

// says reports whether a member holds anything.
func says(v strictjson.Value) bool {
	switch v.Kind() {
	case 0, 'n':
		return false
	case '"':
		return len(v.Raw()) > 2
	case '[', '{':
		return v.Len() > 0
	}
	return true
}

// A writer puts JSON and events together.
type writer struct{ b []byte }

func (w *writer) raw(s string)   { w.b = append(w.b, s...) }
func (w *writer) text(s string)  { w.b = strictjson.AppendQuote(w.b, s) }
func (w *writer) value(v []byte) { w.b = append(w.b, v...) }

// or writes a value, or a spelling of it where it is absent.
func (w *writer) or(v strictjson.Value, absent string) {
	if v.Exists() {
		w.b = append(w.b, v.Raw()...)
	} else {
		w.raw(absent)
	}
}

// event writes one event; f writes its data, which holds no line end.
func (w *writer) event(name string, f func()) {
	if name != "" {
		w.raw("event: " + name + "\n")
	}
	w.raw("data: ")
	start := len(w.b)
	f()
	for i, c := range w.b[start:] { // white space of the provider's between values
		if c == '\n' || c == '\r' {
			w.b[start+i] = ' '
		}
	}
	w.raw("\n\n")
}
