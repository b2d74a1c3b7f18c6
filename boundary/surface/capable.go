// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// ableCapabilities are those of a client to which a server offers all that it has: those of
// plainCapabilities, and the extension Apps. A server may describe the same tool otherwise
// to a client with Apps.
const (
	plainCapabilities = `{` + protocolCapabilities + `}`
	ableCapabilities  = `{` + protocolCapabilities + `,"extensions":{"` + mcpmsg.ExtensionApps + `":{"mimeTypes":["` + mcpmsg.AppType + `"]}}}`

	protocolCapabilities = `"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},` +
		`"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}`
)

// capabilityPaths are the capabilities of a client by which servers decide what they
// offer, by the name that a pin has for them. Others have no influence on a pin.
var capabilityPaths = map[string][]string{
	"apps": {"extensions", mcpmsg.ExtensionApps},
}

func init() {
	for _, name := range []string{"roots", "sampling", "sampling.context", "sampling.tools", "elicitation", "elicitation.form", "elicitation.url",
		"tasks", "tasks.requests"} {
		capabilityPaths[name] = strings.Split(name, ".")
	}
}

// capabilitySet returns the names of the capabilities that a client declares, in order
// and apart by a space; "" if it declares none of capabilityPaths.
func capabilitySet(capabilities strictjson.Value) string {
	var set []string
	for name, path := range capabilityPaths {
		v := capabilities
		for _, part := range path {
			v = v.Get(part)
		}
		if v.Kind() == '{' {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	return strings.Join(set, " ")
}

// setOf is the capabilitySet of capabilities of our own.
func setOf(capabilities string) string {
	var d strictjson.Doc
	if err := d.Reset([]byte(capabilities), strictjson.Limits{}); err != nil {
		panic(err) // a constant of this package
	}
	return capabilitySet(d.Root())
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
func declared(initialize *wire.Message) string {
	if initialize.Parse() != nil {
		return ""
	}
	return capabilitySet(initialize.Params.Get("capabilities"))
}
