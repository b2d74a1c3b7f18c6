// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

var began = time.Now()

// sinceBoot is the clock of leases. On macOS CLOCK_MONOTONIC goes on while the machine sleeps, which the clock of package time
// does not (mach_absolute_time).
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return time.Since(began)
	}
	return time.Duration(t.Nano())
}
