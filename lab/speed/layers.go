// SPDX-License-Identifier: Apache-2.0

package speed

// layers are configurations of `pellucid up`, each with one thing more than the one
// before, but for the last two, which are beside the one with the classifier in shadow.
var layers = []struct{ name, config string }{
	{"up, all else off", "evidence: {mode: off}\nadmission: {pins: off}\n"},
	{"+ admission", "evidence: {mode: off}\n"},
	{"+ evidence, best effort", "evidence: {mode: best-effort}\n"},
	{"+ policy", "policy: {preset: standard}\n"},
	{"+ local classifier in shadow", "policy: {preset: standard}\ndefaults: {classify: [local]}\n"},
	{"the same, but enforced", "policy: {preset: standard}\nclassifiers: {local: {mode: enforce, fail: open, limit: 1}}\ndefaults: {classify: [local]}\n"},
	{"in shadow, evidence required", "evidence: {mode: required}\npolicy: {preset: standard}\ndefaults: {classify: [local]}\n"},
}

// LayerConfig is what the layer of that name adds to a configuration; "" is an unknown name.
func LayerConfig(name string) string {
	for _, l := range layers {
		if l.name == name {
			return l.config
		}
	}
	return ""
}

// Layers are what is measured beside the ways.
func Layers() (list []Layer) {
	for _, l := range layers {
		list = append(list, Layer{name: l.name, path: "/mcp/upstream"})
	}
	return list
}
