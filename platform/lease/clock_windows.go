// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	"golang.org/x/sys/windows"
)

// sinceBoot is the clock of leases. It goes on while the machine sleeps (GetTickCount64).
func sinceBoot() time.Duration { return windows.DurationSinceBoot() }
