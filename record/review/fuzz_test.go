// SPDX-License-Identifier: Apache-2.0

package review

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// FuzzShow: whatever a held body is, no place is long, and nothing of it reaches a terminal
// that the terminal would obey.
func FuzzShow(f *testing.F) {
	for _, s := range []string{"", "no JSON \x1b[2J", `{"content":[{"text":"a\u202eb"}]}`, `{"\u001b[31m":{"a":["x"]}}`, `["\ud800"]`, strings.Repeat(`{"a":`, 200)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for p := range texts(body) {
			if len(p.place) > maxPlace+256 || strings.ContainsAny(p.place, "\x1b\n\r") {
				t.Errorf("place %+q", p.place)
			}
		}
		it := hold.Item{Body: body, Server: string(body), Tool: string(body), By: string(body), Rule: string(body)}
		var b strings.Builder
		if err := Show(&b, terminal.Palette{}, &it, Asked{}); err != nil || strings.ContainsAny(b.String(), "\x1b\r\x00\u202e\u200b") {
			t.Errorf("%+q, %v", b.String(), err)
		}
		NewShown(&it, Asked{})
	})
}
