// SPDX-License-Identifier: Apache-2.0

// Package rfc3339 reads times as RFC 3339 spells them, and no others.
package rfc3339

import (
	"strings"
	"time"
)

// maxBytes is a time with nanoseconds and a zone, and some digits more.
const maxBytes = 40

// Parse reads s to the letter, as UTC. Package time is laxer: it takes a comma for
// the point, an hour of one digit, a zone of +24:60 (golang/go#54580). The zero
// time means none to Go, so it is no time here.
func Parse(s string) (t time.Time, ok bool) {
	const shape = "0000-00-00T00:00:00"
	if len(s) <= len(shape) || len(s) > maxBytes || !shaped(s[:len(shape)], shape) {
		return time.Time{}, false
	}
	if !isZone(strings.TrimLeft(s[len(shape):], ".0123456789")) {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.IsZero() {
		return time.Time{}, false
	}
	return t.UTC(), true
}

func isZone(s string) bool {
	if s == "Z" {
		return true
	}
	return (shaped(s, "+00:00") || shaped(s, "-00:00")) && s[1:3] < "24" && s[4:] < "60"
}

// shaped reports whether s is like shape, where a 0 stands for any digit.
func shaped(s, shape string) bool {
	if len(s) != len(shape) {
		return false
	}
	for i := range len(s) {
		if s[i] != shape[i] && (shape[i] != '0' || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}
