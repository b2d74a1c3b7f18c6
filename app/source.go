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
	path string // absolute; "": the demonstration
	text []byte // of the demonstration
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
// the model, for which it is rejected.
func DemoSource(self string) *Source {
	quoted, err := json.Marshal(self) // a JSON string is a YAML string
	if err != nil {
		panic("up: quote a path: " + err.Error()) // strings always marshal
	}
	return &Source{text: fmt.Appendf(nil, "version: 1\nconsole: {}\nservers:\n  demo:\n    command: [%[1]s, demo, serve, --results]\n"+
		"  poisoned:\n    command: [%[1]s, demo, serve]\n", quoted)}
}

// load compiles the rules. The errors are those of the file, or of reading it.
func (s *Source) load(o rules.Options) (*rules.Rules, error) {
	if s.path == "" {
		return rules.Parse(s.text, rules.Options{})
	}
	return rules.Load(s.path, o)
}
