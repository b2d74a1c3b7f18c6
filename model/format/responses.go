// SPDX-License-Identifier: Apache-2.0

package format

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// responses is OpenAI's responses.
type responses struct{ sse }

func (responses) Name() Name               { return Responses }
func (responses) Path(string, bool) string { return "/responses" }

func (responses) Read(root strictjson.Value) *Answer {
	a := &Answer{}
	var f fields
	f.strays(root, "output", "error")
	if root.Get("error").Kind() == '{' {
		a.Parts = append(a.Parts, Part{Kind: PartError, Value: root})
	}
	if object := f.text(root, "object"); object != "response" {
		f.odd |= OddShape
	}
	a.ID, a.Model = f.text(root, "id"), f.text(root, "model")
	a.Stop = responsesStop(f.text(root, "status"), f.text(f.object(root, "incomplete_details", OddShape), "reason"))
	a.Usage = responsesUsage(root.Get("usage"))
	output := root.Get("output")
	if output.Kind() != '[' {
		f.odd |= OddCall
	}
	for item := range output.Elements() {
		f.responsesItem(a, item)
	}
	a.Odd = f.odd
	return a
}

func (f *fields) responsesItem(a *Answer, item strictjson.Value) {
	f.strays(item, "type", "name", "arguments", "input")
	kind := f.text(item, "type")
	a.Fetched = a.Fetched || responsesFetched(kind)
	switch kind {
	case "message":
		if f.text(item, "role") != "assistant" {
			f.odd |= OddShape
		}
		for part := range f.array(item, "content", OddShape).Elements() {
			switch f.text(part, "type") {
			case "output_text":
				a.say(PartText, f.text(part, "text"))
			case "refusal":
				a.say(PartRefusal, f.text(part, "refusal"))
			default:
				f.odd |= OddShape
			}
		}
	case "reasoning":
		for _, name := range []string{"summary", "content"} {
			for part := range f.array(item, name, OddShape).Elements() {
				a.say(PartReasoning, f.text(part, "text"))
			}
		}
	case "function_call", "custom_tool_call":
		a.call(f, f.responsesCall(kind, item))
	default:
		if !responsesServed(kind) {
			f.odd |= OddCall
		}
		a.Parts = append(a.Parts, Part{Kind: PartServed})
	}
}

// responsesCall reads an item that is a call.
func (f *fields) responsesCall(kind string, item strictjson.Value) Call {
	c := Call{ID: f.text(item, "call_id"), Name: f.text(item, "name")}
	if kind == "custom_tool_call" {
		c.Kind, c.Arguments = CallCustom, []byte(f.text(item, "input"))
	} else {
		c.Arguments = []byte(f.text(item, "arguments"))
	}
	return c
}

// responsesServed are kinds of items that call for nothing: what the provider has done by
// itself, or keeps for itself.
func responsesServed(kind string) bool {
	switch kind {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
		"mcp_call", "mcp_list_tools", "compaction", "tool_search_call", "program":
		return true
	}
	return strings.HasSuffix(kind, "_output")
}

// responsesFetched reports whether the model has read, with an item, what it had not been
// given.
func responsesFetched(kind string) bool {
	switch kind {
	case "message", "reasoning", "function_call", "custom_tool_call", "image_generation_call", "compaction":
		return false
	}
	return true
}

func responsesStop(status, why string) Stop {
	switch {
	case status == "completed":
		return StopEnd
	case status == "incomplete" && why == "max_output_tokens":
		return StopLength
	case status == "incomplete" && why == "content_filter":
		return StopFilter
	}
	return StopOther
}

func responsesUsage(v strictjson.Value) Usage {
	if v.Kind() != '{' {
		return Usage{}
	}
	var f fields
	return f.usage(Usage{
		Input:     f.count(v, "input_tokens"),
		Cached:    f.count(f.object(v, "input_tokens_details", OddShape), "cached_tokens"),
		Output:    f.count(v, "output_tokens"),
		Reasoning: f.count(f.object(v, "output_tokens_details", OddShape), "reasoning_tokens"),
	})
}

func (responses) NewStream() Stream { return &responsesStream{} }

