// SPDX-License-Identifier: Apache-2.0

package release

// What docs/install.md promises of the size of a release, in bytes.
const (
	maxBinary  = 56_000_000
	maxHook    = 4_000_000
	maxArchive = 21_000_000
)
