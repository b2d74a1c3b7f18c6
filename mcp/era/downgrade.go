// SPDX-License-Identifier: Apache-2.0

package era

import (
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/mcpshape"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Revisions that brought something.
const (
	withAudio      = "2025-03-26" // and annotations of tools, message of progress
	withStructured = "2025-06-18" // and outputSchema, resource_link, title, _meta of definitions
	withIcons      = "2025-11-25"
)

// downgrade edits a modern result so that it is one of an older revision; false
// if it cannot be. The version is empty until the client has sent initialize.
func downgrade(e *strictjson.Edits, method, version string, r strictjson.Value) bool {
	if version == "" {
		version = lastLegacy
	}
	for _, name := range [...]string{"resultType", "inputRequests", "requestState"} {
		e.Remove(r.Get(name))
	}
	if cacheable(method) {
		e.Remove(r.Get("ttlMs"))
		e.Remove(r.Get("cacheScope"))
	}
	switch method {
	case mcpmsg.CallTool:
		return toolResult(e, version, r)
	case mcpmsg.GetPrompt:
		for message := range r.Get("messages").Elements() {
			block(e, version, message.Get("content"))
		}
	case mcpmsg.ListTools:
		definitions(e, version, r.Get("tools"))
		for tool := range r.Get("tools").Elements() {
			// spec: to 2025-11-25 an outputSchema is that of an object.
			if schema := tool.Get("outputSchema"); schema.Exists() && schema.Get("type").Text() != "object" {
				e.Remove(schema)
			}
			if version < withAudio {
				e.Remove(tool.Get("annotations"))
			}
			if version < withStructured {
				e.Remove(tool.Get("outputSchema"))
			}
		}
	case mcpmsg.ListPrompts:
		definitions(e, version, r.Get("prompts"))
		for prompt := range r.Get("prompts").Elements() {
			if version < withStructured {
				titles(e, prompt.Get("arguments"))
			}
		}
	case mcpmsg.ListResources:
		definitions(e, version, r.Get("resources"))
	case "resources/templates/list":
		definitions(e, version, r.Get("resourceTemplates"))
	}
	return true
}

// definitions takes from each entry what the revision does not have.
func definitions(e *strictjson.Edits, version string, list strictjson.Value) {
	for entry := range list.Elements() {
		if version < withIcons {
			e.Remove(entry.Get("icons"))
		}
		if version < withStructured {
			e.Remove(entry.Get("title"))
			e.Remove(entry.Get("_meta"))
		}
	}
}

func titles(e *strictjson.Edits, list strictjson.Value) {
	for entry := range list.Elements() {
		e.Remove(entry.Get("title"))
	}
}

// toolResult edits the result of a call so that a client of an older revision can read it; false if that
// is not possible.
func toolResult(e *strictjson.Edits, version string, r strictjson.Value) bool {
	content := r.Get("content")
	if content.Exists() && content.Kind() != '[' {
		return false
	}
	for b := range content.Elements() {
		block(e, version, b)
	}
	structured := r.Get("structuredContent")
	dropped := structured.Exists() && (version < withStructured || structured.Kind() != '{')
	if dropped {
		e.Remove(structured)
	}
	switch {
	case dropped && content.Len() == 0: // it would be lost
		e.Append(r, "content", append(textBlock(string(structured.Raw())), ']'))
	case !content.Exists():
		e.Append(r, "content", []byte("[]"))
	}
	return true
}

// textBlock is the beginning of an array, and a text block in it.
func textBlock(s string) []byte { return append([]byte{'['}, text(s)...) }

func text(s string) []byte {
	return append(append([]byte(`{"type":"text","text":`), quoted(s)...), '}')
}

// block makes a content block one that the revision has.
func block(e *strictjson.Edits, version string, b strictjson.Value) {
	if raw, older := mcpshape.OlderBlock(version, b); older {
		e.Replace(b, raw)
	} else if version < withIcons {
		e.Remove(b.Get("icons"))
	}
}
