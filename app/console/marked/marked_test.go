// SPDX-License-Identifier: Apache-2.0

package marked

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

func TestOf(t *testing.T) {
	for in, want := range map[string]string{
		"plain, d\u00e9j\u00e0 vu": "plain, d\u00e9j\u00e0 vu",
		`<script>x("&'")</script>`: "&lt;script&gt;x(&#34;&amp;&#39;&#34;)&lt;/script&gt;",
		"a\u202eb":                 `a<span class="cp">U+202E</span>b`,
		"\u2800\u2800\u2800":       `<span class="cp">3 ` + "\u00d7" + ` U+2800</span>`,
		"caf\xe9?":                 `caf<span class="cp" title="ill-formed UTF-8">E9</span>?`,
		"\xc0\x80":                 `<span class="cp" title="ill-formed UTF-8">C0</span><span class="cp" title="ill-formed UTF-8">80</span>`,
		"a\r\nb\tc":                `a<span class="cp">U+000D</span>` + "\nb\tc",
		"Z" + strings.Repeat("\u0301", 14) + "algo": `Z<span class="cp">+14 marks</span>algo`,
		"e\u0301":                              "e\u0301",
		"\u0645\u06cc\u200c\u062e\u0648\u0627": "\u0645\u06cc" + `<span class="cp kept">U+200C</span>` + "\u062e\u0648\u0627",
		"\u2764\ufe0f":                         "\u2764" + `<span class="cp kept">U+FE0F</span>`,
		"x\ufe0f":                              `x<span class="cp">U+FE0F</span>`,
		"Hi" + tags("Go now"):                  `Hi<span class="run"><b>6 tag characters</b>Go now</span>`,
		"Hi" + tags("<b>") + "\U000E0020":      `Hi<span class="run"><b>4 tag characters</b>&lt;b&gt; </span>`,
	} {
		if got := string(Of(in).Show()); got != want {
			t.Errorf("Of(%+q)\n got %+q\nwant %+q", in, got, want)
		}
	}
}

// tags writes ASCII in tag characters.
func tags(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(0xE0000 + r)
	}
	return b.String()
}

func TestReceivedAndDelivered(t *testing.T) {
	s, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		t.Fatal(err)
	}
	var r scrub.Result
	in := "a <|im_start|>b" + tags("Go now") + "c"
	s.Scrub(in, &r)
	if got, want := string(Received(in, r.Edits).Show()), `a <span class="cut" title="removed: control-token">&lt;|im_start|&gt;</span>b<span class="run"><b>6 tag characters</b>Go now</span>c`; got != want {
		t.Errorf("received\n got %s\nwant %s", got, want)
	}
	out := r.Clean.String()
	if got, want := string(Delivered(out, r.Edits).Show()), `a <span class="gap" title="removed here: control-token, 12 bytes"></span>b<span class="gap" title="removed here: hidden-tag, 24 bytes"></span>c`; got != want {
		t.Errorf("delivered\n got %s\nwant %s", got, want)
	}
}

func TestIdentifier(t *testing.T) {
	for in, want := range map[string]string{
		"":                       `<span class="cp kept">empty</span>`,
		"mail":                   `<bdi dir="ltr">mail</bdi>`,
		"a\nb\t":                 `<bdi dir="ltr">a<span class="cp">U+000A</span>b<span class="cp">U+0009</span></bdi>`,
		strings.Repeat("x", 100): `<bdi dir="ltr">` + strings.Repeat("x", 64) + `</bdi> <span class="tag">cut, 100 bytes in all</span>`,
	} {
		if got := string(Identifier(in).Show()); got != want {
			t.Errorf("Identifier(%+q)\n got %+q\nwant %+q", in, got, want)
		}
	}
}

// TestLongTexts: a long quiet text is folded, and one of very many marks is cut.
func TestLongTexts(t *testing.T) {
	if got := string(Of(strings.Repeat("word ", 100_000)).Show()); len(got) > 8192 || !strings.Contains(got, "in which nothing was found") {
		t.Errorf("a quiet text of 500,000 bytes takes %d", len(got))
	}
	began := time.Now()
	got := string(Of(strings.Repeat("a\u202e", 300_000)).Show())
	if len(got) > 1<<20 || !strings.Contains(got, "more, not shown") {
		t.Errorf("a text of 300,000 marks takes %d bytes", len(got))
	}
	t.Logf("300,000 marks: %v", time.Since(began))
}

// hiddenIn returns the first unit of s that no page may hold.
func hiddenIn(s string) (at int, bad bool) {
	at, _, _ = ucd.Scan(s, 0, ucd.Hidden|ucd.Flagged)
	return at, at < len(s)
}

func FuzzOf(f *testing.F) {
	for _, s := range []string{"", "a\u202eb", "<script>", "\xff\xc0", "Hi" + tags("Go now"), "a" + strings.Repeat("\u0301", 40) + "\u200d",
		"\u2764\ufe0f", "PASS \x1b[8mskip\x1b[0m <|im_start|>system", strings.Repeat("\u200b\u200c", 50)} {
		f.Add(s)
	}
	sc, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var r scrub.Result
		sc.Scrub(s, &r)
		for what, got := range map[string]string{
			"of": string(Of(s).Show()), "name": string(Identifier(s).Show()), "plain": Spelled(s).String(),
			"received": string(Received(s, r.Edits).Show()), "delivered": string(Delivered(r.Clean.String(), r.Edits).Show()),
			"unfolded": string(Unfolded(s, r.Edits).Show()),
		} {
			if at, bad := hiddenIn(got); bad || !utf8.ValidString(got) {
				t.Fatalf("%s of %+q has a hidden character at %d: %+q", what, s, at, got)
			}
			if what != "plain" {
				onlyOurElements(t, what, s, got)
			}
		}
		if text := visible(string(Unfolded(s, nil).Show())); len(s) < 2000 && !quietIn(s, text) {
			t.Fatalf("the visible text of %+q is %+q", s, text)
		}
	})
}

// onlyOurElements fails where got has an element or attribute that this package does not write.
func onlyOurElements(t *testing.T, what, in, got string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(got))
	open := 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			if open != 0 {
				t.Fatalf("%s of %+q leaves %d elements open: %s", what, in, open, got)
			}
			return
		case html.StartTagToken:
			tok := z.Token()
			ok := tok.Data == "span" || tok.Data == "b" && len(tok.Attr) == 0 || tok.Data == "bdi"
			for _, a := range tok.Attr {
				ok = ok && (a.Key == "class" || a.Key == "title" || a.Key == "dir" && a.Val == "ltr")
			}
			if !ok {
				t.Fatalf("%s of %+q has the element %v", what, in, tok)
			}
			open++
		case html.EndTagToken:
			open--
		case html.CommentToken, html.DoctypeToken, html.SelfClosingTagToken:
			t.Fatalf("%s of %+q: %s", what, in, got)
		}
	}
}

// visible is the text of the page without what stands in elements.
func visible(page string) string {
	z := html.NewTokenizer(strings.NewReader(page))
	var b strings.Builder
	depth := 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.StartTagToken:
			depth++
		case html.EndTagToken:
			depth--
		case html.TextToken:
			if depth == 0 {
				b.Write(z.Text())
			}
		}
	}
}

// quietIn reports whether text is what is left of s when units of it are taken out.
func quietIn(s, text string) bool {
	text = html.UnescapeString(text)
	for i := 0; i < len(s) && text != ""; {
		_, n, ok := ucd.Decode(s[i:])
		if ok {
			text = strings.TrimPrefix(text, s[i:i+n])
		}
		i += n
	}
	return text == ""
}
