// SPDX-License-Identifier: Apache-2.0

// Package syserror tells what went wrong with an address, a connection or a pipe: each system has
// numbers of its own for that, and those that Go's syscall names on Windows never come.
package syserror

import (
	"errors"
	"slices"
	"syscall"
)

// InUse reports whether something else listens at an address.
func InUse(err error) bool { return errors.Is(err, inUse) }

// NotHere reports whether an address is none of this machine.
func NotHere(err error) bool { return errors.Is(err, notHere) }

// Refused reports whether nothing listens at an address.
func Refused(err error) bool { return errors.Is(err, refused) }

// TimedOut reports whether the system has waited in vain for the other end.
func TimedOut(err error) bool { return errors.Is(err, timedOut) }

// Lost reports whether the other end of a connection or pipe has gone.
func Lost(err error) bool {
	return slices.ContainsFunc(lost, func(n syscall.Errno) bool { return errors.Is(err, n) })
}
