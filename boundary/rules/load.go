// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Load compiles the file at path. Relative paths in it begin in its directory,
// unless o says otherwise. The error wraps Problems, or why the file cannot be
// read.
func Load(path string, o Options) (*Rules, error) {
	src, o, err := readConfiguration(path, o)
	if err != nil {
		return nil, err
	}
	r, err := Parse(src, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", finding.Quote(path), err)
	}
	return r, nil
}

// readConfiguration reads the file at path. The options are those that it is compiled with.
func readConfiguration(path string, o Options) (src []byte, with Options, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, o, fmt.Errorf("rules: %w", err)
	}
	if o.Dir == "" {
		o.Dir = filepath.Dir(abs)
	}
	o = o.orSystem()
	if src, err = o.ReadFile(abs); err != nil {
		return nil, o, unread(path, err)
	}
	o.opened = nil // orSystem has wrapped ReadFile already
	return src, o, nil
}

// unread says why a configuration cannot be read, with its name once.
func unread(path string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("rules: configuration %s cannot be read: %w", finding.Quote(path), err)
}
