// SPDX-License-Identifier: Apache-2.0

package mcpshape

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A leniency is one thing that real servers get wrong and that has one meaning: it is
// repaired into the valid form. Everything else that is wrong is withheld.
type leniency struct {
	name   string
	Type   string // "" for every type
	member string // "" for every member that need not be there
	when   state
	beside string // another member of the object that must be there; "": none
	from   string // first and last revision; "": open
	to     string
	// instead is the JSON that takes the place of the member; "" leaves it out.
	instead string
	// needed names the servers that need it, or the programs that accept the wrong form.
	needed string
}

// A state is what is found where a member should be.
type state uint8

// The states.
const (
	missing state = iota
	null
	noString // nor null
	// LaterBlock is a content block of a type that a later revision brought.
	LaterBlock
)

// leniencies is the list of all.
var leniencies = []leniency{{
	name: "null-member", when: null,
	needed: "servers whose serializer writes null for what is absent: GitHub's and Linear's tools behind rmcp, Roblox Studio, " +
		"Azure data-api-builder (issue 3599), Apicurio Registry (pull 6899), Wazuh-MCP-Server (issue 75), Codewhale (issue 5335)",
}, {
	name: "structured-only", Type: "CallToolResult", member: "content", when: missing, beside: "structuredContent", instead: "[]",
	needed: "Shopify's catalog server (vercel/ai issue 20171), which leaves out the copy in content; the official TypeScript client reads it so",
}, {
	name: "structured-only", Type: "CallToolResult", member: "content", when: null, beside: "structuredContent", instead: "[]",
	needed: "servers whose serializer writes null for what is absent, and that leave out the copy in content",
}, {
	name: "cursor", member: "nextCursor", when: noString,
	needed: "servers that number their pages; a list ends there, for the cursor of a request has to be a string",
}, {
	name: "no-result-type", member: "resultType", when: missing, from: mcpmsg.Modern, instead: `"complete"`,
	needed: "servers of older revisions; the revision's own text says that a client takes an absent one for complete",
}, {
	name: "form-without-fields", Type: "ElicitForm", member: "requestedSchema", when: missing, instead: `{"type":"object","properties":{}}`,
	needed: "servers on modelcontextprotocol/go-sdk, which leaves an empty form out",
}, {
	name: "form-without-fields", Type: "FormSchema", member: "properties", when: missing, instead: "{}",
	needed: "servers on modelcontextprotocol/go-sdk that ask for consent only",
}, {
	name: "later-block", when: LaterBlock, to: "2025-03-26",
	needed: "servers on the official SDKs, which send resource links and audio to clients of every revision",
}}

func (l *leniency) of(typ, member string, required bool, revision string) bool {
	return l.when != LaterBlock && (l.Type == "" || l.Type == typ) && (l.member == "" && !required || l.member == member) &&
		(l.from == "" || revision >= l.from) && (l.to == "" || revision <= l.to)
}

func (l *leniency) applies(object, value strictjson.Value) bool {
	if l.when == missing && value.Exists() || l.when == null && value.Kind() != 'n' || l.when == noString && (!value.Exists() || value.Kind() == '"') {
		return false
	}
	return l.beside == "" || object.Get(l.beside).Exists()
}

// laterBlock is the leniency for blocks, and nil where no revision is later.
func laterBlock(revision string) *leniency {
	i := slices.IndexFunc(leniencies, func(l leniency) bool { return l.when == LaterBlock && revision <= l.to })
	if i < 0 {
		return nil
	}
	return &leniencies[i]
}

// The first revisions that have a type of block.
const (
	withAudio = "2025-03-26"
	withLinks = "2025-06-18"
)

// OlderBlock returns the content block that says in an older revision what b says: a link
// becomes a text, audio becomes a resource. ok is false if the revision has b's type, or
// b's type is of no revision.
func OlderBlock(revision string, b strictjson.Value) (raw []byte, ok bool) {
	switch kind := b.Get("type").Text(); {
	case kind == "resource_link" && revision < withLinks:
		label := b.Get("title")
		if label.Text() == "" {
			label = b.Get("name")
		}
		raw = strictjson.AppendQuote([]byte(`{"type":"text","text":`), label.Text()+" <"+b.Get("uri").Text()+">")
		return append(raw, '}'), true
	case kind == "audio" && revision < withAudio:
		// As a resource it keeps its bytes.
		raw = []byte(`{"type":"resource","resource":{"uri":"pellucid:audio"`)
		if mime := b.Get("mimeType"); mime.Kind() == '"' {
			raw = append(append(raw, `,"mimeType":`...), mime.Raw()...)
		}
		data := []byte(`""`)
		if v := b.Get("data"); v.Kind() == '"' {
			data = v.Raw()
		}
		return append(append(append(raw, `,"blob":`...), data...), "}}"...), true
	}
	return nil, false
}
