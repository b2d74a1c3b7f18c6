// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

func spell(t testing.TB, enc encoding.Encoding, text string) []byte {
	t.Helper()
	b, err := enc.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRead: the text of a blob is among its readings, whatever its type says of it.
func TestRead(t *testing.T) {
	const text = "caf\u00e9 <|im_start|> \u20ac"
	latin, _ := htmlindex.Get("windows-1252")
	japanese, _ := htmlindex.Get("shift_jis")
	le, be := spell(t, wide16le, text), spell(t, wide16be, text)
	for _, tt := range []struct {
		name, mediaType string
		plain           []byte
		want            string
	}{
		{"utf-8", "text/plain", []byte(text), text},
		{"utf-8 with its name", "text/plain; charset=UTF-8", []byte(text), text},
		{"utf-8 with a mark", "text/plain", []byte("\xef\xbb\xbf" + text), text},
		{"utf-16le", "text/plain; charset=utf-16le", le, text},
		{"utf-16le in quotes", `text/plain; Charset="UTF-16LE"`, le, text},
		{"utf-16be", "text/plain;charset=utf-16be", be, text},
		{"utf-16 without a mark, high byte first", "text/plain;charset=utf-16", be, text},
		{"utf-16 without a mark, low byte first", "text/plain;charset=utf-16", le, text},
		{"a mark, low byte first", "text/plain", append([]byte{0xff, 0xfe}, le...), text},
		{"a mark, high byte first", "application/json", append([]byte{0xfe, 0xff}, be...), text},
		{"a mark that contradicts the type", "text/plain;charset=utf-8", append([]byte{0xff, 0xfe}, le...), text},
		{"a mark without a type", "", append([]byte{0xff, 0xfe}, le...), text},
		{"utf-16 of which nothing is said", "text/plain", spell(t, wide16le, "plain <|x|> words"), "plain <|x|> words"},
		{"utf-16 without a type", "", spell(t, wide16be, "plain <|x|> words"), "plain <|x|> words"},
		{"utf-32", "text/plain;charset=utf-32", spell(t, wide32be, text), text},
		{"utf-32 with a mark", "text/plain", append([]byte{0xff, 0xfe, 0, 0}, spell(t, wide32le, text)...), text},
		{"windows-1252", "text/plain;charset=windows-1252", spell(t, latin, text), text},
		{"iso-8859-1", "text/html; charset=iso-8859-1", spell(t, latin, text), text},
		{"latin that says nothing", "text/plain", spell(t, latin, text), text},
		{"latin that calls itself utf-8", "text/plain;charset=utf-8", spell(t, latin, text), text},
		{"utf-8 that calls itself latin", "text/plain;charset=iso-8859-1", []byte(text), text},
		{"utf-8 that calls itself utf-16", "text/plain;charset=utf-16", []byte(text), text},
		{"cp1251", "text/csv;charset=cp1251", spell(t, charmap.Windows1251, "\u043f\u0440\u0438\u0432\u0435\u0442"), "\u043f\u0440\u0438\u0432\u0435\u0442"},
		{"ebcdic", "text/plain;charset=IBM037", spell(t, charmap.CodePage037, "<|im_start|>"), "<|im_start|>"},
		{"shift_jis", "text/plain;charset=shift_jis", spell(t, japanese, "\u65e5\u672c <|a|>"), "\u65e5\u672c <|a|>"},
		{"two charsets", "text/plain;charset=utf-8;charset=utf-16le", le, text},
		{"a charset without a known type", "application/x-odd; charset=utf-16le", le, text},
		{"bytes of no said type", "application/octet-stream", []byte(text), text},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Read(tt.plain, tt.mediaType)
			found := false
			for _, r := range c.Readings {
				found = found || r.Text() == tt.want
			}
			if !found || c.Unknown {
				t.Errorf("%+v", c)
			}
			for _, r := range c.Readings {
				if r.Weight != Whole || !utf8.ValidString(r.Text()) || strings.Contains(r.Text(), "\ufffd") {
					continue
				}
				if back, ok := r.Encode(r.Text()); !ok || !bytes.Equal(back, tt.plain) {
					t.Errorf("%+q is spelled %x (%v), came as %x", r.Text(), back, ok, tt.plain)
				}
			}
		})
	}
}

