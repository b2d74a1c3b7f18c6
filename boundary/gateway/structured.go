// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// restructure delivers the structuredContent of each result in a message, clean by now, as
// JSON in a text block, where the rule wants it there.
func (in *inspection) restructure(root strictjson.Value) {
	if !in.rule.StructuredText {
		return
	}
	if isToolResult(in.row) {
		in.asText(root)
	}
	in.asText(root.Get("result"), "result")
	in.asText(root.Get("task").Get("result"), "task", "result")
	n := 0
	for t := range root.Get("tasks").Elements() {
		in.w.path = append(in.w.path[:0], step{name: "tasks"}, step{ordinal: n, element: true})
		in.asText(t.Get("result"), "result")
		n++
	}
	in.w.path = in.w.path[:0]
}

// asText does so for one result, at the names behind the walker's path.
func (in *inspection) asText(result strictjson.Value, names ...string) {
	w := &in.w
	content := result.Get("structuredContent")
	if !content.Exists() {
		return
	}
	depth := len(w.path)
	defer func() { w.path = w.path[:depth] }()
	for _, name := range names {
		w.path = append(w.path, step{name: name})
	}
	clean := w.edits.Apply(nil, content)
	w.edits.Remove(content)
	w.path = append(w.path, step{name: "structuredContent"})
	w.forget(w.spell(true))
	blocks := result.Get("content")
	if content.Kind() == 'n' || in.repeated(blocks, clean) {
		return
	}
	w.scrubs.again(w.text).Scrub(reuse.String(clean), &w.res)
	w.noteCut(len(clean))
	w.edited = w.edited || w.res.Changed()
	w.noteEvents()
	w.path = append(w.path[:len(w.path)-1], step{name: "content"}, step{ordinal: blocks.Len(), element: true}, step{name: "text"})
	text := w.unframed()
	if w.frames {
		var sealed frame.Sealed
		text, sealed = w.frame(w.res.Clean, w.form())
		w.addDigest(sealed.Digest)
		w.noteLookalikes(sealed)
	} else {
		w.addDigest(frame.DigestOf(text))
	}
	w.placed(w.frames)
	block := append(strictjson.AppendQuote([]byte(`{"type":"text","text":`), text), '}')
	if blocks.Kind() == '[' {
		w.edits.AppendElement(blocks, block)
		return
	}
	w.edits.Append(result, "content", append(append([]byte{'['}, block...), ']'))
}

// repeated reports whether a block delivers what structuredContent says: servers are
// asked to say it twice.
func (in *inspection) repeated(blocks strictjson.Value, content []byte) bool {
	want, err := strictjson.Canonical(nil, content, strictjson.Limits{})
	if err != nil {
		return false
	}
	var block strictjson.Doc
	for b := range blocks.Elements() {
		if b.Get("text").Kind() != '"' || block.Reset(in.w.edits.Apply(nil, b), strictjson.Limits{}) != nil {
			continue
		}
		text := block.Root().Get("text").Text()
		if _, body, err := in.w.key.Open(text, in.w.origin); err == nil {
			text = body
		}
		if got, err := strictjson.Canonical(nil, []byte(text), strictjson.Limits{}); err == nil && bytes.Equal(got, want) {
			return true
		}
	}
	return false
}

// unpromise takes from a list the schemas of what is not delivered as structuredContent.
func (in *inspection) unpromise(root strictjson.Value) {
	if in.p.method != mcpmsg.ListTools || in.p.msg.Kind != wire.Response || in.cfg.Tools == nil && !in.cfg.StructuredText {
		return
	}
	for t := range root.Get("tools").Elements() {
		if in.cfg.rule(t.Get("name").Text()).StructuredText {
			in.w.edits.Remove(t.Get("outputSchema"))
		}
	}
}
