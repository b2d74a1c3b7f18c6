// SPDX-License-Identifier: Apache-2.0

package href

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// abnf is the grammar of RFC 3986, appendix A, for a URI with or without an
// authority, put together from the names of its rules; the host is as wide as
// the grammar has it.
var abnf = func() *regexp.Regexp {
	const (
		pct       = `%[0-9A-Fa-f]{2}`
		unres     = `A-Za-z0-9\-._~`
		sub       = `!$&'()*+,;=`
		pchar     = `(?:[` + unres + sub + `:@]|` + pct + `)`
		segments  = `(?:/` + pchar + `*)*`
		literal   = `\[[0-9A-Fa-f:.]+\]`
		regName   = `(?:[` + unres + sub + `]|` + pct + `)*`
		userinfo  = `(?:[` + unres + sub + `:]|` + pct + `)*@`
		authority = `(?:` + userinfo + `)?(?:` + literal + `|` + regName + `)(?::[0-9]*)?`
		hierPart  = `(?://` + authority + segments + `|/(?:` + pchar + `+` + segments + `)?|` + pchar + `+` + segments + `|)`
		tail      = `(?:` + pchar + `|[/?])*`
	)
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+\-.]*:` + hierPart + `(?:\?` + tail + `)?(?:#` + tail + `)?$`)
}()

// didSyntax is that of DID Core 1.0, section 3.1, with what may follow.
var didSyntax = regexp.MustCompile(`^did:([a-z0-9]+):((?:(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})*:)*(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})+)(?:[/?#]|$)`)

func FuzzParse(f *testing.F) {
	for _, tt := range allowed {
		f.Add(tt.uri)
	}
	for _, tt := range forbidden {
		f.Add(tt.uri)
	}
	faithful, err := scrub.Compile(scrub.Policy{Profile: scrub.Faithful})
	if err != nil {
		f.Fatal(err)
	}
	var found scrub.Result
	f.Fuzz(func(t *testing.T, s string) {
		if id, end := didParts(s); (end > 0) != didSyntax.MatchString(s) || end > 0 && !didSyntax.MatchString(s[:end]) {
			t.Fatalf("%+q: DID of %d to %d", s, id, end)
		}
		u, err := Parse(s)
		if _, didErr := ParseDID(s); didErr == nil && err != nil {
			t.Fatalf("%+q: ParseDID accepts what Parse refuses", s)
		}
		if err != nil {
			var r *Refusal
			if !errors.As(err, &r) || !r.Code.Known() || r.Offset < 0 || r.Offset > len(s) {
				t.Fatalf("%+q: %v", s, err)
			}
			return
		}
		if len(s) > MaxLen || !abnf.MatchString(s) {
			t.Fatalf("%+q is no URI", s)
		}
		if back, ok := Bare(u.Rendered()); !ok || back != u || u.String() != s {
			t.Fatalf("%+q: rendered %+q, and back %+q, %v", s, u.Rendered(), back, ok)
		}
		// A character reference is no token in a URI: who reads a URI does not decode it (THREATS.md).
		if faithful.Scrub(strings.ReplaceAll(u.Rendered(), "&", " "), &found); found.Tokens > 0 || found.Changed() {
			t.Fatalf("%+q holds a control token or worse: %+v", u.Rendered(), found.Edits)
		}
		parsed, err := url.Parse(s)
		if err != nil {
			t.Fatalf("%+q: net/url: %v", s, err)
		}
		if strings.EqualFold(parsed.Scheme, "https") {
			if !strings.EqualFold(parsed.Hostname(), u.Host()) || parsed.User != nil {
				t.Fatalf("%+q: host %q, net/url says %q", s, u.Host(), parsed.Host)
			}
		}
		fuzzDecoded(t, s)
	})
}

// fuzzDecoded decodes an allowed URI until it no longer changes, as a careless
// reader might, and looks at every stage.
func fuzzDecoded(t *testing.T, s string) {
	if strings.HasPrefix(s, "did:web:") {
		return // its port may stand behind an escaped colon
	}
	count := func(s string) (n [len(delimiters)]int) {
		for i := range n {
			n[i] = strings.Count(s, delimiters[i:i+1])
		}
		return n
	}
	triplet := regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	for text, level := s, 0; ; level++ {
		next := triplet.ReplaceAllStringFunc(text, func(x string) string {
			return string([]byte{hexValue(x[1])<<4 | hexValue(x[2])})
		})
		if !utf8.ValidString(next) || count(ucd.NFKC.String(next)) != count(s) {
			t.Fatalf("%+q: level %d is %+q", s, level, next)
		}
		for _, r := range next {
			if r < ' ' || ucd.ClassOf(r) != ucd.NotHidden {
				t.Fatalf("%+q: level %d holds %U", s, level, r)
			}
		}
		if next == text {
			break
		}
		if level >= maxLevels {
			t.Fatalf("%+q: more than %d levels", s, maxLevels)
		}
		text = next
	}
}

func BenchmarkParse(b *testing.B) {
	for name, s := range map[string]string{
		"plain":   "https://www.example.org/articles/2026/some-title?id=12&page=3#section",
		"escaped": "https://ja.wikipedia.org/wiki/%E6%9D%B1%E4%BA%AC%E9%83%BD",
		"idn":     "https://xn--e1afmkfd.xn--80akhbyknj4f/",
		"doi":     "urn:doi:10.1000/182",
		"did":     "did:web:w3c-ccg.github.io:user:alice",
		"worst":   "https://example.org/" + strings.Repeat("%252525EF", (MaxLen-20)/9),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Parse(s)
			}
		})
	}
}
