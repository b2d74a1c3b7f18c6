// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

func TestProvenanceGolden(t *testing.T) {
	p := Provenance{
		Origin: Origin{"files", "read_file", "m/1"}, Kind: KindFence,
		Profile: "mcp", SanitationVersion: "0.1", UnicodeVersion: "15.0.0",
		Evidence: "00112233445566778899aabbccddeeff", Digest: Digest{0: 0xAB}, Inspected: 2,
		Credentials: []scrub.Credential{{0: 0xCD}, {0: 0xEF}},
		Framed:      Places{List: []string{"content/0/text"}}, NotFramed: Places{[]string{"content/1/mimeType", "a\"b"}, 3},
		Findings: []Finding{
			{Field: "content/0/text", Code: finding.HiddenTag, Count: 12, Positions: []Span{{3, 15}, {20, 24}}},
			{Field: "structuredContent/#1", Code: finding.NFKC, Count: 1},
		},
		NotInspected: []NotInspected{{"content/1/data", finding.BlobNotInspected}},
	}
	want := `{"untrusted":true,"server":"files","tool":"read_file","model":"m/1","frame":"fence","profile":"mcp",` +
		`"sanitation_version":"0.1","unicode_version":"15.0.0","evidence":"00112233445566778899aabbccddeeff",` +
		`"digest":"sha256:ab00000000000000000000000000000000000000000000000000000000000000",` +
		`"credentials":["sha256:cd` + strings.Repeat("00", 31) + `","sha256:ef` + strings.Repeat("00", 31) + `"],` +
		`"framed":["content/0/text"],"not_framed":["content/1/mimeType","other"],"not_framed_more":3,"inspected":2,` +
		`"findings":[{"field":"content/0/text","code":"hidden-tag","count":12,"positions":[[3,15],[20,24]]},` +
		`{"field":"structuredContent/#1","code":"nfkc","count":1}],` +
		`"not_inspected":[{"field":"content/1/data","reason":"binary"}]}`
	if d := cmp.Diff(want, string(p.AppendJSON(nil))); d != "" {
		t.Error(d)
	}
	const least = `{"untrusted":true,"server":"other","frame":"fence","inspected":0}`
	if d := cmp.Diff(least, string((&Provenance{}).AppendJSON(nil))); d != "" {
		t.Error(d)
	}
}

// TestProvenanceBounds: whatever goes in, what comes out is JSON, ASCII, bounded,
// and covers every position and every count.
func TestProvenanceBounds(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z/"\\<>#0-9]{0,140}`))
	codes := rapid.OneOf(rapid.SampledFrom([]finding.Code{finding.HiddenBidi, finding.NFKC}), rapid.Map(text, func(s string) finding.Code { return finding.Code(s) }))
	rapid.Check(t, func(t *rapid.T) {
		p := Provenance{
			Origin: Origin{text.Draw(t, "server"), text.Draw(t, "tool"), text.Draw(t, "model")}, Kind: Kind(rapid.Byte().Draw(t, "kind")),
			Profile: text.Draw(t, "profile"), SanitationVersion: text.Draw(t, "version"), UnicodeVersion: text.Draw(t, "unicode"),
			Evidence: text.Draw(t, "evidence"),
		}
		total := 0
		for range rapid.IntRange(0, 80).Draw(t, "findings") {
			f := Finding{Field: text.Draw(t, "field"), Code: codes.Draw(t, "code"), Count: rapid.IntRange(0, 9).Draw(t, "count")}
			for i := range rapid.SampledFrom([]int{0, 1, 5, 255, 256, 257, 3000}).Draw(t, "positions") {
				f.Positions = append(f.Positions, Span{2 * i, 2*i + 1})
			}
			total += max(f.Count, len(f.Positions))
			p.Findings = append(p.Findings, f)
		}
		for range rapid.IntRange(0, 80).Draw(t, "not inspected") {
			p.NotInspected = append(p.NotInspected, NotInspected{text.Draw(t, "field"), codes.Draw(t, "reason")})
		}
		places := rapid.IntRange(0, 80).Draw(t, "places")
		for range places {
			p.Framed.Add(text.Draw(t, "framed"))
			p.NotFramed.List = append(p.NotFramed.List, text.Draw(t, "not framed"))
		}
		out := p.AppendJSON(nil)
		if len(out) > 70_000 {
			t.Fatalf("%d bytes", len(out))
		}
		for _, c := range out {
			if c < 0x20 || c > 0x7E || c == '\\' || c == '<' {
				t.Fatalf("%q in %s", c, out)
			}
		}
		var got struct {
			Untrusted bool
			Findings  []struct {
				Count     int
				Positions [][2]int
			}
			Framed           []string
			FramedMore       int                              `json:"framed_more"`
			NotFramed        []string                         `json:"not_framed"`
			NotFramedMore    int                              `json:"not_framed_more"`
			NotInspected     []struct{ Field, Reason string } `json:"not_inspected"`
			NotInspectedMore int                              `json:"not_inspected_more"`
		}
		if err := json.Unmarshal(out, &got); err != nil || !got.Untrusted {
			t.Fatalf("%v: %s", err, out)
		}
		if len(got.Framed)+got.FramedMore != places || len(got.NotFramed)+got.NotFramedMore != places || len(got.Framed) > maxEntries {
			t.Fatalf("%d places: %s", places, out)
		}
		if n := len(got.NotInspected) + got.NotInspectedMore; n != len(p.NotInspected) || len(got.NotInspected) > maxEntries {
			t.Fatalf("%d not inspected, want %d", n, len(p.NotInspected))
		}
		if len(got.Findings) > maxEntries {
			t.Fatalf("%d findings", len(got.Findings))
		}
		for i, f := range got.Findings {
			total -= f.Count
			if len(f.Positions) > MaxPositions {
				t.Fatalf("%d positions", len(f.Positions))
			}
			if n := len(f.Positions); n > 0 {
				in := p.Findings[i].Positions
				if f.Positions[n-1][1] != in[len(in)-1].End {
					t.Fatalf("finding %d: the last position ends at %d, not at %d", i, f.Positions[n-1][1], in[len(in)-1].End)
				}
			}
		}
		if total != 0 {
			t.Fatalf("%d are not counted", total)
		}
	})
}

func TestInstructions(t *testing.T) {
	for _, s := range []string{Instructions, Notice} {
		if _, n := appendNeutral(nil, s, fenceTag); n != 0 || strings.ContainsAny(s, "<>\n") {
			t.Errorf("holds a tag: %s", s)
		}
	}
}
