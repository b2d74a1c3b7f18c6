// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/blob"
	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A view is the text of one answer, as a model will read it.
type view struct {
	segments []classify.Segment
	tooLong  bool
}

// Bounds of a view.
const (
	maxView = 16 << 20 // bytes of an answer that are read at all
	// segmentLen is from how many bytes on a segment takes no further text: shorter
	// ones would be many questions, longer ones hide what they hold.
	segmentLen = 2000
	// shared is what a segment repeats of the end of the one before, in bytes, so
	// that what is spread over two texts stands whole in one.
	shared = 400
)

// viewOf is the view of an answer, or of another kind of message: all its strings in order, with the names of members that
// the protocol does not fix. Bytes that are no text are left out. raw wants beside it
// what was received.
func viewOf(root strictjson.Value, with *scrub.Scrubber, raw bool, kind Elsewhere) *view {
	if len(root.Raw()) > maxView || with == nil {
		return &view{tooLong: true}
	}
	b := viewBuilder{with: with, wantsRaw: raw}
	known := fixed
	if kind != "" {
		known = fixedElsewhere
	}
	b.object(root, known)
	b.flush()
	return &view{segments: b.out}
}

// fixed are the names of members that say nothing: those of the protocol.
var fixed = map[string]bool{"content": true, "structuredContent": true, "isError": true, "_meta": true, "resultType": true,
	"message": true, "data": true, "code": true, "task": true, "tasks": true, "result": true, "error": true}

// fixedElsewhere are those of messages that answer no call of a tool.
var fixedElsewhere = map[string]bool{"_meta": true, "resultType": true, "code": true, "data": true, "message": true,
	"messages": true, "role": true, "content": true, "contents": true, "description": true, "completion": true, "values": true,
	"total": true, "hasMore": true, "systemPrompt": true, "modelPreferences": true, "includeContext": true, "temperature": true,
	"maxTokens": true, "stopSequences": true, "metadata": true, "tools": true, "toolChoice": true, "mode": true, "url": true,
	"elicitationId": true, "requestedSchema": true, "level": true, "logger": true, "progress": true, "progressToken": true,
	"result": true, "error": true, "structuredContent": true, "isError": true}

// ofSchemas are those of a schema with which a client asks a person.
var ofSchemas = map[string]bool{"$schema": true, "type": true, "properties": true, "required": true, "title": true, "description": true,
	"enum": true, "enumNames": true, "default": true, "format": true, "items": true, "oneOf": true, "anyOf": true, "const": true,
	"minLength": true, "maxLength": true, "minimum": true, "maximum": true, "minItems": true, "maxItems": true}

// ofBlocks are those of a content block and of an embedded resource.
var ofBlocks = map[string]bool{"type": true, "text": true, "data": true, "blob": true, "mimeType": true, "uri": true, "name": true,
	"title": true, "description": true, "resource": true, "annotations": true, "audience": true, "priority": true,
	"lastModified": true, "size": true, "icons": true, "src": true, "sizes": true, "_meta": true}

type viewBuilder struct {
	with     *scrub.Scrubber
	wantsRaw bool
	res      scrub.Result
	view     strings.Builder // of the segment that is being made
	raw      strings.Builder
	begun    bool            // it holds more than what it repeats
	ends     []int           // of the blocks in view
	long     map[string]bool // texts of segmentLen and more that were added
	out      []classify.Segment
}

// object adds the members of an object; known names are not repeated.
func (b *viewBuilder) object(v strictjson.Value, known map[string]bool) {
	mime := v.Get("mimeType").Text()
	for name, value := range v.Members() {
		key := name.Text()
		inside := known
		switch {
		case !known[key]:
			b.add(key)
			if !known["$schema"] { // what stands below a parameter is a schema again
				inside = nil
			}
		case known["blob"] && value.Kind() == '"' && (key == "data" || key == "blob"):
			b.blob(value.Text(), mime)
			continue
		case known["blob"] && key == "type":
			continue
		case key == "content", key == "contents":
			inside = ofBlocks
		case key == "requestedSchema":
			inside = ofSchemas
		case key == "structuredContent", key == "_meta", key == "data", key == "annotations", key == "metadata", key == "tools":
			inside = nil
		}
		b.value(value, inside)
		if key == "content" || key == "contents" || key == "structuredContent" || key == "_meta" {
			b.endBlock()
		}
	}
}

// endBlock notes where a block of the result ends in the segment.
func (b *viewBuilder) endBlock() {
	if n := b.view.Len(); n > 0 && (len(b.ends) == 0 || b.ends[len(b.ends)-1] < n) {
		b.ends = append(b.ends, n)
	}
}

func (b *viewBuilder) value(v strictjson.Value, known map[string]bool) {
	switch v.Kind() {
	case '"':
		b.text(v.Text())
	case '[':
		for e := range v.Elements() {
			b.value(e, known)
			if known["blob"] {
				b.endBlock()
			}
		}
	case '{':
		b.object(v, known)
	}
}

// blob adds base64 of a text; what is not that is a string like any other, unless it
// is bytes that no model reads.
func (b *viewBuilder) blob(s, mimeType string) {
	if blob.FormOf(s) == blob.Ambiguous {
		b.text(s)
		return
	}
	b.add(readable([]blob.Content{blob.ReadBase64(s, mimeType)}))
}

// text adds a string, and what it holds if it is a data: URI.
func (b *viewBuilder) text(s string) {
	b.add(s)
	if u, isURI := blob.ParseDataURI(s); isURI {
		b.add(readable(u.Contents))
	}
}

func (b *viewBuilder) add(text string) {
	if text == "" {
		return
	}
	if b.view.Len() >= segmentLen {
		b.next()
	}
	b.begun = true
	if len(text) >= segmentLen {
		if b.long[text] {
			// Many servers send a text a second time as structuredContent. What it says with its
			// neighbours is new; what stands between its ends was read.
			text = head(text, shared) + "\n" + end(text, shared)
		} else if b.long == nil {
			b.long = map[string]bool{text: true}
		} else {
			b.long[text] = true
		}
	}
	b.with.Scrub(text, &b.res)
	clean := b.res.Clean.String()
	b.view.Grow(len(clean) + 1) // a long text once, and not again for the line feed
	b.view.WriteString(clean)
	b.view.WriteByte('\n')
	if b.wantsRaw {
		b.raw.WriteString(text)
		b.raw.WriteByte('\n')
	}
}

// next begins a segment with the end of the one before.
func (b *viewBuilder) next() {
	view, raw := end(b.view.String(), shared), end(b.raw.String(), shared)
	b.flush()
	b.view.WriteString(view)
	b.raw.WriteString(raw)
}

func (b *viewBuilder) flush() {
	if b.begun {
		b.endBlock()
		s := classify.Segment{View: b.view.String(), Raw: b.raw.String()}
		for i, from := 0, 0; len(b.ends) > 1 && i < len(b.ends); i++ {
			s.Parts, from = append(s.Parts, strings.TrimSuffix(s.View[from:b.ends[i]], "\n")), b.ends[i]
		}
		b.out = append(b.out, s)
	}
	b.view, b.raw, b.begun, b.ends = strings.Builder{}, strings.Builder{}, false, nil
}
