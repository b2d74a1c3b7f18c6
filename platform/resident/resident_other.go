// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package resident

// DropStartup does something on Linux only.
func DropStartup() {}
