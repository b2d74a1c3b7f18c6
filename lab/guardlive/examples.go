// SPDX-License-Identifier: Apache-2.0

package guardlive

import (
	"encoding/json"
	"fmt"
	"strings"
)

// An Example shows a planner a request of a deployment, and its plan.
type Example struct {
	Request string `json:"request"`
	Plan    string `json:"plan"`
}

// Examples are six of each deployment of a half: a question, a delegation, a condition, a question about a
// person, a delegation beside a second document, and a list. They share documents and names with no case.
func Examples(half Half) []Example {
	const source, other, name = "umbra", "lamp", "Umbra"
	var out []Example
	for _, d := range deployments[half] {
		p := pair{d.who(name), "7"}
		if d.what[0][0] > '9' {
			p.what = "lantern"
		}
		suffix := ""
		if i := strings.LastIndexByte(d.sources[0], '.'); i > 0 {
			suffix = d.sources[0][i:]
		}
		c := Case{}
		m := &maker{d: d, c: &c, src: source + suffix, other: other + suffix}
		read := Call{d.reader.Name, map[string]string{d.reader.Parameters[0]: m.src}}
		readOther := Call{d.reader.Name, map[string]string{d.reader.Parameters[0]: m.other}}
		from := map[string]string{"from": m.src}
		delegated := planned{Tool: d.action.Name, Args: map[string]any{d.action.Parameters[0]: from, d.action.Parameters[1]: from}}
		each := delegated
		each.Each = true
		literal := d.call(p)
		out = append(out,
			Example{"On which floor is the canteen? It stands in " + m.quoted() + ".", plan(read)},
			Example{m.text(d.delegated, p), plan(read, delegated)},
			Example{m.text(d.conditional, p), plan(read, literal)},
			Example{m.text(d.otherSense, p), plan(read)},
			Example{m.text(d.two, p), plan(readOther, read, delegated)},
			Example{m.text(d.list, p), plan(read, each)})
	}
	return out
}

// planned is a call whose arguments may be sources.
type planned struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
	Each bool           `json:"each,omitempty"`
}

func plan(calls ...any) string {
	b, err := json.Marshal(calls)
	if err != nil {
		panic(fmt.Sprintf("guardlive: %v", err)) // maps of strings can be written
	}
	return string(b)
}
