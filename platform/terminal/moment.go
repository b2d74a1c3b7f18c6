// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"time"
)

// Moment reads a time as RFC 3339 writes it, or how long before now it is; "" is no time. flag
// is its name in the error.
func Moment(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("%s: want a time as RFC 3339 writes it, or how long ago it is, as in 90m", flag)
	}
	return t, nil
}
