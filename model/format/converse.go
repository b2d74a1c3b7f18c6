// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// converse is Amazon Bedrock's Converse and ConverseStream.
type converse struct{ frames }

func (converse) Name() Name { return Converse }

func (converse) Path(model string, stream bool) string {
	if stream {
		return bedrockPath(model, "converse-stream")
	}
	return bedrockPath(model, "converse")
}

func (converse) Read(root strictjson.Value) *Answer {
	a := &Answer{}
	var f fields
	f.strays(root, "output", "stopReason")
	out := f.object(root, "output", OddCall)
	f.strays(out, "message")
	m := f.object(out, "message", OddCall)
	f.strays(m, "content")
	content := m.Get("content")
	if content.Kind() != '[' {
		f.odd |= OddCall
	}
	if f.text(m, "role") != "assistant" {
		f.odd |= OddShape
	}
	a.Stop, a.Usage = converseStop(f.text(root, "stopReason")), converseUsage(root.Get("usage"))
	for b := range content.Elements() {
		f.converseBlock(a, b)
	}
	a.Odd = f.odd
	return a
}

// blockKinds are the members of a block of which it has one, and what is odd about each:
// an image calls for nothing.
var blockKinds = map[string]Odd{"text": 0, "toolUse": 0, "toolResult": 0, "reasoningContent": 0, "citationsContent": 0,
	"image": 0, "document": 0, "video": 0, "audio": 0, "guardContent": 0, "cachePoint": 0, "searchResult": 0}

// converseUnion is the member by which a union says of which kind it is, and its value.
// What is of no kind that this package knows, or of two, may be a call to another reader.
func (f *fields) converseUnion(b strictjson.Value, kinds map[string]Odd) (kind string, v strictjson.Value) {
	if b.Kind() != '{' {
		f.odd |= OddCall
		return "", strictjson.Value{}
	}
	for name, m := range b.Members() {
		if m.Kind() == 'n' {
			continue
		}
		odd, known := kinds[name.Text()]
		if !known || kind != "" {
			odd = OddCall
		}
		f.odd |= odd
		kind, v = name.Text(), m
	}
	return kind, v
}

func (f *fields) converseBlock(a *Answer, b strictjson.Value) {
	switch kind, v := f.converseUnion(b, blockKinds); kind {
	case "text":
		a.say(PartText, f.text(b, "text"))
	case "reasoningContent":
		a.say(PartReasoning, f.text(f.object(v, "reasoningText", OddShape), "text"))
	case "citationsContent":
		for c := range f.array(v, "content", OddShape).Elements() {
			a.say(PartText, f.text(c, "text"))
		}
	case "toolUse":
		if f.converseServed(v) {
			a.Parts = append(a.Parts, Part{Kind: PartServed})
			return
		}
		a.call(f, Call{ID: f.text(v, "toolUseId"), Name: f.text(v, "name"), Arguments: append([]byte(nil), v.Get("input").Raw()...)})
	case "toolResult": // of a tool that the provider runs
		a.Fetched = true
		a.Parts = append(a.Parts, Part{Kind: PartServed})
	default:
		a.Parts = append(a.Parts, Part{Kind: PartOther})
	}
}

// converseServed reports whether a call is of a tool that the provider runs by itself.
func (f *fields) converseServed(v strictjson.Value) bool {
	f.strays(v, "name", "input", "type", "toolUseId")
	switch kind := f.text(v, "type"); kind {
	case "":
	case "server_tool_use":
		return true
	default:
		f.odd |= OddCall
	}
	return false
}

func converseStop(reason string) Stop {
	switch reason {
	case "content_filtered", "guardrail_intervened":
		return StopFilter
	case "malformed_model_output", "malformed_tool_use":
		return StopOther
	}
	return messagesStop(reason)
}

// converseUsage reads a usage object. What was read from the cache or written to it is not
// part of inputTokens.
func converseUsage(v strictjson.Value) Usage {
	if v.Kind() != '{' {
		return Usage{}
	}
	var f fields
	u := Usage{Cached: f.count(v, "cacheReadInputTokens"), CacheWrite: f.count(v, "cacheWriteInputTokens"), Output: f.count(v, "outputTokens")}
	u.Input = f.count(v, "inputTokens") + u.Cached + u.CacheWrite
	return f.usage(u)
}

func (converse) NewStream() Stream { return &converseStream{last: -1} }

