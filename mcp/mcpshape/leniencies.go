// SPDX-License-Identifier: Apache-2.0

package mcpshape

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Leniency is one thing that real servers get wrong and that has one meaning: it is
// repaired into the valid form. Everything else that is wrong is withheld.
type Leniency struct {
	Name   string
	Type   string // "" for every type
	Member string // "" for every member that need not be there
	When   State
	Beside string // another member of the object that must be there; "": none
	From   string // first and last revision; "": open
	To     string
	// Instead is the JSON that takes the place of the member; "" leaves it out.
	Instead string
	// Needed names the servers that need it, or the programs that accept the wrong form.
	Needed string
}

// A State is what is found where a member should be.
type State uint8

// The states.
const (
	Missing State = iota
	Null
	// LaterBlock is a content block of a type that a later revision brought.
	LaterBlock
)

// Leniencies is the list of all.
var Leniencies = []Leniency{{
	Name: "null-member", When: Null,
	Needed: "servers whose serializer writes null for what is absent: GitHub's and Linear's tools behind rmcp, Roblox Studio, " +
		"Azure data-api-builder (issue 3599), Apicurio Registry (pull 6899), Wazuh-MCP-Server (issue 75), Codewhale (issue 5335)",
}, {
	Name: "structured-only", Type: "CallToolResult", Member: "content", When: Missing, Beside: "structuredContent", Instead: "[]",
	Needed: "Shopify's catalog server (vercel/ai issue 20171), which leaves out the copy in content; the official TypeScript client reads it so",
}, {
	Name: "no-result-type", Member: "resultType", When: Missing, From: mcpmsg.Modern, Instead: `"complete"`,
	Needed: "servers of older revisions; the revision's own text says that a client takes an absent one for complete",
}, {
	Name: "form-without-fields", Type: "ElicitForm", Member: "requestedSchema", When: Missing, Instead: `{"type":"object","properties":{}}`,
	Needed: "servers on modelcontextprotocol/go-sdk, which leaves an empty form out",
}, {
	Name: "form-without-fields", Type: "FormSchema", Member: "properties", When: Missing, Instead: "{}",
	Needed: "servers on modelcontextprotocol/go-sdk that ask for consent only",
}, {
	Name: "later-block", When: LaterBlock, To: "2025-03-26",
	Needed: "servers on the official SDKs, which send resource links and audio to clients of every revision",
}}

func (l *Leniency) of(typ, member string, required bool, revision string) bool {
	return l.When != LaterBlock && (l.Type == "" || l.Type == typ) && (l.Member == "" && !required || l.Member == member) &&
		(l.From == "" || revision >= l.From) && (l.To == "" || revision <= l.To)
}

func (l *Leniency) applies(object, value strictjson.Value) bool {
	if l.When == Missing && value.Exists() || l.When == Null && value.Kind() != 'n' {
		return false
	}
	return l.Beside == "" || object.Get(l.Beside).Exists()
}

// laterBlock is the leniency for blocks, and nil where no revision is later.
func laterBlock(revision string) *Leniency {
	i := slices.IndexFunc(Leniencies, func(l Leniency) bool { return l.When == LaterBlock && revision <= l.To })
	if i < 0 {
		return nil
	}
	return &Leniencies[i]
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
