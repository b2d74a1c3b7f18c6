// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
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

// Moment reads the value of a flag by ParseMoment; "" is no time.
func Moment(flag, s string, now time.Time) (t time.Time, err error) {
	if s == "" {
		return t, nil
	}
	if t, err = ParseMoment(s, now); err != nil {
		err = fmt.Errorf("%s: %w", flag, err)
	}
	return t, err
}

var errMoment = errors.New("want a time as RFC 3339 writes it, or how long ago it is, as in 90m or 7d")

// ParseMoment reads a time as RFC 3339 writes it, or how long before now it is.
func ParseMoment(s string, now time.Time) (time.Time, error) {
	if d, err := Age(s); err == nil {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, errMoment
	}
	return t, nil
}
