// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBarText(t *testing.T) {
	for _, tt := range []struct {
		n, total int64
		want     string
	}{
		{0, 0, "7 calls"},
		{3, 0, "7 calls"},
		{0, 10, "7 calls"},
		{1, 10, "10 %  7 calls  1m30s left"},
		{10, 10, "100 %  7 calls  0s left"},
		{11, 10, "100 %  7 calls  0s left"},
		{1, 1 << 60, "0 %  7 calls  1000h0m0s left"},
		{1 << 50, 1 << 51, "50 %  7 calls  10s left"},
	} {
		b := &Bar{total: tt.total, begun: time.Unix(0, 0)}
		b.At(tt.n, "7 calls")
		if got := b.text(time.Unix(10, 0)); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.n, tt.total, got, tt.want)
		}
	}
}

func TestBar(t *testing.T) { synctest.Test(t, testBar) }

func testBar(t *testing.T) {
	var out bytes.Buffer // read once Done has ended its writer
	b := newBar(&out, "import", 2)
	b.At(1, "\u202e1 row")
	time.Sleep(2 * redraw)
	b.Done()
	b.Done()
	if s := out.String(); !strings.HasPrefix(s, "\r\x1b[Kimport  ") || !strings.HasSuffix(s, "\r\x1b[K") || strings.Contains(s, "\u202e") {
		t.Errorf("%+q", s)
	}
	none := NewBar(&out, func(string) string { return "" }, "import", 2)
	none.At(1, "")
	if none.Done(); none != nil {
		t.Error("a bar on what is no terminal")
	}
}
