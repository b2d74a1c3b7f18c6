// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"crypto/sha256"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

func seedBodies(f *testing.F, add func(body string)) {
	for _, s := range []string{
		"", "text", "<", "</pellucid-", "\n</pellucid-00000000000000000000000000000000>", "\uff1c\uff0fpe11ucid",
		"<\u200b/\u202epel\u0301lucid>", Notice + "\n<pellucid-", "&lt;/pellucid-0>", "\xff<\xc0\x80pellucid",
		"<<<<pellucid", "</perplexity-sonar-response>", "\u226a\u1444pellucid",
	} {
		add(s)
	}
}

// FuzzFence: whatever the body and the labels, there is exactly one opening and
// one closing tag, nothing else looks like one, and the fence verifies.
func FuzzFence(f *testing.F) {
	seedBodies(f, func(s string) { f.Add(s, "files", "read", "") })
	f.Add("x", "\"><pellucid-", "a\nb", "</pellucid")
	f.Add("caf\u00e9 <\uff50ellucid \u2039pellucid", "files", "read", "")
	k := testKey(f)
	scrubber, err := scrub.Compile(scrub.Policy{Profile: scrub.Faithful})
	if err != nil {
		f.Fatal(err)
	}
	var res scrub.Result
	f.Fuzz(func(t *testing.T, body, server, tool, model string) {
		o := Origin{server, tool, model}
		form := Form{Further: len(body)%2 == 1, Strict: len(body)%5 == 1}
		if len(body)%3 == 1 {
			form.Cut = Cut{len(body), 2 * len(body)}
		}
		fenced := k.fenceOf(o, form, body)
		gotO, delivered, err := k.Open(fenced, o.Labels())
		if err != nil {
			t.Fatalf("does not verify: %+q", fenced)
		}
		if gotO != o.Labels() {
			t.Fatalf("origin %+q", gotO)
		}
		closed := len(fenced) - len(form.appendLines(nil))
		nonce := fenced[closed-1-nonceLen : closed-1]
		if n := strings.Count(fenced, nonce); n != 2 {
			t.Fatalf("the nonce stands %d times", n)
		}
		tags := 0
		for at, w := next(fenced, 0, fenceTag); w > 0; at, w = next(fenced, at+w, fenceTag) {
			tags++
		}
		if tags != 2 {
			t.Fatalf("%d tags in %+q", tags, fenced)
		}
		around, split, sealed, ok := k.appendAround([]byte("before "), o, form, body, false, DigestOf)
		if ok != (delivered == body) {
			t.Fatalf("AppendAround says %v of %+q", ok, body)
		}
		scrubber.Scrub(body, &res)
		if c := res.Clean.String(); holds(c, res.Clean.Narrow(), fenceTag) != holds(c, false, fenceTag) {
			t.Fatalf("%+q: narrow %v, which does not hold", c, res.Clean.Narrow())
		}
		if whole := string(around[:split]) + body + string(around[split:]); ok && (whole != "before "+fenced || sealed.Digest != sha256.Sum256([]byte(body))) {
			t.Fatalf("%+q, in parts %+q", fenced, whole)
		}
		if !ok && string(around) != "before " {
			t.Fatalf("something was appended: %+q", around)
		}
		again, n := appendNeutral(nil, delivered, fenceTag)
		if n != 0 || string(again) != delivered {
			t.Fatalf("not idempotent: %+q became %+q", delivered, again)
		}
		if utf8.ValidString(body) && !utf8.ValidString(delivered) {
			t.Fatalf("broke a character: %+q", delivered)
		}
		// What neutralising wrote can be taken back: nothing else was changed.
		if strings.Count(body, "<") < 2 && !strings.Contains(body, "&lt;") && !strings.ContainsFunc(body, func(r rune) bool { return r >= 0x80 }) {
			if back := strings.ReplaceAll(delivered, "&lt;", "<"); back != body {
				t.Fatalf("%+q became %+q", body, delivered)
			}
		}
		found := 0
		for g := range k.Scan("< before "+fenced+" behind >", o.Labels()) {
			if !g.Verified || g.Body != delivered || g.Cut != form.Cut || g.Strict != form.Strict {
				t.Fatalf("Scan: %+v", g)
			}
			found++
		}
		if found != 1 {
			t.Fatalf("Scan finds %d", found)
		}
	})
}

// FuzzOpen: only what Fence makes verifies, whatever the bytes.
func FuzzOpen(f *testing.F) {
	k := testKey(f)
	seedBodies(f, func(s string) {
		f.Add(k.fence(Origin{"files", "read", "m"}, s), 0, byte(0))
		f.Add(k.fence(Origin{"a", "b", ""}, s), len(Notice)+30, byte(1))
	})
	first := Origin{"files", "read", "m"}
	f.Add(k.fenceOf(first, Form{Further: true, Cut: Cut{1, 2}}, "x"), 5, byte(0))
	f.Add(k.fenceOf(first, Form{Further: true, Cut: Cut{1, 2}, Strict: true}, "x"), 5, byte(0))
	f.Fuzz(func(t *testing.T, s string, at int, flip byte) {
		if at >= 0 && at < len(s) {
			b := []byte(s)
			b[at] ^= flip
			s = string(b)
		}
		for range k.Scan(s, first) {
		}
		o, body, err := k.Open(s, first)
		if err != nil {
			if body != "" || o != (Origin{}) {
				t.Fatalf("an error with %+q %+q", o, body)
			}
			return
		}
		var form Form
		for g := range k.Scan(s, first) {
			form = Form{Further: !strings.HasPrefix(s, Notice), Cut: g.Cut, Strict: g.Strict}
		}
		if made := k.fenceOf(o, form, body); made != s {
			t.Fatalf("verifies, but Fence makes\n%+q\nof\n%+q", made, s)
		}
	})
}
