// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package lease

import "time"

var began = time.Now()

// sinceBoot is the clock of leases. On these systems it may stand still while the machine is suspended.
func sinceBoot() time.Duration { return time.Since(began) }
