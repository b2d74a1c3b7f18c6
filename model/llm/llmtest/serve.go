// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	maxRequest = 64 << 20 // bytes
	hugeText   = 9 << 20  // bytes of a Huge answer: more than a client reads if it is not told to
)

type handler struct {
	model Model
	key   string
	gone  chan struct{}

	mu       sync.Mutex
	asks     []Ask
	requests int
	kept     map[string][]llm.Message // by the id of a response: all that was said up to it
}

var paths = map[string]format.Name{
	"/chat/completions": format.Chat, "/responses": format.Responses, "/messages": format.Messages,
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests++
	n := h.requests
	h.mu.Unlock()
	f, model, stream := endpoint(r)
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	switch {
	case f == "" || r.Method != http.MethodPost:
		refuse(w, format.Chat, http.StatusNotFound, "not_found_error", "no such endpoint")
		return
	case !h.signed(f, r, raw):
		refuse(w, f, http.StatusUnauthorized, "authentication_error", "invalid key: "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.Header.Get("X-Goog-Api-Key"))
		return
	case err != nil:
		refuse(w, f, http.StatusRequestEntityTooLarge, "request_too_large", "too large")
		return
	}
	ask, err := understand(Ask{format: f, model: model, Stream: stream, kept: h.said}, r, raw)
	if err != nil {
		refuse(w, f, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	ask.Number = n
	h.mu.Lock()
	h.asks = append(h.asks, ask)
	h.mu.Unlock()
	reply := h.model(ask)
	if ask.Keep {
		h.keep(&ask, &reply)
	}
	(&service{h: h, w: w, r: r, ask: &ask, reply: reply}).answer()
}

// keep keeps the conversation, as OpenAI's service does for responses.
func (h *handler) keep(a *Ask, r *Reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil {
		h.kept = map[string][]llm.Message{}
	}
	all := append([]llm.Message(nil), a.Messages...)
	last := llm.Message{Role: llm.Assistant, Text: r.Text}
	for _, c := range r.Calls {
		last.Calls = append(last.Calls, format.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	h.kept[a.response()] = append(all, last)
}

// said is what was said up to a response.
func (h *handler) said(id string) ([]llm.Message, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all, ok := h.kept[id]
	return all, ok
}

// endpoint is what a request asks, in which format. model and stream: as far as the path
// says.
func endpoint(r *http.Request) (f format.Name, model string, stream bool) {
	path := r.URL.Path
	for _, root := range []string{"/v1beta/openai", "/openai/v1", "/anthropic/v1", "/v1beta1", "/v1beta", "/v1"} {
		if rest, ok := strings.CutPrefix(path, root); ok {
			path = rest
			break
		}
	}
	if rest, ok := strings.CutPrefix(path, "/openai/deployments/"); ok { // Azure
		if r.URL.Query().Get("api-version") == "" {
			return "", "", false
		}
		model, path, _ = strings.Cut(rest, "/")
		return paths["/"+path], model, false
	}
	if f := paths[path]; f != "" {
		return f, "", false
	}
	if i := strings.Index(path, "/publishers/google/models/"); i >= 0 { // Vertex AI
		path = path[i+len("/publishers/google"):]
	}
	return geminiCall(path, r.URL.RawQuery)
}

func isGemini(f format.Name) bool { return f == format.Gemini || f == format.GeminiArray }

func (h *handler) signed(f format.Name, r *http.Request, raw []byte) bool {
	header := r.Header
	switch {
	case h.key == "":
		return true
	case strings.HasPrefix(header.Get("Authorization"), "AWS4-"):
		return signedBy(h.key, r, raw)
	case isGemini(f):
		return header.Get("X-Goog-Api-Key") == h.key || r.URL.Query().Get("key") == h.key || header.Get("Authorization") == "Bearer "+h.key
	case strings.HasPrefix(r.URL.Path, "/openai/") && header.Get("Api-Key") == h.key:
		return true
	case f == format.Messages:
		// The older way, and that of the official SDK from 1.0 on.
		return header.Get("X-Api-Key") == h.key || header.Get("Authorization") == "Bearer "+h.key
	}
	return header.Get("Authorization") == "Bearer "+h.key
}

// refuse answers with an error as the format's service words it.
func refuse(w http.ResponseWriter, f format.Name, status int, code, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, errorBody(f, code, why))
}

func errorBody(f format.Name, code, why string) string {
	if f == format.Messages {
		return fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s}}`, quote(code), quote(why))
	}
	if isGemini(f) {
		return string(format.Of(f).AppendError(nil, code, why))
	}
	return fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":null,"code":%[2]s}}`, quote(why), quote(code))
}

func quote(s string) string { return string(strictjson.AppendQuote(nil, s)) }

// A service is one answer being given.
type service struct {
	h     *handler
	w     http.ResponseWriter
	r     *http.Request
	ask   *Ask
	reply Reply
}

func (s *service) answer() {
	rp := &s.reply
	for name, values := range rp.Header {
		s.w.Header()[name] = values
	}
	s.sleep(rp.Delay)
	kind := "application/json"
	if s.ask.Stream && s.ask.format != format.GeminiArray {
		kind = format.Of(s.ask.format).ContentType()
	}
	if rp.ContentType != "" {
		kind = rp.ContentType
	}
	s.w.Header().Set("Content-Type", kind)
	if s.faulty() {
		return
	}
	switch {
	case rp.Status != 0 && rp.Status != http.StatusOK:
		if rp.RetryAfter != "" {
			s.w.Header().Set("Retry-After", rp.RetryAfter)
		}
		refuse(s.w, s.ask.format, rp.Status, rp.ErrorCode, "as scripted")
	case rp.Raw != nil:
		s.w.Write(rp.Raw)
	case s.ask.Stream:
		s.stream()
	default:
		s.w.Write(s.body())
	}
}

// faulty commits the faults that need no answer.
func (s *service) faulty() bool {
	switch s.reply.Fault {
	case Hang:
		s.sleep(time.Hour)
	case Drop:
		panic(http.ErrAbortHandler) // as net/http wants a connection to be closed
	case Malformed:
		if s.ask.Stream {
			fmt.Fprint(s.w, "data: {\"choices\":[}\n\n")
		} else {
			fmt.Fprint(s.w, `{"choices":[}`)
		}
	case WrongType:
		s.w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(s.w, "<p>OK</p>")
	case Redirect:
		s.w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		s.w.WriteHeader(http.StatusTemporaryRedirect)
	case Compressed:
		s.w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(s.w, "\x1f\x8b")
	case Endless:
		s.endless()
	default:
		return false
	}
	return true
}

// endless sends an answer that goes on and on.
func (s *service) endless() {
	piece := []byte(" ")
	if s.ask.Stream && s.ask.format != format.GeminiArray {
		piece = []byte(": still here\n\n" + "data: " + first(s.events()) + "\n\n")
		if s.ask.format != format.Chat && !isGemini(s.ask.format) {
			piece = []byte("data: {\"type\":\"ping\"}\n\n")
		}
	}
	piece = bytes.Repeat(piece, 1+4096/len(piece))
	for {
		if _, err := s.w.Write(piece); err != nil {
			return
		}
	}
}

func first(events []piece) string { return events[0].data }

// sleep waits, unless somebody goes away.
func (s *service) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	if f, ok := s.w.(http.Flusher); ok && s.reply.Fault == HangMidway {
		f.Flush()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.r.Context().Done():
	case <-s.h.gone:
	}
}

