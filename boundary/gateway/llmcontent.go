// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// mergeContent edits own, the structuredContent of a server, so that it carries the
// members. What the server said itself stays, except "untrusted", "source" and "model", by
// which a host decides how far it trusts the text. It returns the names that stayed: the values of
// these members belong into _meta only.
func mergeContent(e *strictjson.Edits, own strictjson.Value, members []frame.Member) (stayed []string) {
	for _, m := range members {
		v := own.Get(m.Name)
		switch {
		case !v.Exists():
			e.Append(own, m.Name, m.Value)
		case !setByOperator(m.Name):
			stayed = append(stayed, m.Name)
		case !bytes.Equal(v.Raw(), m.Value):
			e.Replace(v, m.Value)
		}
	}
	return stayed
}

// setByOperator reports whether a member says what the operator says, whatever the server has put there.
func setByOperator(name string) bool {
	return name == "untrusted" || name == "source" || name == "model"
}

// extendSchema edits schema, a tool's outputSchema with type object, so that the
// members of a language model's answer are valid in what it describes. It reports
// false and edits nothing where schema is not of a form that it can extend: no
// object, no literal "properties", or a keyword that may refuse a member (allOf, $ref
// and the like). A property that the server declares itself stays, except those of setByOperator.
func extendSchema(e *strictjson.Edits, schema strictjson.Value, search bool) bool {
	props := schema.Get("properties")
	if schema.Get("type").Text() != "object" || props.Kind() != '{' {
		return false
	}
	for _, k := range [...]string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if",
		"propertyNames", "patternProperties", "maxProperties", "dependentSchemas", "const", "enum"} {
		if schema.Get(k).Exists() {
			return false
		}
	}
	for _, m := range frame.LLMSchema(search) {
		switch v := props.Get(m.Name); {
		case !v.Exists():
			e.Append(props, m.Name, m.Value)
		case setByOperator(m.Name):
			e.Replace(v, m.Value)
		}
	}
	return true
}
