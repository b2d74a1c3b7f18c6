// SPDX-License-Identifier: Apache-2.0

package rfc3339

import (
	"regexp"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	noon := time.Date(2026, 4, 25, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"2026-04-25T12:00:00Z":      noon,
		"2026-04-25T12:00:00.5Z":    noon.Add(time.Second / 2),
		"2026-04-25T14:00:00+02:00": noon,
		"2026-04-25T12:00:00-00:00": noon,
		"2026-04-26T11:59:00+23:59": noon,

		"":                                          {},
		"2026-04-25":                                {},
		"2026-04-25T12:00:00":                       {},
		"2026-04-25t12:00:00Z":                      {},
		"2026-04-25 12:00:00Z":                      {},
		"2026-04-25T12:00:00z":                      {},
		"2026-04-25T1:00:00Z":                       {},
		"2026-04-25T12:00:00,5Z":                    {},
		"2026-04-25T12:00:00.Z":                     {},
		"2026-04-25T12:00:00.1.2Z":                  {},
		"2026-04-25T12:00:001Z":                     {},
		"2026-04-25T12:00:00+0200":                  {},
		"2026-04-25T12:00:00+24:00":                 {},
		"2026-04-25T12:00:00+02:60":                 {},
		"2026-04-25T12:00:00+2:00":                  {},
		"2026-04-25T24:00:00Z":                      {},
		"2026-02-30T12:00:00Z":                      {},
		"2026-04-25T12:00:60Z":                      {}, // Go has no leap seconds
		"0001-01-01T00:00:00Z":                      {},
		"2026-04-25T12:00:00.00000000000000000000Z": {}, // 41 bytes
		" 2026-04-25T12:00:00Z":                     {},
	} {
		if got, ok := Parse(s); !got.Equal(want) || ok == want.IsZero() {
			t.Errorf("%q: %v, %v", s, got, ok)
		}
	}
}

// FuzzParse: what is read has the form of RFC 3339 5.6, and the meaning that package
// time gives it.
func FuzzParse(f *testing.F) {
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)
	f.Add("2026-04-25T10:00:00Z")
	f.Add("2026-04-25T10:00:00.123+02:00")
	f.Add("2026-04-25T10:00:00+24:00")
	f.Add("2026-04-25T1:00:00,5Z")
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := Parse(s)
		lax, err := time.Parse(time.RFC3339, s)
		if want := err == nil && len(s) <= maxBytes && !lax.IsZero() && form.MatchString(s); ok != want {
			t.Fatalf("%+q: %v", s, ok)
		}
		if ok && !at.Equal(lax) {
			t.Fatalf("%+q is %v or %v", s, at, lax)
		}
	})
}
