// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package app_test

import "testing"

func smallDisk(t *testing.T) string {
	t.Helper()
	t.Skip("a small disk is mounted on Linux only")
	return ""
}
