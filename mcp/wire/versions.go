// SPDX-License-Identifier: Apache-2.0

package wire

import "slices"

// versions are the revisions that a client may speak, newest first.
var versions = []string{firstModern, "2025-11-25", "2025-06-18", batchVersion, "2024-11-05"}

const (
	firstModern     = "2026-07-28"
	firstWithPrimes = "2025-11-25" // clients before it take an event without data for a broken message
	batchVersion    = "2025-03-26" // the one revision with arrays of messages
)

// Versions are the revisions that are spoken, newest first.
func Versions() []string { return slices.Clone(versions) }

// IsLegacy reports whether version is a revision that is spoken, and has sessions.
func IsLegacy(version string) bool {
	return version < firstModern && slices.Contains(versions, version)
}

// HasBatches reports whether a revision has arrays of messages.
func HasBatches(version string) bool { return version == batchVersion }

// AllowBatches says whether c's peer may send arrays of messages; where it may not, which
// is so at first, they are violations. Each of their messages is read as one of its own. A
// Conn whose transport knows the revision by itself is left alone.
func AllowBatches(c any, on bool) {
	if b, can := c.(interface{ AllowBatches(bool) }); can {
		b.AllowBatches(on)
	}
}

// modern reports whether revision v is stateless and mirrors its routing into headers.
func modern(v string) bool { return validVersion(v) && v >= firstModern }

// validVersion reports whether v looks like a revision (a date), so that it
// may stand in a header and be compared.
func validVersion(v string) bool {
	if len(v) != len(firstModern) {
		return false
	}
	for i := range len(v) {
		if dash := i == 4 || i == 7; dash != (v[i] == '-') || !dash && (v[i] < '0' || v[i] > '9') {
			return false
		}
	}
	return true
}