// body is the answer as one object.
func (s *service) body() []byte {
	b := []byte(map[format.Name]func() string{
		format.Chat: s.chatBody, format.Responses: s.responsesBody, format.Messages: s.messagesBody,
		format.Gemini: s.geminiBody, format.GeminiArray: s.geminiBody,
	}[s.ask.format]())
	switch s.reply.Fault {
	case Duplicate:
		twice := `,"model":"another"`
		if isGemini(s.ask.format) {
			twice = `,"modelVersion":"another"`
		}
		return append(append(b[:len(b)-1:len(b)-1], twice...), '}')
	case Cut, HangMidway, ErrorMidway:
		half := b[:len(b)/2]
		if s.reply.Fault == HangMidway {
			s.w.Write(half)
			s.sleep(time.Hour)
			return nil
		}
		s.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		s.w.Write(half)
		s.w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return b
}

// An event of a stream; the name is not sent if it is empty.
type piece struct{ name, data string }

func (s *service) events() []piece {
	return map[format.Name]func() []piece{
		format.Chat: s.chatEvents, format.Responses: s.responsesEvents, format.Messages: s.messagesEvents,
		format.Gemini: s.geminiEvents, format.GeminiArray: s.geminiEvents,
	}[s.ask.format]()
}

// stream sends the answer in pieces.
func (s *service) stream() {
	all := s.events()
	for i, e := range all {
		if i == len(all)/2 && i > 0 {
			switch s.reply.Fault {
			case HangMidway:
				s.sleep(time.Hour)
				return
			case Cut:
				return
			case ErrorMidway:
				s.write(piece{"error", s.errorEvent()}, i)
				return
			}
		}
		if i > 0 {
			s.sleep(s.reply.Pause)
		}
		if !s.write(e, i) {
			return
		}
	}
	if s.ask.format == format.GeminiArray {
		fmt.Fprint(s.w, "\n]\n")
	}
}

// write sends event i of a stream.
func (s *service) write(e piece, i int) bool {
	text := "data: " + e.data + "\n\n"
	switch {
	case s.ask.format == format.GeminiArray && i == 0:
		text = "[" + e.data
	case s.ask.format == format.GeminiArray:
		text = "\n,\r\n" + e.data
	case isGemini(s.ask.format):
		text = "data: " + e.data + "\r\n\r\n"
	case e.name != "":
		text = "event: " + e.name + "\n" + text
	}
	if _, err := fmt.Fprint(s.w, text); err != nil {
		return false
	}
	s.w.(http.Flusher).Flush()
	return true
}

func (s *service) errorEvent() string {
	const code = "overloaded_error"
	if s.ask.format == format.Responses {
		return object("type", `"error"`, "code", quote(code), "message", `"as scripted"`, "param", "null")
	}
	return errorBody(s.ask.format, code, "as scripted")
}

// The parts of an answer that the formats share.

func (s *service) model() string {
	if s.reply.Model != "" {
		return s.reply.Model
	}
	return s.ask.model
}

func (s *service) print() string {
	if s.reply.Fingerprint != "" {
		return s.reply.Fingerprint
	}
	return "fp_fake"
}

func (s *service) said() string {
	if s.reply.Fault == Huge {
		return strings.Repeat("x", hugeText)
	}
	return s.reply.Text
}

func (s *service) stop() format.Stop {
	switch rp := &s.reply; {
	case rp.Stop != "":
		return rp.Stop
	case len(rp.Calls) > 0:
		return format.StopCalls
	case rp.Refusal != "":
		return format.StopRefusal
	}
	return format.StopEnd
}

// usage is what was scripted, or a token for four bytes.
func (s *service) usage() format.Usage {
	if s.reply.Usage.Known {
		return s.reply.Usage
	}
	u := format.Usage{Known: true, Input: int64(len(s.ask.Raw)+3) / 4, Output: int64(len(s.reply.Text)+3)/4 + 1}
	for _, c := range s.reply.Calls {
		u.Output += int64(len(c.Arguments)+3)/4 + 4
	}
	if s.ask.MaxTokens > 0 {
		u.Output = min(u.Output, s.ask.MaxTokens)
	}
	return u
}

// pieces cuts a text into a few, between characters.
func pieces(text string) []string {
	var out []string
	for len(text) > 0 {
		n := max(len(text)/2, 1)
		if len(out) == 3 {
			n = len(text)
		}
		for n < len(text) && text[n]&0xC0 == 0x80 {
			n++
		}
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

// object writes members that are given as name, raw JSON, name, raw JSON; those
// without a value are left out.
func object(members ...string) string {
	var b strings.Builder
	for i := 0; i < len(members); i += 2 {
		if members[i+1] == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(members[i]) + ":" + members[i+1])
	}
	return "{" + b.String() + "}"
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func float(v strictjson.Value) float64 {
	f, _ := strconv.ParseFloat(string(v.Raw()), 64)
	return f
}

// raw is arguments as a member's value: what is no JSON cannot stand there.
func raw(arguments []byte) string {
	if len(arguments) == 0 {
		return "{}"
	}
	if !json.Valid(arguments) {
		return quote(string(arguments))
	}
	return string(arguments)
}
