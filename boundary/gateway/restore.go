// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A restoring says which control tokens were restored in a message of the client, that were
// defused on their way to it. spec: inspect/5
type restoring struct {
	tokens  int
	partial bool         // a look-alike stayed: a part of a token, or text that had one from the start
	came    frame.Digest // of the params or the result, as the client sent them; zero: nothing was restored
	went    frame.Digest // as the server gets them
}

// Lookalikes are the characters of defused control tokens, as docs/spec/scrub.md has them.
const Lookalikes = "\u27e8\u27e9\u27ea\u27eb\u27e6\u27e7\u27ec\u27ed\u2982"

// looksDefused reports whether JSON may hold a look-alike, as it is or as an escape.
func looksDefused(raw []byte) bool {
	for _, s := range [...]string{"\xe2\x9f", "\xe2\xa6\x82", `\u27`, `\u29`} {
		if bytes.Contains(raw, []byte(s)) {
			return true
		}
	}
	return false
}

// restoresTokens reports whether control tokens are defused in any text of the server. What was read
// by one of its tools may be written by another, which removes them.
func (in *inspector) restoresTokens() bool {
	defuses := func(rule Rule) bool {
		s, err := in.scrub.of(rule.MaxChars, rule.ControlTokens)
		return err == nil && (rule.Profile == Faithful && s.faithful.DefusesTokens() || rule.Profile == MCP && s.mcp.DefusesTokens())
	}
	if defuses(in.cfg.own()) {
		return true
	}
	if in.cfg.Rules == nil {
		return defuses(in.cfg.rule("*")) // no name of a tool: what holds for all
	}
	for _, rule := range in.cfg.Rules() {
		if defuses(in.cfg.complete(rule)) {
			return true
		}
	}
	return false
}

// restore gives the control tokens back to the strings of a request that a model or a person has
// written: not to names, URIs and cursors, in which none is defused.
func (r *relay) restore(m *wire.Message, e *strictjson.Edits) (out restoring) {
	if !looksDefused(m.Params.Raw()) || !r.in.restoresTokens() {
		return out
	}
	w := restorer{tokens: r.cfg.tokens(), edits: e}
	for _, name := range [...]string{"arguments", "inputResponses"} {
		w.value(m.Params.Get(name))
	}
	if m.Method == mcpmsg.Complete {
		w.value(m.Params.Get("argument").Get("value"))
		w.value(m.Params.Get("context").Get("arguments"))
	}
	return w.out
}

// restoreAnswer does so in the client's answer to a request of the server, and records it.
func (r *relay) restoreAnswer(m *wire.Message) {
	if m.Kind != wire.Response || !looksDefused(m.Result.Raw()) || !r.in.restoresTokens() {
		return
	}
	var e strictjson.Edits
	w := restorer{tokens: r.cfg.tokens(), edits: &e}
	w.value(m.Result)
	if w.out.tokens == 0 {
		return
	}
	d := Decision{Method: frame.Other, Kind: "answer", Principal: r.cfg.Principal, Verdict: Changed, Restored: w.out.tokens}
	d.Received = digestOf(m.Result.Raw())
	if m.Edit(&e) != nil {
		return // the server gets the look-alikes
	}
	d.Delivered = digestOf(m.Result.Raw())
	r.in.recordDecision(d)
}

func (c *Config) tokens() *scrub.TokenTable {
	if c.Tokens != nil {
		return c.Tokens
	}
	return scrub.Builtin()
}

// A restorer restores the control tokens of one message.
type restorer struct {
	tokens *scrub.TokenTable
	edits  *strictjson.Edits
	out    restoring
}

// value restores every string of v, but for names of members. In a string that is JSON itself an
// escape (\u27e8) stays: scrubbing does not raise it either, so that a file which holds it comes back.
func (w *restorer) value(v strictjson.Value) {
	switch v.Kind() {
	case '"':
		text := v.Text()
		restored, n := w.tokens.Restore(text)
		if n > 0 {
			w.edits.ReplaceText(v, strings.Clone(restored))
			w.out.tokens += n
		}
		w.out.partial = w.out.partial || strings.ContainsAny(restored, Lookalikes)
	case '[':
		for e := range v.Elements() {
			w.value(e)
		}
	case '{':
		for _, member := range v.Members() {
			w.value(member)
		}
	}
}

// hintPartial stands behind an error of a tool whose arguments held a part of a defused control token.
const hintPartial = "pellucid: The arguments hold look-alikes of delimiters of control tokens (U+27E6 to U+27ED, U+2982). " +
	"On the way to the server only whole control tokens are restored: send the whole token, not a part of it."

// hintContent stands behind an error of a tool from which something was left out.
const hintContent = "pellucid: The structuredContent of this error was left out: it does not fit the output schema that the tool declares."

// explainError says in the result of a failed call why it may have failed, and what was left out of it.
func (in *inspection) explainError(root strictjson.Value) {
	if in.p.restored.partial && reportsError(root) && isToolResult(in.row) {
		in.addText(root, hintPartial)
	}
	if in.leftContent {
		in.addText(in.p.toolResult(root), hintContent)
	}
}

// addText adds a text block of ours to a result.
func (in *inspection) addText(result strictjson.Value, text string) {
	block := append(strictjson.AppendQuote([]byte(`{"type":"text","text":`), text), '}')
	if content := result.Get("content"); content.Kind() == '[' {
		in.w.edits.AppendElement(content, block)
	} else {
		in.w.edits.Append(result, "content", append(append([]byte{'['}, block...), ']'))
	}
	in.w.edited = true
}
