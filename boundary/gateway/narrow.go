// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bounds of what cannot hold an injection.
const (
	maxEnumWord  = 64 // bytes of a word that a schema lists
	maxShortID   = 36 // characters of an id: a UUID's
	maxShortIDs  = 4  // in one answer
	maxNarrow    = 64 // subschemas that are looked at
	narrowLevels = 8
)

// A narrowness looks at an outputSchema: whether all that it admits are numbers,
// truth values, words that it lists and a few short ids. It is strict: what it does
// not know is wide.
type narrowness struct{ schemas, ids int }

// narrowSchema reports whether the source of a schema is narrow.
func narrowSchema(src []byte) bool {
	var doc strictjson.Doc
	if doc.Reset(src, strictjson.Limits{}) != nil {
		return false
	}
	n := new(narrowness)
	return n.admits(doc.Root(), 0, false)
}

// admits reports whether s admits nothing but what is narrow. In a list ids could
// spell a sentence, so that there are none.
func (n *narrowness) admits(s strictjson.Value, level int, inList bool) bool {
	if n.schemas++; n.schemas > maxNarrow || level > narrowLevels || s.Kind() != '{' || s.Get("$ref").Exists() || s.Get("$dynamicRef").Exists() {
		return false
	}
	if c := s.Get("const"); c.Exists() {
		return isWord(c)
	}
	if e := s.Get("enum"); e.Kind() == '[' {
		for v := range e.Elements() {
			if !isWord(v) {
				return false
			}
		}
		return true
	}
	types := s.Get("type")
	if types.Kind() == '"' {
		return n.admitsType(types.Text(), s, level, inList)
	}
	some := false
	for t := range types.Elements() {
		if some = true; !n.admitsType(t.Text(), s, level, inList) {
			return false
		}
	}
	return some
}

func (n *narrowness) admitsType(name string, s strictjson.Value, level int, inList bool) bool {
	switch name {
	case "null", "boolean", "integer", "number":
		return true
	case "string":
		return n.admitsID(s, inList)
	case "array":
		return s.Get("items").Kind() == '{' && !s.Get("prefixItems").Exists() && n.admits(s.Get("items"), level+1, true)
	case "object":
		if s.Get("additionalProperties").Kind() != 'f' || s.Get("patternProperties").Exists() {
			return false
		}
		for _, p := range s.Get("properties").Members() {
			if !n.admits(p, level+1, inList) {
				return false
			}
		}
		return true
	}
	return false
}

// admitsID reports whether a string can only be a short id: of a length, and by its
// pattern of letters, digits and the marks of ids, without a space.
func (n *narrowness) admitsID(s strictjson.Value, inList bool) bool {
	most, isInt := s.Get("maxLength").Int64()
	if n.ids++; inList || n.ids > maxShortIDs || !isInt || most > maxShortID {
		return false
	}
	class, rest, found := strings.Cut(strings.TrimPrefix(s.Get("pattern").Text(), "^["), "]")
	if !found || !strings.HasPrefix(s.Get("pattern").Text(), "^[") || !strings.HasSuffix(rest, "$") {
		return false
	}
	if strings.Trim(class, "-_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || !isClass(class) {
		return false
	}
	switch rest = strings.TrimSuffix(rest, "$"); {
	case rest == "+", rest == "*":
		return true
	}
	return len(rest) > 2 && rest[0] == '{' && strings.Trim(rest[1:], "0123456789,") == "}"
}

// isClass leaves out ranges that reach beyond letters and digits, such as "+-z".
func isClass(class string) bool {
	for i := 1; i+1 < len(class); i++ {
		if class[i] == '-' && kindOfIDByte(class[i-1]) != kindOfIDByte(class[i+1]) {
			return false
		}
		if class[i] == '-' && kindOfIDByte(class[i-1]) == 0 {
			return false
		}
	}
	return true
}

func kindOfIDByte(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return 1
	case 'a' <= c && c <= 'z':
		return 2
	case 'A' <= c && c <= 'Z':
		return 3
	}
	return 0
}

// isWord: a number, a literal, or a short word that is not a sentence.
func isWord(v strictjson.Value) bool {
	switch v.Kind() {
	case '0', 't', 'f', 'n':
		return true
	case '"':
		s := v.Text()
		return len(s) <= maxEnumWord && strings.Count(s, " ") <= 3
	}
	return false
}

// isNarrow reports whether an answer cannot hold an injection: its tool's schema is
// narrow, it stands up to it, and there is nothing beside it but the same as text.
func isNarrow(p *passage, v Validation) bool {
	if !p.narrow || p.schema == nil || p.msg.Kind != wire.Response || v.Mode != policy.Enforce {
		return false
	}
	root := p.msg.Result
	for name := range root.Members() {
		switch name.Text() {
		case "content", "structuredContent", "resultType":
		case "isError":
			if root.Get("isError").Kind() != 'f' {
				return false // then nothing holds it to the schema
			}
		default:
			return false
		}
	}
	content := root.Get("content")
	if content.Len() > 1 { // each would be evaluated
		return false
	}
	for block := range content.Elements() {
		if block.Len() != 2 || block.Get("type").Text() != "text" || !sameAsText(p, block.Get("text")) {
			return false
		}
	}
	if p.asks() {
		return false
	}
	p.checked = p.schema.Tool(p.context(), root)
	return p.checked.Conformity == validate.Valid
}

// asks reports whether the answer is a question to the client.
func (p *passage) asks() bool {
	t := p.msg.Result.Get("resultType")
	return t.Exists() && t.Text() != mcpmsg.ResultTypes[0]
}

// sameAsText reports whether a text is JSON that stands up to the schema of p.
func sameAsText(p *passage, text strictjson.Value) bool {
	var doc strictjson.Doc
	return text.Kind() == '"' && doc.Reset([]byte(text.Text()), strictjson.Limits{}) == nil && p.schema.Check(p.context(), doc.Root()).Conformity == validate.Valid
}
