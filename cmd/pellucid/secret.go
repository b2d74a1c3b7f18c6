// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// A secrets function returns what a reference stands for: env:NAME is a variable,
// file:PATH a file. A secret never stands on the command line, where every user of
// the machine can read it.
type secrets func(ref string) (string, error)

func (e *env) secrets() secrets { return e.references().Resolve }

// references say what stands behind a reference, here.
func (e *env) references() rules.Options {
	return rules.Options{Getenv: func(name string) (string, bool) {
		value := e.Getenv(name)
		return value, value != ""
	}}
}

// readConfiguration reads the file that a flag names, or else that of the user, if either exists. Verbs that send
// secrets do not read the file of the working directory, which may have come with a project.
func (e *env) readConfiguration(file string) (*rules.Rules, error) {
	o := e.references()
	if file == "" {
		file, o.OfClients = install.ConfigFile(), true
	}
	if file == "" {
		return nil, nil
	}
	return rules.Load(file, o)
}

// optional is the secret that ref stands for, or "" where there is no ref.
func (s secrets) optional(flag, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	value, err := s(ref)
	if err != nil {
		return "", exit.With(exit.Config, fmt.Errorf("%s: %w", flag, err))
	}
	return value, nil
}
