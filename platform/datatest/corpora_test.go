// SPDX-License-Identifier: Apache-2.0

package datatest

import (
	"errors"
	"strings"
	"testing"
)

func TestReadRows(t *testing.T) {
	stop := errors.New("enough")
	for _, tt := range []struct {
		in   string
		rows int
		err  string
	}{
		{"", 0, ""},
		{`{"id":"a","kind":"attack","family":"f","text":"x","more":1}` + "\n" + `{"id":"b","kind":"benign","family":"g","text":"\ud800"}`, 2, ""},
		{`{"id":"a","kind":"attack","family":"f","text":"x"}` + "\n{", 1, "row 2: "},
		{`{"kind":"odd","text":"x"}`, 0, "row 1: no text"},
		{`{"kind":"attack","text":7}`, 0, "row 1: "},
		{`{"kind":"attack","text":"stop"}`, 0, "row 1: enough"},
	} {
		rows := 0
		err := readRows(strings.NewReader(tt.in), func(r Row) error {
			if r.Text == "stop" {
				return stop
			}
			rows++
			return nil
		})
		if rows != tt.rows || (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("readRows(%q) = %d rows, %v; want %d rows, %q", tt.in, rows, err, tt.rows, tt.err)
		}
	}
}