func TestReadOthers(t *testing.T) {
	for _, tt := range []struct {
		name, mediaType, plain string
		readings               int
		unknown                bool
	}{
		{"a picture", "image/png", "\x89PNG", 0, false},
		{"a picture that is words", "image/png", "words", 0, false},
		{"a drawing", "image/svg+xml", "<svg/>", 1, false},
		{"bytes", "", "\x89PNG\x00", 0, false},
		{"utf-7", "text/plain;charset=utf-7", "+AGkAbQ-", 1, true},
		{"an odd charset", "text/plain;charset=\u202e", "a", 1, true},
		{"no type at all", "nonsense", "a", 1, false},
	} {
		if c := Read([]byte(tt.plain), tt.mediaType); len(c.Readings) != tt.readings || c.Unknown != tt.unknown {
			t.Errorf("%s: %+v", tt.name, c)
		}
		if c := ReadBase64(Encode([]byte(tt.plain)), tt.mediaType); len(c.Readings) != tt.readings || c.Unknown != tt.unknown {
			t.Errorf("%s: in base64 %+v", tt.name, c)
		}
	}
	long := strings.Repeat("\u00e9", prefix)
	for i := range 3 { // wherever the prefix cuts a character
		if c := ReadBase64(Encode([]byte(strings.Repeat("a", i)+long)), ""); len(c.Readings) != 1 {
			t.Errorf("a long text is not taken for one: %d", i)
		}
	}
}

// FuzzRead: every blob has readings that can be spelled again or cannot be changed, and a result of n
// bytes costs no more than a few times n.
func FuzzRead(f *testing.F) {
	f.Add([]byte("a"), "text/plain;charset=utf-16")
	f.Add([]byte{0xff, 0xfe, 0, 0}, "")
	f.Add([]byte("\xef\xbb\xbf\xff"), "text/plain;charset=gbk;charset=iso-2022-jp")
	f.Fuzz(func(t *testing.T, plain []byte, mediaType string) {
		total := 0
		for _, r := range Read(plain, mediaType).Readings {
			total += len(r.Text())
			clean := strings.ToValidUTF8(r.Text(), "")
			b, ok := r.Encode(clean)
			if ok && r.enc != nil {
				if back, _ := r.enc.NewDecoder().Bytes(b[len(r.mark):]); string(back) != clean {
					t.Fatalf("%+q is spelled %x, which reads %+q", clean, b, back)
				}
			}
		}
		if total > 7*(3*len(plain)+3) {
			t.Fatalf("%d bytes of text in %d", total, len(plain))
		}
	})
}

// FuzzBase64: the form tells the truth, and the canonical spelling is canonical.
func FuzzBase64(f *testing.F) {
	for _, s := range []string{"aGk=", "aGk", "aG k=", "aG-k", "aGk=aGk=", "=", "a", "data:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		form := FormOf(s)
		if form == Ambiguous {
			return
		}
		plain := Decode(s)
		if c := Encode(plain); FormOf(c) != Canonical || (c == s) != (form == Canonical) {
			t.Fatalf("%+q of form %d becomes %q", s, form, c)
		}
	})
}

// FuzzDataURI: any string is a data: URI or not, and what it holds can be spelled again.
func FuzzDataURI(f *testing.F) {
	for _, s := range uris()[:200] {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, ok := ParseDataURI(s)
		if !ok || u.Ambiguous || len(u.Contents) != 1 || strings.ContainsAny(u.MediaType, ",%") || strings.Contains(u.MediaType, "64") {
			return
		}
		again, ok := ParseDataURI(u.Canonical(u.Plain()))
		if !ok || again.Ambiguous || !bytes.Equal(again.Plain(), u.Plain()) {
			t.Fatalf("%+q becomes %+q", s, u.Canonical(u.Plain()))
		}
	})
}