// responsesStream reads the events of one response. Its last event holds the response
// again; some clients act on that one, others on the events before it.
type responsesStream struct {
	events
	head    strictjson.Value // of the response as it began
	last    *Answer
	said    []*said // in the order of their announcement
	fetched bool

	// What a client has got, and what the event that was read last would add to it.
	passed, now struct {
		items    []strictjson.Value // that are done
		bytes    int                // of their events
		next     int                // output_index of the next item
		sequence int64
		text     int      // bytes of the texts
		open     openItem // the message that is not done
	}
}

// An openItem is a message that has been announced and is not done.
type openItem struct {
	id   string // "": there is none
	at   int    // output_index
	from int    // bytes of the texts before its own
	part bool   // a part of it has begun
}

// said is what events have said of a call before the response does in which they end.
type said struct {
	at    int64 // output_index
	index int   // of the call in events.calls; -1: it was not announced
	done  *Call // nil: it was not
}

func (s *responsesStream) Event(e eventstream.Event) ([]Part, Odd) {
	if s.begin(e) {
		v, kind := s.typed(e, "type", "item", "response", "output_index", "delta")
		s.now = s.passed
		s.now.sequence = max(s.now.sequence, s.count(v, "sequence_number"))
		s.take(kind, v, e.Data)
		s.now.text = s.texts[PartText].Len()
	}
	return s.parts, s.odd
}

func (s *responsesStream) take(kind string, v strictjson.Value, data []byte) {
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		r := s.object(v, "response", OddCall)
		if says(r.Get("output")) {
			s.odd |= OddCall
		}
		if !s.head.Exists() {
			s.head = Parse(append([]byte(nil), data...)).Get("response")
		}
		return
	case "response.output_item.added":
		s.item(v, false)
		if item := v.Get("item"); item.Get("type").Text() == "message" {
			s.now.open = openItem{id: cmp.Or(s.text(item, "id"), itemID), at: int(s.count(v, "output_index")), from: s.texts[PartText].Len()}
		}
	case "response.content_part.added":
		s.now.open.part = s.now.open.id != ""
	case "response.output_item.done":
		s.item(v, true)
		if int(s.count(v, "output_index")) == s.now.open.at {
			s.now.open = openItem{}
		}
		s.now.next = max(s.now.next, int(s.count(v, "output_index"))+1)
		item := Parse(append([]byte(nil), data...)).Get("item")
		if s.now.bytes += len(data); s.now.bytes <= MaxKept && item.Kind() == '{' {
			s.now.items = append(s.now.items, item)
		}
	case "response.completed", "response.incomplete", "response.failed":
		s.last = responses{}.Read(s.object(v, "response", OddCall))
		s.agree()
		s.add(Part{Kind: PartEnd})
	case "error":
		s.add(Part{Kind: PartError, Value: v})
	case "response.output_text.delta":
		s.say(PartText, s.text(v, "delta"))
	case "response.refusal.delta":
		s.say(PartRefusal, s.text(v, "delta"))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.say(PartReasoning, s.text(v, "delta"))
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		s.piece(v, s.text(v, "delta"), false)
	case "response.function_call_arguments.done":
		s.piece(v, s.text(v, "arguments"), true)
	case "response.custom_tool_call_input.done":
		s.piece(v, s.text(v, "input"), true)
	}
	s.add(Part{Kind: PartOther})
}

// item reads an item that is announced or done.
func (s *responsesStream) item(v strictjson.Value, done bool) {
	item := s.object(v, "item", OddCall)
	s.strays(item, "type", "name", "arguments", "input")
	kind := s.text(item, "type")
	s.fetched = s.fetched || responsesFetched(kind)
	switch kind {
	case "message", "reasoning":
	case "function_call", "custom_tool_call":
		s.announce(v, s.responsesCall(kind, item), done)
	default:
		if !responsesServed(kind) {
			s.odd |= OddCall
		}
		s.add(Part{Kind: PartServed})
	}
}

