// SPDX-License-Identifier: Apache-2.0

package console

import "github.com/pellucid-mcp/pellucid/text/scrub"

// asWhat are the kinds of texts that a text may be read as, each with the profile by which the gateway cleans it.
var asWhat = []struct {
	name, word Own
	profile    scrub.Profile
}{{"result", "a tool's result", scrub.MCP}, {"definition", "a tool's definition", scrub.Surface}}

type asView struct {
	Name, Word Own
	Here       bool
}

// readingsOf returns the choices, and which one the form names: the first by default.
func readingsOf(name string) (out []asView, at int) {
	for i, a := range asWhat {
		if string(a.name) == name {
			at = i
		}
		out = append(out, asView{Name: a.name, Word: a.word})
	}
	out[at].Here = true
	return out, at
}

// showReading fills in what becomes of the text where it is read as name says.
func (v *xrayView) showReading(x *xray, name string) {
	var at int
	v.As, at = readingsOf(name)
	v.AsName, v.AsWord = asWhat[at].name, asWhat[at].word
	for i, f := range x.profiles {
		if f.profile == asWhat[at].profile {
			v.AsFate = v.Fates[i]
		}
	}
}

// emptyXray is the page before there is a text.
func emptyXray() answer {
	as, _ := readingsOf("")
	return page("X-ray", xrayView{As: as})
}
