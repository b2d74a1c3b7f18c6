package surface

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/internal/strictjson"
)

// ableCapabilities are those of a client to which a server offers all that it has.
// Extensions are not among them: a client that has one is told of another surface.
const ableCapabilities = `{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},` +
	`"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}`

// capabilityNames are the capabilities of a client by which servers decide what they
// offer. Others have no influence on a pin.
var capabilityNames = [...]string{
	"roots", "sampling", "sampling.context", "sampling.tools", "elicitation", "elicitation.form", "elicitation.url",
	"tasks", "tasks.requests",
}

// allCapabilities is the set of a client that has every one of them.
var allCapabilities = strings.Join(sorted(capabilityNames[:]), " ")

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

// capabilitySet returns the names of the capabilities that a client declares, in order
// and apart by a space; "" if it declares none of capabilityNames.
func capabilitySet(capabilities strictjson.Value) string {
	var set []string
	for _, name := range capabilityNames {
		v := capabilities
		for part := range strings.SplitSeq(name, ".") {
			v = v.Get(part)
		}
		if v.Kind() == '{' {
			set = append(set, name)
		}
	}
	return strings.Join(sorted(set), " ")
}

// covers reports whether a client with the capabilities of one of sets has all of want.
func covers(sets []string, want string) bool {
	if want == "" {
		return true
	}
	return slices.ContainsFunc(sets, func(set string) bool {
		has := strings.Fields(set)
		for name := range strings.FieldsSeq(want) {
			if !slices.Contains(has, name) {
				return false
			}
		}
		return true
	})
}

// declared returns the capabilitySet of a request to initialize.
func declared(initialize []byte) string {
	var d strictjson.Doc
	if d.Reset(initialize, strictjson.Limits{MendSurrogates: true}) != nil {
		return ""
	}
	return capabilitySet(d.Root().Get("params").Get("capabilities"))
}
