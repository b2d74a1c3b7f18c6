// SPDX-License-Identifier: Apache-2.0

package store

// Words is words.
func Words(s string) []string { return words(s) }