// converseStream reads the events of one answer: one start, blocks one after the other,
// the end, and the metadata behind it. A block of text has no start of its own.
type converseStream struct {
	events
	begun  bool
	ended  bool  // messageStop has said why
	inside bool  // a block
	last   int64 // index of the block that came last
	kind   string
	use    int // index of the call that the block is; -1: the block is no call

	// What a client has got, and what it has got with the event that was read last.
	passed, now struct {
		blocks int64 // indexes that are used
		calls  int
		open   bool // the last of the blocks
	}
}

// converseEvents are the types of events that this package reads.
var converseEvents = []string{"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}

func (s *converseStream) Event(e eventstream.Event) ([]Part, Odd) {
	if !s.begin(e) {
		return s.parts, s.odd
	}
	if v, failed := frameFailed(&e); failed {
		s.add(Part{Kind: PartError, Value: v})
		return s.parts, s.odd
	}
	s.now = s.passed
	if known := converseKnown(e.Name); known == e.Name {
		v := s.data(e.Data)
		s.strays(v, "start", "delta", "contentBlockIndex", "role", "stopReason")
		s.take(e.Name, v)
	} else {
		s.expect(known == "", OddCall) // in another case
		s.add(Part{Kind: PartOther})
	}
	s.now.calls = len(s.calls)
	return s.parts, s.odd
}

// converseKnown is the type of event that a reader which does not mind case takes name for.
func converseKnown(name string) string {
	for _, k := range converseEvents {
		if strings.EqualFold(k, name) {
			return k
		}
	}
	return ""
}

func (s *converseStream) take(kind string, v strictjson.Value) {
	switch kind {
	case "messageStart":
		s.expect(!s.begun && s.text(v, "role") == "assistant", OddShape)
		s.begun = true
		return
	case "contentBlockStart":
		s.open(v)
		s.start(v.Get("start"))
	case "contentBlockDelta":
		if !s.inside || s.count(v, "contentBlockIndex") != s.last {
			s.open(v)
		}
		s.more(v.Get("delta"))
	case "contentBlockStop":
		s.expect(s.inside && s.count(v, "contentBlockIndex") == s.last, OddShape)
		s.inside, s.now.open = false, false
	case "messageStop":
		s.expect(s.begun && !s.inside && !s.ended, OddShape)
		s.ended = true
		s.stop(s.text(v, "stopReason"), converseStop)
	case "metadata":
		s.expect(s.ended, OddShape)
		s.answer.Usage = converseUsage(v.Get("usage"))
		s.add(Part{Kind: PartEnd})
	}
	s.add(Part{Kind: PartOther})
}

// open begins a block. A client puts what comes where its index says: a block that is
// begun twice, or before the one before it has ended, is put together in several ways.
func (s *converseStream) open(v strictjson.Value) {
	i := s.count(v, "contentBlockIndex")
	s.expect(s.begun && !s.ended, OddShape)
	s.expect(!s.inside && v.Get("contentBlockIndex").Exists() && i > s.last, OddOrder)
	s.inside, s.last, s.use, s.kind = true, i, -1, ""
	s.now.blocks, s.now.open = max(s.passed.blocks, i+1), true
}

var startKinds = map[string]Odd{"toolUse": 0, "toolResult": 0, "image": 0}

func (s *converseStream) start(b strictjson.Value) {
	if !says(b) {
		return // of a text
	}
	switch kind, v := s.converseUnion(b, startKinds); {
	case kind == "toolUse" && !s.converseServed(v):
		s.kind = kind
		if s.call(Call{ID: s.text(v, "toolUseId"), Name: s.text(v, "name")}) != nil {
			s.use = len(s.calls) - 1
		}
	case kind == "toolUse", kind == "toolResult":
		s.kind = "served"
		s.answer.Fetched = s.answer.Fetched || kind == "toolResult"
		s.add(Part{Kind: PartServed})
	default:
		s.kind = kind
		s.add(Part{Kind: PartOther})
	}
}

var deltaKinds = map[string]Odd{"text": 0, "toolUse": 0, "toolResult": 0, "reasoningContent": 0, "citation": 0, "image": 0}

func (s *converseStream) more(b strictjson.Value) {
	kind, v := s.converseUnion(b, deltaKinds)
	switch kind {
	case "text":
		s.expect(s.kind == "" || s.kind == "text", OddShape)
		s.kind = kind
		s.say(PartText, s.text(b, kind))
	case "reasoningContent":
		s.say(PartReasoning, s.text(v, "text"))
	case "toolUse":
		s.strays(v, "input")
		if s.use < 0 {
			s.expect(s.kind == "served", OddCall) // of a call that has not begun
			return
		}
		s.argue(s.use, s.text(v, "input"))
	}
}

// expect notes what is odd unless something is as it has to be.
func (s *converseStream) expect(is bool, odd Odd) {
	if !is {
		s.odd |= odd
	}
}

func (s *converseStream) Answer() *Answer { return s.whole() }

// Whole: behind the reason why the answer ended there is nothing but metadata.
func (s *converseStream) Whole() bool { return s.ended && !s.inside }

func (s *converseStream) Passed() { s.passed = s.now }

func (s *converseStream) AppendTail(dst []byte, text string) []byte {
	w := &writer{}
	if s.passed.open {
		w.converseStopBlock(s.passed.blocks - 1)
	}
	w.converseText(s.passed.blocks, text)
	reason := `"end_turn"`
	if s.passed.calls > 0 {
		reason = `"tool_use"`
	}
	w.converseEnd(reason, strictjson.Value{})
	return framed(dst, w.b, appendNamed)
}

func appendNamed(dst []byte, e *eventstream.Event) []byte { return appendFrame(dst, e.Name, e.Data) }

func (w *writer) converseStopBlock(i int64) {
	w.event("contentBlockStop", func() { w.raw(`{"contentBlockIndex":` + strconv.FormatInt(i, 10) + "}") })
}

func (w *writer) converseDelta(i int64, before, text string) {
	w.event("contentBlockDelta", func() {
		w.with(`{"contentBlockIndex":`+strconv.FormatInt(i, 10)+`,"delta":{`+before, text)
		w.raw("}}")
	})
}

func (w *writer) converseText(i int64, text string) {
	w.converseDelta(i, `"text":`, text)
	w.converseStopBlock(i)
}

func (w *writer) converseEnd(reason string, usage strictjson.Value) {
	w.event("messageStop", func() { w.raw(`{"stopReason":` + reason + "}") })
	w.event("metadata", func() {
		w.raw(`{"usage":`)
		w.or(usage, converseNoUsage)
		w.raw(`,"metrics":{"latencyMs":0}}`)
	})
}

const converseNoUsage = `{"inputTokens":0,"outputTokens":0,"totalTokens":0}`

func (converse) AppendText(dst []byte, _, _, text string) []byte {
	w := &writer{dst}
	w.with(`{"output":{"message":{"role":"assistant","content":[{"text":`, text)
	w.raw(`}]}},"stopReason":"end_turn","usage":` + converseNoUsage + `,"metrics":{"latencyMs":0}}`)
	return w.b
}

func (converse) AppendEvents(dst []byte, root strictjson.Value) []byte {
	w := &writer{}
	w.event("messageStart", func() { w.raw(`{"role":"assistant"}`) })
	i := int64(0)
	for b := range root.Get("output").Get("message").Get("content").Elements() {
		switch text, use := b.Get("text"), b.Get("toolUse"); {
		case text.Kind() == '"':
			w.converseText(i, text.Text())
		case use.Kind() == '{':
			w.converseCall(i, use)
		default:
			continue
		}
		i++
	}
	reason := `"end_turn"`
	if v := root.Get("stopReason"); says(v) {
		reason = string(v.Raw())
	}
	w.converseEnd(reason, root.Get("usage"))
	return framed(dst, w.b, appendNamed)
}

func (w *writer) converseCall(i int64, use strictjson.Value) {
	w.event("contentBlockStart", func() {
		w.raw(`{"contentBlockIndex":` + strconv.FormatInt(i, 10) + `,"start":{"toolUse":{"toolUseId":`)
		w.or(use.Get("toolUseId"), `""`)
		w.raw(`,"name":`)
		w.or(use.Get("name"), `""`)
		w.raw("}}}")
	})
	w.event("contentBlockDelta", func() {
		w.with(`{"contentBlockIndex":`+strconv.FormatInt(i, 10)+`,"delta":{"toolUse":{"input":`, string(use.Get("input").Raw()))
		w.raw("}}}")
	})
	w.converseStopBlock(i)
}

// converseErrors are the names of errors, by those that the other formats share.
var converseErrors = map[string]string{
	"invalid_request_error": "ValidationException", "request_too_large": "ValidationException", "permission_error": "AccessDeniedException",
	"not_found_error": "ResourceNotFoundException", "rate_limit_error": "ThrottlingException", "overloaded_error": "ServiceUnavailableException",
	"timeout_error": "ModelTimeoutException",
}

func (converse) AppendError(dst []byte, kind, text string) []byte {
	name := converseErrors[kind]
	if name == "" {
		name = "InternalServerException"
	}
	w := &writer{dst}
	w.raw(`{"__type":"` + name + `","code":"` + name + `"`)
	w.with(`,"message":`, text)
	w.raw("}")
	return w.b
}
