// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

var began = time.Now()

// sinceBoot is the clock of leases. It goes on while the machine is suspended, which the clock of package time does
// not (CLOCK_MONOTONIC), and it cannot be set.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(began) // a sandbox may refuse it; it then does so from the start
	}
	return time.Duration(t.Nano())
}
