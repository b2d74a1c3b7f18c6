// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"strconv"
	"strings"
	"testing"
)

// BenchmarkAlias shows what alias saves beside a copy: for the decoded text of a value, and
// for a value as an edit.
//
// go test -run '^$' -bench '^BenchmarkAlias$' ./text/strictjson
//
// A copy takes 2 to 3 times as long for 64 bytes, 14 to 23 times for 4 KiB and more than 1,000
// times for 256 KiB.
func BenchmarkAlias(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 256 << 10} {
		text := strings.Repeat("The quick brown fox. ", size/21+1)[:size]
		src := []byte(`{"a":"` + text + `"}`)
		var d Doc
		if err := d.Reset(src, Limits{}); err != nil {
			b.Fatal(err)
		}
		v := d.Root().Get("a")
		var e Edits
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"text/alias", func() { kept = v.Text() }},
			{"text/copy", func() { raw, _ := v.inside(); kept = string(raw) }},
			{"edit/alias", func() { e.Reset(); e.Replace(v, v.Raw()) }},
			{"edit/copy", func() { e.Reset(); e.add(v, edit{op: opRaw, text: string(v.Raw())}) }},
		} {
			b.Run(strconv.Itoa(size)+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.f()
				}
			})
		}
	}
}

var kept string

// TestQuoteAllocates: a text is quoted without a copy of it.
func TestQuoteAllocates(t *testing.T) {
	text, dst := strings.Repeat("The \"quick\" brown fox. ", 1<<10), make([]byte, 0, 64<<10)
	if n := testing.AllocsPerRun(10, func() { dst = AppendQuote(dst[:0], text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
