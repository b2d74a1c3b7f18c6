// SPDX-License-Identifier: Apache-2.0

// Package waittest has what tests wait with for the work of other goroutines.
package waittest

import (
	"testing"
	"time"
)

// patience is long: a test must not depend on the speed of its machine.
const patience = 2 * time.Minute

// Until waits until ok returns true, and fails the test if it does not within two minutes.
// what says in the failure what was waited for.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
