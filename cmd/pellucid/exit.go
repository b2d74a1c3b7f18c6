// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The exit codes of every verb; those above 4 belong to single verbs and stand in their help.
const (
	exitFailed      = 1 // the work was tried and not done, or what was asked is not so
	exitUsage       = 2 // the command line is wrong
	exitConfig      = 3 // a configuration is wrong
	exitUnreachable = 4 // the upstream cannot be started or reached
)

// An exitError carries the code that the process is to end with.
type exitError struct {
	code int
	err  error // nil: everything has been said already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// withCode gives err an exit code, unless it has one already. A nil err ends
// the process with code and without a word.
func withCode(code int, err error) error {
	var coded *exitError
	if errors.As(err, &coded) {
		return err
	}
	return &exitError{code, err}
}

// unwritten is err in plain words where it says that standard output takes no more.
func unwritten(err error) error {
	pe, ok := errors.AsType[*fs.PathError](err)
	if !ok || pe.Op != "write" || pe.Path != os.Stdout.Name() {
		return err
	}
	return &exitError{exitFailed, fmt.Errorf("standard output cannot be written: %w", pe.Err)}
}
