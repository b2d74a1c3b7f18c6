// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
)

// framingFlags say what is framed beside the text of tools.
type framingFlags struct {
	Fence      []string `enum:"resources,prompts,any-type,all" help:"@defaults.fence"`
	Structured string   `enum:"keep,text" default:"keep" help:"@defaults.structured"`
}

func (f *framingFlags) check(frame string) error {
	switch {
	case frame == "meta" && len(f.Fence) > 0:
		return errors.New("wrap: --fence puts text between tags, which --frame meta does not")
	case frame == "llm" && f.Structured == "text":
		return errors.New("wrap: --frame llm says in structured content whose text it is: --structured text does not go with it")
	}
	return nil
}

func (f *framingFlags) read() gateway.Framing {
	has := func(word string) bool { return slices.Contains(f.Fence, word) || slices.Contains(f.Fence, "all") }
	return gateway.Framing{Resources: has("resources"), Prompts: has("prompts"), AnyType: has("any-type"),
		StructuredText: f.Structured == "text"}
}
