// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"slices"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The surfaces of real servers make surfaces, which survive a dump and are, but for
// numbers that it refuses, in the form of RFC 8785.
func TestRealSurfaces(t *testing.T) {
	items, odd, size := 0, 0, 0
	for name, s := range realSurfaces(t) {
		dump := s.AppendDump(nil)
		again, err := ParseDump(dump, Limits{})
		if err != nil {
			t.Errorf("%s: its dump is refused: %v", name, err)
			continue
		}
		if again.Fingerprint() != s.Fingerprint() || !bytes.Equal(again.AppendDump(nil), dump) || !slices.Equal(again.Unlisted(), s.Unlisted()) {
			t.Errorf("%s: its dump is another surface", name)
		}
		for _, it := range s.Items() {
			items++
			jcs, err := strictjson.Canonical(nil, it.JSON, strictjson.Limits{})
			if err != nil {
				odd++
			} else if !bytes.Equal(jcs, it.JSON) {
				t.Errorf("%s: an item is not canonical", name)
			}
		}
		size = max(size, s.Bytes())
	}
	t.Logf("%d items, %d with numbers that JCS refuses; the largest surface has %d bytes", items, odd, size)
}

func TestInspectReal(t *testing.T) {
	rejected, odd := 0, 0
	for name, s := range realSurfaces(t) {
		in := s.Inspect(Rules{Narrow: true})
		if err := in.Err(); err != nil {
			rejected++
			t.Logf("%s: %v: %s", name, err, in.Hits[0].Shown())
		}
		w := s.Inspect(Rules{})
		if err := w.Err(); err != nil {
			odd++
			t.Logf("%s: wide: %v: %s", name, err, w.Hits[0].Shown())
		}
		if len(in.Blobs) > 0 {
			t.Logf("%s: %d blobs", name, len(in.Blobs))
		}
	}
	if rejected > 1 || odd > 1 {
		t.Errorf("%d rejected, %d by the wider set; want at most one", rejected, odd)
	}
}

func BenchmarkInspect(b *testing.B) {
	all := realSurfaces(b)
	dumps := realDumps(b)
	for _, name := range []string{"ms-365-mcp", "server-memory", "mobile-mcp", "notion-mcp", "lark-mcp-zh"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(all[name].Bytes()))
			b.ReportAllocs()
			for b.Loop() {
				all[name].Inspect(Rules{Narrow: true})
			}
		})
		b.Run(name+"/wide", func(b *testing.B) {
			for b.Loop() {
				all[name].Inspect(Rules{})
			}
		})
		b.Run(name+"/with decoding", func(b *testing.B) {
			for b.Loop() {
				s, err := ParseDump(dumps[name], Limits{})
				if err != nil {
					b.Fatal(err)
				}
				s.Inspect(Rules{Narrow: true})
			}
		})
	}
}
