// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import "github.com/pellucid-mcp/pellucid/text/strictjson"

// Abilities are the kinds of requests that a client accepts.
type Abilities struct{ Form, URL, Sample, Roots bool }

// AbilitiesOf reads a client's capabilities.
func AbilitiesOf(caps strictjson.Value, sampling bool) (a Abilities) {
	if elicit := caps.Get("elicitation"); elicit.Kind() == '{' {
		a.URL = elicit.Get("url").Exists()
		a.Form = elicit.Get("form").Exists() || !a.URL // spec: {} means forms
	}
	a.Sample = sampling && caps.Get("sampling").Kind() == '{'
	a.Roots = caps.Get("roots").Kind() == '{'
	return a
}

// Accepts reports whether the client accepts the request. It is false for a method that needs no capability of
// clients.
func (a Abilities) Accepts(method string, params strictjson.Value) bool {
	switch method {
	case Elicit:
		switch mode := params.Get("mode"); {
		case !mode.Exists() || mode.Text() == "form":
			return a.Form
		case mode.Text() == "url":
			return a.URL
		}
	case Sample:
		return a.Sample
	case ListRoots:
		return a.Roots
	}
	return false
}