// announce takes in a call that is announced or done.
func (s *responsesStream) announce(v strictjson.Value, c Call, done bool) {
	at, known := s.find(v)
	if known == nil || !done || known.done != nil {
		if len(s.said) == MaxCalls {
			s.odd |= OddCall
			return
		}
		known = &said{at: at, index: -1}
		if at < 0 {
			known.at = int64(len(s.said))
		}
		s.said = append(s.said, known)
	}
	arguments := string(c.Arguments)
	if !done {
		c.Arguments = nil
		if s.call(c) != nil {
			known.index = len(s.calls) - 1
			s.argue(known.index, arguments)
		}
		return
	}
	if s.keep(arguments) {
		known.done = &c
		s.add(Part{Kind: PartCallWhole, Index: known.index, Call: c})
	}
}

// find is the call that an event is about, and its output_index: the last one, and -1, if
// the event does not say.
func (s *responsesStream) find(v strictjson.Value) (at int64, known *said) {
	at, named := v.Get("output_index").Int64()
	if !named {
		at = -1
	}
	for _, c := range slices.Backward(s.said) {
		if !named || c.at == at {
			return at, c
		}
	}
	return at, nil
}

// piece takes in a piece of the arguments of a call, or all of them.
func (s *responsesStream) piece(v strictjson.Value, arguments string, all bool) {
	_, known := s.find(v)
	if known == nil || known.index < 0 {
		s.odd |= OddCall
		return
	}
	have := &s.calls[known.index].arguments
	switch {
	case !all || have.Len() == 0:
		s.argue(known.index, arguments)
	case have.String() != arguments:
		s.odd |= OddOrder
	}
}

// agree compares the response with the events before it.
func (s *responsesStream) agree() {
	a := s.last
	a.Fetched = a.Fetched || s.fetched
	empty := len(a.Parts) == 0
	for _, k := range []PartKind{PartText, PartRefusal} {
		if a.Text(k, "") != s.texts[k].String() {
			a.Odd |= OddShape
		}
	}
	if len(s.said) == 0 {
		return
	}
	var calls []Call
	slices.SortStableFunc(s.said, func(x, y *said) int { return cmp.Compare(x.at, y.at) })
	for _, c := range s.said {
		if c.done == nil {
			a.Odd |= OddOrder
			continue
		}
		if c.index >= 0 {
			b := s.calls[c.index]
			if b.Name != c.done.Name || b.arguments.Len() > 0 && b.arguments.String() != string(c.done.Arguments) {
				a.Odd |= OddOrder
			}
		}
		calls = append(calls, *c.done)
	}
	if empty { // a provider that does not repeat what it has said: the answer is made whole
		a.say(PartText, s.texts[PartText].String())
		var f fields
		for _, c := range calls {
			a.call(&f, c)
		}
	}
	if !slices.EqualFunc(calls, a.Calls(), func(x, y Call) bool {
		return x.Name == y.Name && cmp.Or(string(x.Arguments), "{}") == cmp.Or(string(y.Arguments), "{}")
	}) {
		a.Odd |= OddOrder
	}
}

func (s *responsesStream) Answer() *Answer {
	if s.last == nil {
		a := s.whole()
		a.Odd = OddCall // it has no end
		return a
	}
	return s.last
}

func (s *responsesStream) Passed() { s.passed = s.now }

func (s *responsesStream) AppendTail(dst []byte, text string) []byte {
	w := &responsesWriter{writer{dst}, s.passed.sequence + 1}
	shown, open, next := s.texts[PartText].String()[:s.passed.text], s.passed.open, s.passed.next
	if open.id != "" {
		next = max(next, open.at+1)
		if open.part {
			w.messageEnd(open.at, open.id, shown[open.from:])
		}
		w.messageDone(open.at, open.id, shown[open.from:])
	}
	w.message(next, text)
	w.end(s.head, func() {
		spoken := false
		for _, v := range s.passed.items {
			spoken = spoken || v.Get("type").Text() == "message"
			w.value(v.Raw())
			w.raw(",")
		}
		switch {
		case open.id != "":
			w.textItem(open.id, shown[open.from:], "completed")
			w.raw(",")
		case !spoken && shown != "": // a provider that announces no items
			w.textItem(itemID, shown, "completed")
			w.raw(",")
		}
		w.textItem(itemID, text, "completed")
	})
	return w.b
}
