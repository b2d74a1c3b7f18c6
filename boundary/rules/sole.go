// SPDX-License-Identifier: Apache-2.0

package rules

// Sole returns rules for one server that no file configures, beside what base says; nil: nothing.
// The caller may set exported fields of them before they are in force. Version is that of base.
func Sole(base *Rules, s Server, t Tool) *Rules {
	r := newRules()
	if base != nil {
		*r = *base
	}
	own := s
	own.base, own.tools, own.toolKeys = &t, table[*Tool]{}, nil
	r.Servers, r.byName = []*Server{&own}, map[string]*Server{own.Name: &own}
	return r
}

// Literal is the Value of a text that is no secret to whoever reads the configuration.
func Literal(text string) Value { return Value{text: text} }
