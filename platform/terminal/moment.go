// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxDays bounds the days of an age, so that it is a time.Duration.
const maxDays = 36500

// Age reads a span of time as Go writes it, such as 90m, or a number of days, such as 7d.
func Age(s string) (time.Duration, error) {
	days, ok := strings.CutSuffix(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 32)
	return time.Duration(min(n, maxDays)) * 24 * time.Hour, err
}

// Moment reads a time as RFC 3339 writes it, or how long before now it is; "" is no time. flag
// is its name in the error.
func Moment(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := Age(s); err == nil {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("%s: want a time as RFC 3339 writes it, or how long ago it is, as in 90m or 7d", flag)
	}
	return t, nil
}
