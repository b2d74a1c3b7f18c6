// SPDX-License-Identifier: Apache-2.0

//go:build !race

package wire

// Watched says that Watch does something: in tests that run under the race detector.
const Watched = false

// Watch does nothing.
func Watch(func()) {}

func watch() {}
