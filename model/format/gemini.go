// SPDX-License-Identifier: Apache-2.0

package format

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// gemini is Google's generateContent, and streamGenerateContent as server-sent events. A
// member may be spelled in two ways, functionCall and function_call, in a request. Google
// answers in the first one, so the other one is odd in an answer.
type gemini struct{ sse }

func (gemini) Name() Name { return Gemini }

func (gemini) Path(model string, stream bool) string {
	if stream {
		return geminiPath(model, ":streamGenerateContent?alt=sse")
	}
	return geminiPath(model, ":generateContent")
}

func geminiPath(model, method string) string {
	return "/models/" + strings.TrimPrefix(model, "models/") + method
}

// snake is the other spelling of a member.
func snake(camel string) string {
	var b strings.Builder
	for _, c := range []byte(camel) {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// geminiStrays notes members that another reader takes for those of names.
func (f *fields) geminiStrays(v strictjson.Value, names ...string) {
	f.strays(v, names...)
	for _, name := range names {
		if other := snake(name); other != name && v.Get(other).Exists() {
			f.odd |= OddCall
		}
	}
}

func (gemini) Read(root strictjson.Value) *Answer {
	a := &Answer{}
	var f fields
	f.geminiBody(a, root, func(c Call) { a.call(&f, geminiNamed(c, len(a.Calls()))) }, a.say)
	if root.Get("candidates").Len() == 0 && a.Stop != StopFilter && len(a.Parts) == 0 {
		f.odd |= OddCall // not an answer, so far as is known
	}
	a.Odd = f.odd
	return a
}

// geminiNamed gives call i an id, which Google may leave out.
func geminiNamed(c Call, i int) Call {
	if c.ID == "" {
		c.ID = "call_" + strconv.Itoa(i)
	}
	return c
}

// geminiAnswer are the members of an answer. Of a piece of one some may be missing.
var geminiAnswer = []string{"candidates", "error", "promptFeedback", "usageMetadata", "modelVersion", "responseId"}

// geminiBody reads an answer, or a piece of one: they have one shape.
func (f *fields) geminiBody(a *Answer, root strictjson.Value, call func(Call), say func(PartKind, string)) {
	f.geminiStrays(root, geminiAnswer...)
	if !slices.ContainsFunc(geminiAnswer, func(name string) bool { return root.Get(name).Exists() }) {
		f.odd |= OddCall // nothing of an answer
	}
	if root.Get("error").Kind() == '{' {
		a.Parts = append(a.Parts, Part{Kind: PartError, Value: root})
	}
	a.ID, a.Model = f.text(root, "responseId"), f.text(root, "modelVersion")
	a.Usage = geminiUsage(root.Get("usageMetadata"))
	candidates := f.array(root, "candidates", OddCall)
	if candidates.Len() > 1 { // one was asked for
		f.odd |= OddCall
	}
	if says(f.object(root, "promptFeedback", OddShape).Get("blockReason")) {
		a.Stop = StopFilter // of a request that the provider has not answered
	} else if candidates.Len() == 0 {
		f.odd |= OddShape
	}
	for c := range candidates.Elements() {
		f.geminiStrays(c, "content", "finishReason")
		a.Stop = geminiStop(f.text(c, "finishReason"))
		a.Fetched = a.Fetched || geminiFetched(c)
		content := f.object(c, "content", OddCall)
		f.geminiStrays(content, "parts")
		if role := f.text(content, "role"); role != "model" && role != "" {
			f.odd |= OddShape
		}
		for p := range f.array(content, "parts", OddCall).Elements() {
			f.geminiPart(a, p, call, say)
		}
		break
	}
}

// geminiParts are members of a part that call for nothing.
var geminiParts = []string{"text", "thought", "thoughtSignature", "inlineData", "fileData", "videoMetadata", "mediaResolution", "partMetadata"}

// geminiServed are what the provider runs, and what came of it.
var geminiServed = map[string]bool{"executableCode": false, "codeExecutionResult": true, "toolCall": false, "toolResponse": true}

func (f *fields) geminiPart(a *Answer, p strictjson.Value, call func(Call), say func(PartKind, string)) {
	if p.Kind() != '{' {
		f.odd |= OddCall
		return
	}
	f.geminiStrays(p, "text", "thought", "functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")
	thought, _ := p.Get("thought").Bool()
	for name, v := range p.Members() {
		fetched, served := geminiServed[name.Text()]
		switch name := name.Text(); {
		case name == "functionCall":
			call(f.geminiCall(v))
		case name == "text" && thought:
			say(PartReasoning, f.text(p, "text"))
		case name == "text":
			say(PartText, f.text(p, "text"))
		case served:
			a.Fetched = a.Fetched || fetched
			a.Parts = append(a.Parts, Part{Kind: PartServed})
		case name == "inlineData" || name == "fileData":
			a.Parts = append(a.Parts, Part{Kind: PartOther})
		case (v.Kind() == '{' || v.Kind() == '[') && !slices.Contains(geminiParts, name):
			f.odd |= OddCall
		}
	}
}

// geminiCall reads a call. One whose arguments come in pieces is not read.
func (f *fields) geminiCall(v strictjson.Value) Call {
	f.geminiStrays(v, "name", "args", "id")
	if v.Kind() != '{' || says(v.Get("partialArgs")) || says(v.Get("willContinue")) {
		f.odd |= OddCall
	}
	return Call{ID: f.text(v, "id"), Name: f.text(v, "name"), Arguments: append([]byte(nil), v.Get("args").Raw()...)}
}

// geminiFetched reports whether the model has read what was found in a search or at a URL.
func geminiFetched(candidate strictjson.Value) bool {
	found := candidate.Get("groundingMetadata")
	return says(found.Get("groundingChunks")) || says(found.Get("webSearchQueries")) || says(candidate.Get("urlContextMetadata"))
}

func geminiStop(reason string) Stop {
	switch reason {
	case "", "FINISH_REASON_UNSPECIFIED":
		return ""
	case "STOP":
		return StopEnd
	case "MAX_TOKENS":
		return StopLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return StopFilter
	}
	return StopOther
}

func geminiUsage(v strictjson.Value) Usage {
	if v.Kind() != '{' {
		return Usage{}
	}
	var f fields
	u := Usage{Input: f.count(v, "promptTokenCount") + f.count(v, "toolUsePromptTokenCount"),
		Cached: f.count(v, "cachedContentTokenCount"), Reasoning: f.count(v, "thoughtsTokenCount")}
	u.Output = f.count(v, "candidatesTokenCount") + u.Reasoning
	return f.usage(u)
}

func (gemini) NewStream() Stream { return &geminiStream{} }

// geminiStream reads the pieces of one answer, each an answer of its own shape. The stream
// has no last event: it ends behind a piece that says why.
type geminiStream struct{ events }

func (s *geminiStream) Event(e eventstream.Event) ([]Part, Odd) {
	if !s.begin(e) {
		return s.parts, s.odd
	}
	v := s.data(e.Data)
	var a Answer
	s.geminiBody(&a, v, s.take, s.say)
	s.odd &^= OddShape // a piece may say as little as it likes
	s.parts = append(s.parts, a.Parts...)
	s.once(&s.answer.ID, a.ID)
	s.once(&s.answer.Model, a.Model)
	s.answer.Fetched = s.answer.Fetched || a.Fetched
	if a.Usage.Known { // of all pieces so far
		s.answer.Usage = a.Usage
	}
	if a.Stop != "" {
		s.answer.Stop = a.Stop
		s.add(Part{Kind: PartOther})
	}
	return s.parts, s.odd
}

// take takes in a call, which stands whole in one piece.
func (s *geminiStream) take(c Call) {
	arguments := string(c.Arguments)
	c.Arguments = nil
	if s.call(geminiNamed(c, len(s.calls))) != nil {
		s.argue(len(s.calls)-1, arguments)
	}
}

func (s *geminiStream) Answer() *Answer { return s.whole() }

// Whole reports whether the last piece has come: it says why the answer ends.
func (s *geminiStream) Whole() bool { return s.answer.Stop != "" }

func (s *geminiStream) Passed() {}

func (s *geminiStream) AppendTail(dst []byte, text string) []byte {
	return appendPiece(dst, s.tail(nil, text))
}

// tail is the last piece of the answer.
func (s *geminiStream) tail(dst []byte, text string) []byte {
	return appendGemini(dst, cmp.Or(s.answer.ID, "pellucid"), s.answer.Model, "\n\n"+text, "")
}

// appendPiece appends an event whose data is a body.
func appendPiece(dst, body []byte) []byte {
	w := &writer{dst}
	w.event("", func() { w.value(body) })
	return w.b
}

func (gemini) AppendText(dst []byte, id, model, text string) []byte {
	return appendGemini(dst, "pellucid-"+id, model, text, `,"usageMetadata":{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}`)
}

func appendGemini(dst []byte, id, model, text, more string) []byte {
	w := &writer{dst}
	w.with(`{"candidates":[{"content":{"parts":[{"text":`, text)
	w.with(`}],"role":"model"},"finishReason":"STOP","index":0}]`+more+`,"modelVersion":`, model)
	w.with(`,"responseId":`, id)
	w.raw("}")
	return w.b
}

// AppendBeat appends empty lines: Google's client in Python reads a comment as JSON, and fails.
func (gemini) AppendBeat(dst []byte) []byte { return append(dst, "\n\n"...) }

// AppendComment appends nothing, for the same reason.
func (gemini) AppendComment(dst []byte, _ string) []byte { return dst }

func (gemini) AppendEvents(dst []byte, root strictjson.Value) []byte {
	return appendPiece(dst, root.Raw())
}

// geminiErrors are the code and the name of errors, by the words that the other formats share.
var geminiErrors = map[string]struct {
	code int
	name string
}{
	"invalid_request_error": {400, "INVALID_ARGUMENT"}, "request_too_large": {400, "INVALID_ARGUMENT"}, "permission_error": {403, "PERMISSION_DENIED"},
	"not_found_error": {404, "NOT_FOUND"}, "rate_limit_error": {429, "RESOURCE_EXHAUSTED"}, "overloaded_error": {503, "UNAVAILABLE"},
	"timeout_error": {504, "DEADLINE_EXCEEDED"},
}

func (gemini) AppendError(dst []byte, kind, text string) []byte {
	e := geminiErrors[kind]
	if e.name == "" {
		e.code, e.name = 500, "INTERNAL"
	}
	w := &writer{dst}
	w.with(`{"error":{"code":`+strconv.Itoa(e.code)+`,"message":`, text)
	w.raw(`,"status":"` + e.name + `"}}`)
	return w.b
}
