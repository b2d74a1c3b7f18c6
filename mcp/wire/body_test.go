// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/pellucid-mcp/pellucid/platform/reuse"
)

// TestReadWhole: a body is read whole, however it comes and however long it was said to be,
// into a buffer of about its length; one that is too long, or breaks off, is refused.
func TestReadWhole(t *testing.T) {
	t.Parallel()
	least := cap(reuse.NewBuffer(0).Bytes())
	broken := errors.New("broken")
	for _, n := range []int{0, 1, least - 1, least, least + 1, bodyPiece, least + bodyPiece, 3*bodyPiece + 17, 1<<20 + 100} {
		body := make([]byte, n)
		for i := range body {
			body[i] = byte(i * 7)
		}
		for _, announced := range []int64{-1, int64(n), int64(n / 2)} {
			for name, r := range map[string]io.Reader{
				"at once": bytes.NewReader(body), "in halves": iotest.HalfReader(bytes.NewReader(body)),
				"with its end": iotest.DataErrReader(bytes.NewReader(body)),
			} {
				got, err := readWhole(r, announced, n, unbounded)
				if err != nil || !bytes.Equal(got.Bytes(), body) {
					t.Fatalf("%d bytes, announced %d, %s: %d bytes, %v", n, announced, name, len(got.Bytes()), err)
				}
				if most := max(n+n/4, bodyPiece) + least; cap(got.Bytes()) > most {
					t.Errorf("%d bytes, announced %d, %s: a buffer of %d", n, announced, name, cap(got.Bytes()))
				}
				got.Release()
			}
			if n == 0 {
				continue
			}
			if _, err := readWhole(bytes.NewReader(body), announced, n-1, unbounded); !errors.Is(err, errBodyTooLong) {
				t.Errorf("%d bytes, limit %d, announced %d: %v", n, n-1, announced, err)
			}
			if _, err := readWhole(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(broken)), announced, n, unbounded); !errors.Is(err, broken) {
				t.Errorf("%d bytes that break off: %v", n, err)
			}
		}
	}
}

// TestLineFits: a long line is given away in a buffer of about its length.
func TestLineFits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 64<<10 + 1, 1<<20 + 100} {
		line := bytes.Repeat([]byte{'x'}, n)
		text := bytes.Join([][]byte{line, []byte("short"), line, nil}, []byte("\n"))
		lr := &lineReader{r: bytes.NewReader(text), max: 2 << 20}
		for _, want := range [][]byte{line, []byte("short"), line} {
			got, owned, err := lr.next()
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes: %d bytes, %v", len(want), len(got), err)
			}
			if len(want) > 64<<10 && cap(owned.Bytes()) > len(want)+len(want)/2 {
				t.Errorf("%d bytes: a buffer of %d", len(want), cap(owned.Bytes()))
			}
			owned.Release()
		}
	}
}

func unbounded(int) error { return nil }
