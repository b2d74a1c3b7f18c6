// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

// TestURIs: an allowed URI as a reader should see it, and of a refused one the reason, with
// nothing of it raw.
func TestURIs(t *testing.T) {
	const lines = "https://good.example/a\n\x1b\u202e\r\nhttp://a/\n"
	for _, c := range []struct {
		json bool
		want string
	}{
		{false, "[good.example] \u2192 https://good.example/a\n" +
			`refused: uri-hidden-character at byte 0: "\x1b\u202e\r"` + "\n" +
			`refused: uri-scheme at byte 0: "http://a/"` + "\n"},
		{true, `{"allowed":true,"uri":"https://good.example/a","render":"[good.example] ` + "\u2192" + ` https://good.example/a"}` + "\n" +
			`{"allowed":false,"uri":"\"\\x1b\\u202e\\r\"","code":"uri-hidden-character","offset":0}` + "\n" +
			`{"allowed":false,"uri":"\"http://a/\"","code":"uri-scheme","offset":0}` + "\n"},
	} {
		var b strings.Builder
		u := NewURIs(&b, c.json)
		if err := u.Lines(strings.NewReader(lines)); err != nil {
			t.Fatal(err)
		}
		if err := u.Flush(); err != nil || b.String() != c.want || u.Total != 3 || u.Refused != 2 {
			t.Errorf("%s\nwant %s\n%d of %d, %v", b.String(), c.want, u.Refused, u.Total, err)
		}
	}
	broken := errors.New("broken")
	if err := NewURIs(new(strings.Builder), false).Lines(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("an input that breaks off: %v", err)
	}
}
