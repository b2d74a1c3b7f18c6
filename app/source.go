// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// Source is where rules come from.
type Source struct {
	path  string // absolute; "": the demonstration
	text  []byte // of the demonstration
	third string // the third server of the demonstration, in words
}

// FileSource returns the configuration in the file at path, which it reads again when asked.
func FileSource(path string) (*Source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return &Source{path: abs}, nil
}

// DemoSource puts the demonstration's server behind the boundary twice: once with
// descriptions that it is let through with, and once with one that hides an order to
// the model, for which it is rejected. grounding is the program pellucid-ground, which the demonstration starts with its
// own set of attestations; "" where it is not installed.
func DemoSource(self, grounding string) *Source {
	s := &Source{third: "no grounding adapter, since pellucid-ground is not installed"}
	s.text = fmt.Appendf(nil, "version: 1\nconsole: {}\nservers:\n  demo:\n    command: [%[1]s, demo, serve, --results]\n"+
		"  poisoned:\n    command: [%[1]s, demo, serve]\n", yamlString(self))
	if grounding != "" {
		s.text = fmt.Appendf(s.text, "  grounding:\n    command: [%s, serve, --stdio]\n    profile: veritas-0.1\n", yamlString(grounding))
		s.third = "the grounding adapter with its demonstration set"
	}
	return s
}

// yamlString quotes s: a JSON string is a YAML string.
func yamlString(s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic("up: quote a path: " + err.Error()) // strings always marshal
	}
	return quoted
}

// load compiles the rules. The errors are those of the file, or of reading it.
func (s *Source) load(o rules.Options) (*rules.Rules, error) {
	if s.path == "" {
		return rules.Parse(s.text, rules.Options{})
	}
	return rules.Load(s.path, o)
}
