// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
	"github.com/pellucid-mcp/pellucid/text/awsstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// AccessKey is the access key id of which a fake with a key takes signatures; the key is
// the secret access key. The region is Region.
const (
	AccessKey = "AKIDFAKE"
	Region    = "eu-west-1"
)

// bedrockCall is what a path below /model says: the format, the model, and whether a stream
// is wanted.
func bedrockCall(u *url.URL) (f format.Name, model string, stream bool) {
	rest := strings.TrimPrefix(u.EscapedPath(), "/model/")
	id, operation, _ := strings.Cut(rest, "/")
	model, _ = url.PathUnescape(id)
	switch operation {
	case "converse":
		f = format.Converse
	case "converse-stream":
		f, stream = format.Converse, true
	case "invoke":
		f = format.BedrockMessages
	case "invoke-with-response-stream":
		f, stream = format.BedrockMessages, true
	}
	return f, model, stream
}

// isBedrock reports whether a format is one of Amazon Bedrock's.
func isBedrock(f format.Name) bool { return f == format.Converse || f == format.BedrockMessages }

// signedBy reports whether r is signed with that secret access key, by Signature Version 4,
// within five minutes of now; an API key is the secret itself.
func signedBy(secret string, r *http.Request, body []byte) bool {
	given := r.Header.Get("Authorization")
	if given == "Bearer "+secret {
		return true
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return false
	}
	_, names, _ := strings.Cut(given, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	again := r.Clone(r.Context())
	again.URL.Scheme, again.URL.Host, again.Header = "http", r.Host, http.Header{}
	again.ContentLength = 0 // Amazon's signers differ in whether they sign it
	for name := range strings.SplitSeq(names, ";") {
		if name == "content-length" {
			again.ContentLength = r.ContentLength
		}
		if values := r.Header.Values(name); len(values) > 0 && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	is := func(s string) sigv4.Secret { return func() (string, error) { return s, nil } }
	signer := sigv4.Signer{Region: Region, Service: "bedrock", Access: is(AccessKey), Secret: is(secret)}
	if token := r.Header.Get("X-Amz-Security-Token"); token != "" {
		signer.Session = is(token)
	}
	if signer.At(func() time.Time { return at }).Sign(again, body) != nil {
		return false
	}
	return again.Header.Get("Authorization") == given
}

func (a *Ask) converse(v strictjson.Value) error {
	if n, ok := v.Get("inferenceConfig").Get("maxTokens").Int64(); ok {
		a.MaxTokens = n
	}
	if t := v.Get("inferenceConfig").Get("temperature"); t.Kind() == '0' {
		a.Temperature = float(t)
	}
	a.System = content(v.Get("system"))
	for m := range v.Get("messages").Elements() {
		role := text(m.Get("role"))
		if role != "user" && role != "assistant" {
			return errors.New("messages: no such role")
		}
		if err := a.converseTurn(role == "assistant", m.Get("content")); err != nil {
			return err
		}
	}
	for t := range v.Get("toolConfig").Get("tools").Elements() {
		spec := t.Get("toolSpec")
		a.Tools = append(a.Tools, format.Tool{Name: text(spec.Get("name")), Description: text(spec.Get("description")),
			Schema: append([]byte(nil), spec.Get("inputSchema").Get("json").Raw()...)})
	}
	return nil
}

func (a *Ask) converseTurn(assistant bool, blocks strictjson.Value) error {
	m := format.Message{}
	if assistant {
		m.Role = format.RoleAssistant
	}
	said := false
	for b := range blocks.Elements() {
		switch use, result := b.Get("toolUse"), b.Get("toolResult"); {
		case b.Get("text").Kind() == '"':
			if strings.TrimSpace(b.Get("text").Text()) == "" {
				return errors.New("the text field in the ContentBlock object is blank")
			}
			m.Text += text(b.Get("text"))
			said = true
		case use.Exists():
			m.Calls = append(m.Calls, format.Call{ID: text(use.Get("toolUseId")), Name: text(use.Get("name")), Arguments: append([]byte(nil), use.Get("input").Raw()...)})
			said = true
		case result.Exists():
			said := content(result.Get("content"))
			for c := range result.Get("content").Elements() {
				said += string(c.Get("json").Raw())
			}
			a.Messages = append(a.Messages, format.Message{Role: format.RoleTool, CallID: text(result.Get("toolUseId")), Text: said,
				Failed: text(result.Get("status")) == "error"})
		case b.Get("reasoningContent").Exists(), b.Get("cachePoint").Exists():
		default:
			return errors.New("messages: a block of no known kind")
		}
	}
	if said {
		a.Messages = append(a.Messages, m)
	}
	return nil
}

// invoke reads Anthropic's messages as Amazon Bedrock has them.
func (a *Ask) invoke(v strictjson.Value) error {
	if text(v.Get("anthropic_version")) != "bedrock-2023-05-31" {
		return errors.New("anthropic_version: field is required")
	}
	if v.Get("model").Exists() || v.Get("stream").Exists() {
		return errors.New("model: extra inputs are not permitted")
	}
	return a.anthropic(v)
}

var converseReasons = map[format.Stop]string{
	format.StopEnd: "end_turn", format.StopSequence: "stop_sequence", format.StopRefusal: "end_turn", format.StopLength: "max_tokens",
	format.StopCalls: "tool_use", format.StopFilter: "content_filtered", format.StopOther: "something_new",
}

func (s *service) converseUsage() string {
	if s.reply.NoUsage {
		return ""
	}
	u := s.usage()
	return object("inputTokens", number(u.Input-u.Cached-u.CacheWrite), "outputTokens", number(u.Output), "totalTokens", number(u.Input+u.Output),
		"cacheReadInputTokens", number(u.Cached), "cacheWriteInputTokens", number(u.CacheWrite))
}

func (s *service) converseBody() string {
	var blocks []string
	if s.reply.Reasoning != "" {
		blocks = append(blocks, `{"reasoningContent":{"reasoningText":{"text":`+quote(s.reply.Reasoning)+`,"signature":"c2ln"}}}`)
	}
	if text := s.messagesText(); text != "" {
		blocks = append(blocks, object("text", quote(text)))
	}
	for _, c := range s.reply.Calls {
		blocks = append(blocks, object("toolUse", object("toolUseId", quote(c.ID), "name", quote(c.Name), "input", raw(c.Arguments))))
	}
	return object("output", `{"message":{"role":"assistant","content":[`+strings.Join(blocks, ",")+"]}}",
		"stopReason", quote(converseReasons[s.stop()]), "usage", s.converseUsage(), "metrics", `{"latencyMs":1}`)
}

func (s *service) converseEvents() []piece {
	out := []piece{{"messageStart", `{"role":"assistant","p":"abcdefghijk"}`}}
	index := 0
	block := func(start string, deltas []string) {
		at := strconv.Itoa(index)
		if start != "" {
			out = append(out, piece{"contentBlockStart", object("contentBlockIndex", at, "start", start, "p", `"abcd"`)})
		}
		for _, d := range deltas {
			out = append(out, piece{"contentBlockDelta", object("contentBlockIndex", at, "delta", d, "p", `"ab"`)})
		}
		out = append(out, piece{"contentBlockStop", object("contentBlockIndex", at)})
		index++
	}
	each := func(text, before, after string) (deltas []string) {
		for _, p := range pieces(text) {
			deltas = append(deltas, before+quote(p)+after)
		}
		return deltas
	}
	if s.reply.Reasoning != "" {
		block("", append(each(s.reply.Reasoning, `{"reasoningContent":{"text":`, "}}"), `{"reasoningContent":{"signature":"c2ln"}}`))
	}
	if text := s.messagesText(); text != "" {
		block("", each(text, `{"text":`, "}"))
	}
	for _, c := range s.reply.Calls {
		block(`{"toolUse":`+object("toolUseId", quote(c.ID), "name", quote(c.Name))+"}", each(string(c.Arguments), `{"toolUse":{"input":`, "}}"))
	}
	if s.reply.Fault == NewPrint { // it has no fingerprint: a second message begins
		out = append(out, out[0])
	}
	return append(out, piece{"messageStop", object("stopReason", quote(converseReasons[s.stop()]))},
		piece{"metadata", object("usage", s.converseUsage(), "metrics", `{"latencyMs":1}`, "p", `"abcdef"`)})
}

// invokeEvents are those of messages; the last one has what Amazon Bedrock adds.
func (s *service) invokeEvents() []piece {
	out := s.messagesEvents()
	last := &out[len(out)-1]
	last.data = `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":1,"outputTokenCount":1,"invocationLatency":1,"firstByteLatency":1}}`
	return out
}

// frame is an event as Amazon Bedrock sends it.
func (s *service) frame(e piece) []byte {
	name, payload := e.name, e.data
	if s.ask.format == format.BedrockMessages {
		name, payload = "chunk", object("bytes", quote(base64.StdEncoding.EncodeToString([]byte(e.data))), "p", `"abcdefghij"`)
	}
	return awsstream.Append(nil, []byte(payload), ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

// ping is an event that clients pass over.
func (s *service) ping() []byte { return s.frame(piece{"ping", `{"type":"ping"}`}) }

// exception is how a stream of Amazon Bedrock reports an error.
func exception() []byte {
	return awsstream.Append(nil, []byte(`{"message":"as scripted"}`),
		":exception-type", "modelStreamErrorException", ":content-type", "application/json", ":message-type", "exception")
}

// damaged is a frame in which one bit of the payload is not what it was.
func damaged(frame string) string {
	b := []byte(frame)
	b[len(b)-5] ^= 1
	return string(b)
}
