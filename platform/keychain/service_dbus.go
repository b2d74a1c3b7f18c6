// SPDX-License-Identifier: Apache-2.0

//go:build linux || freebsd || netbsd || openbsd || dragonfly

package keychain

import (
	"errors"

	"github.com/godbus/dbus/v5"
)

// noService reports whether the bus has no Secret Service, and cannot start one.
func noService(err error) bool {
	e, ok := errors.AsType[dbus.Error](err)
	return ok && e.Name == "org.freedesktop.DBus.Error.ServiceUnknown"
}
