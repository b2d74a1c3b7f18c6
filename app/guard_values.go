// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/boundary/policy/values"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/delegation"
)

// maxValues bounds a file of values, in bytes.
const maxValues = 8 << 20

// valueRules compiles the rules about the values of calls, with their lists; nil: there are none.
func valueRules(g *rules.Guard) (delegation.Rules, error) {
	if len(g.Values) == 0 {
		return nil, nil
	}
	lists := map[string][]string{}
	for name, path := range g.Lists {
		list, err := readValues(path)
		if err != nil {
			return nil, fmt.Errorf("guard: lists: %s: %w", name, err)
		}
		lists[name] = list
	}
	out, err := values.Compile(values.Source{Rules: g.Values, Lists: lists})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// readValues reads a file of values, one on a line. A line that begins with # is a comment.
func readValues(path string) (out []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New("the file cannot be read")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxValues+1))
	switch {
	case err != nil:
		return nil, errors.New("the file cannot be read")
	case len(b) > maxValues:
		return nil, fmt.Errorf("the file is longer than %d bytes", maxValues)
	case !utf8.Valid(b):
		return nil, errors.New("the file is no UTF-8")
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	if len(out) > values.MaxList {
		return nil, fmt.Errorf("more than %d values", values.MaxList)
	}
	return out, nil
}
