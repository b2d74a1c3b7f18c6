// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

// FuzzLines: whatever the stream, its lines are those that a reader with all of it
// at hand would cut, however it comes in pieces.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "\n", "a", "a\nb", "a\r\n\n b \n", "long line indeed\nx\n", "x\nlong line without end", "\n\n\n", "0123456789\n0123456789a\n"} {
		f.Add([]byte(s), uint8(0), uint8(3))
		f.Add([]byte(s), uint8(1), uint8(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, how, lines uint8) {
		const limit = 10
		var want []ground.Line
		rest := in
		for n := 1; len(rest) > 0; n++ {
			var line []byte
			line, rest, _ = bytes.Cut(rest, []byte("\n"))
			switch trimmed := bytes.Trim(line, " \t\r"); {
			case len(line) > limit:
				want = append(want, ground.Line{Number: n})
			case len(trimmed) > 0:
				want = append(want, ground.Line{Number: n, Text: trimmed})
			}
		}
		var r io.Reader = bytes.NewReader(in)
		switch how % 4 {
		case 1:
			r = iotest.OneByteReader(r)
		case 2:
			r = iotest.HalfReader(r)
		case 3:
			r = iotest.DataErrReader(r)
		}
		got, err := ground.ReadLines(r, limit, int(lines)+1, 100)
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		equal := func(x, y ground.Line) bool {
			return x.Number == y.Number && bytes.Equal(x.Text, y.Text) && (x.Text == nil) == (y.Text == nil)
		}
		if !slices.EqualFunc(got, want, equal) {
			t.Fatalf("%q: %+v, want %+v", in, got, want)
		}
		// A stream that breaks loses what stands there of a line, and no more.
		broken := io.MultiReader(bytes.NewReader(in), iotest.ErrReader(errors.New("broken")))
		got, err = ground.ReadLines(broken, limit, int(lines)+1, 100)
		if err == nil || errors.Is(err, io.EOF) {
			t.Fatalf("broken: %v", err)
		}
		if whole := bytes.Count(in, []byte("\n")); len(got) > 0 && got[len(got)-1].Number > whole {
			t.Fatalf("took a line that broke off: %+v", got)
		}
	})
}
