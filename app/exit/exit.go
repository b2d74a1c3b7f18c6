// SPDX-License-Identifier: Apache-2.0

// Package exit holds the exit codes of the verbs, and errors that carry them.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/pellucid-mcp/pellucid/platform/syserror"
)

// The exit codes of every verb, and above 4 those of single verbs, which stand in their help.
const (
	Failed      = 1 // the work was tried and not done, or what was asked is not so
	Usage       = 2 // the command line is wrong
	Config      = 3 // a configuration is wrong
	Unreachable = 4 // the upstream cannot be started or reached

	Changed  = 10 // of check: something waits for a person
	Rejected = 11 // of check and wrap: a server is not to be used
	NoServer = 12 // of check: a server could not be started or reached
)

// An Error carries the code that the process is to end with.
type Error struct {
	Code int
	err  error // nil: everything has been said already
}

func (e *Error) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *Error) Unwrap() error { return e.err }

// With gives err an exit code, unless it has one already. A nil err ends
// the process with code and without a word.
func With(code int, err error) error {
	var coded *Error
	if errors.As(err, &coded) {
		return err
	}
	return &Error{code, err}
}

// Unwritten is err in plain words where it says that standard output takes no more; without words where its
// reader has gone, as a signal has it on unix.
func Unwritten(err error) error {
	pe, ok := errors.AsType[*fs.PathError](err)
	if !ok || pe.Op != "write" || pe.Path != os.Stdout.Name() {
		return err
	}
	if syserror.Lost(pe.Err) {
		return &Error{Failed, nil}
	}
	return &Error{Failed, fmt.Errorf("standard output cannot be written: %w", pe.Err)}
}

// UntilSignal is a context that ends when the verb is told to: by Ctrl-C, by SIGTERM, or
// by one of more.
func UntilSignal(more ...os.Signal) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), append(more, os.Interrupt, syscall.SIGTERM)...)
}
