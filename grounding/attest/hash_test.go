// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

func hashOf(t testing.TB, doc string, v Version) Hash {
	t.Helper()
	h, err := CanonicalHash([]byte(doc), v)
	if err != nil {
		t.Fatalf("CanonicalHash(%s): %v", doc, err)
	}
	return h
}

// The hashed bytes are spelled out, so that anybody can check them with any tool.
func TestCanonicalHash(t *testing.T) {
	for _, tt := range []struct{ doc, v02, v03 string }{
		{`{}`, `{}`, `{}`},
		{` { "b" : 1.0 , "a" : "x" , "proof" : [1] } `, `{"a":"x","b":1}`, `{"a":"x","b":1}`},
		{`{"a":{"proof":1}}`, `{"a":{"proof":1}}`, `{"a":{"proof":1}}`},
		{`{"a":"\u0065\u0301"}`, "{\"a\":\"e\u0301\"}", "{\"a\":\"\u00e9\"}"},
		{`{"a":"\uff21\u0430\u200b\u202e"}`, "{\"a\":\"\uff21\u0430\u200b\u202e\"}", `{"a":"Aa"}`},
		{`{"\uff21\u200b":"x"}`, "{\"\uff21\u200b\":\"x\"}", "{\"\uff21\u200b\":\"x\"}"},
		// One pass, to the letter: what comes together once ZWNJ is gone stays apart.
		{`{"a":"e\u200c\u0301"}`, "{\"a\":\"e\u200c\u0301\"}", "{\"a\":\"e\u0301\"}"},
		// The literal set: soft hyphen and left-to-right mark are not in it.
		{`{"a":"\u00ad\u200e\u2061\ufe0f\u180b"}`, "{\"a\":\"\u00ad\u200e\u2061\ufe0f\u180b\"}", "{\"a\":\"\u00ad\u200e\u2061\u180b\"}"},
		{`{"a":["\u03c2","\u017f",{"b":"\u0456"}]}`, "{\"a\":[\"\u03c2\",\"\u017f\",{\"b\":\"\u0456\"}]}", "{\"a\":[\"\u03c2\",\"s\",{\"b\":\"i\"}]}"},
	} {
		if got, want := hashOf(t, tt.doc, V02), Hash(sha256.Sum256([]byte(tt.v02))); got != want {
			t.Errorf("0.2 of %s is not the hash of %+q", tt.doc, tt.v02)
		}
		if got, want := hashOf(t, tt.doc, V03), Hash(sha256.Sum256([]byte(tt.v03))); got != want {
			t.Errorf("0.3 of %s is not the hash of %+q", tt.doc, tt.v03)
		}
	}
	for _, doc := range []string{``, `[]`, `"x"`, `{"a":1e400}`, `{"a":9007199254740993}`, `{"a":"\ud800"}`, `{"a":1,"a":1}`} {
		if h, err := CanonicalHash([]byte(doc), V03); err == nil {
			t.Errorf("CanonicalHash(%s) = %v", doc, h)
		}
	}
	if _, err := CanonicalHash([]byte(`{}`), "0.4"); err == nil {
		t.Error("a version that does not exist has a hash")
	}
}

func TestStatedVersion(t *testing.T) {
	for doc, want := range map[string]Version{
		``: V02, `[]`: V02, `{}`: V02, `{"canonicalisation_version":"0.3"}`: V03, `{"canonicalisationVersion":"0.3"}`: V03,
		`{"canonicalisation_version":"9"}`: "9", `{"canonicalisation_version":3}`: "",
	} {
		if got := StatedVersion([]byte(doc)); got != want {
			t.Errorf("StatedVersion(%s) = %q, want %q", doc, got, want)
		}
	}
}

// A claim's hash needs no parser, but is that of the claim's object all the same.
func TestClaimHash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := Claim{Text: texts().Draw(rt, "text"), Topic: rapid.StringMatching(`[a-z:]{0,9}`).Draw(rt, "topic"), GroupID: rapid.StringMatching(`(urn:a:b)?`).Draw(rt, "group")}
		for _, v := range []Version{V02, V03} {
			if want := hashOf(t, string(c.appendJSON(nil)), v); c.Hash(v) != want {
				rt.Errorf("hash of %+q by %s is not that of its JSON", c, v)
			}
		}
	})
}

func TestASCIISkeleton(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom(nil, &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0, Hi: 0x7F, Stride: 1}}})).Draw(rt, "ascii")
		var k keyer
		if got, want := string(k.appendSkeleton(nil, s)), string(ucd.AppendSkeleton(nil, s)); got != want {
			rt.Errorf("skeleton of %q = %+q, want %+q", s, got, want)
		}
	})
}

// Golden hashes: they must not change with the toolchain, ever. Those of 0.2, 0.3
// and the claim were computed a second time with Python (json, unicodedata,
// hashlib) and the six confusable letters that the text has.
func TestGolden(t *testing.T) {
	s := sample()
	s.Rationale = "\uff34ide gau\u0261es \u2014 \u0430\u043b\u0442\u0438\u043c\u0435\u0442\u0440\u0438\u044f, e\u0301, \ufdfa, \U000132fa\u0316\u0301, \u1100\u1161"
	for _, tt := range []struct {
		name      string
		got, want string
	}{
		{"0.2", hashOf(t, string(s.AppendJSON(nil)), V02).String(), golden02},
		{"0.3", hashOf(t, string(s.AppendJSON(nil)), V03).String(), golden03},
		{"claim", s.Claim.Hash(V03).String(), goldenClaim},
		{"text", s.DedupKey().Text.String(), goldenText},
		{"skeleton", s.DedupKey().Skeleton.String(), goldenSkeleton},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %s, want %s", tt.name, tt.got, tt.want)
		}
	}
}

const (
	golden02       = "sha256:836a2ab49724b1a5bfac7de50a118a82a0a1d1bc12dd81e536a0cc19a1a3d080"
	golden03       = "sha256:a7a814a726434d4f155e557a442dc2c4a694e6fdaa43995b9b459e7a8a77f7f4"
	goldenClaim    = "sha256:c00b63fdc3c4aa026bb5d485d8630040131afb01f85d4b2f53223e4273352932"
	goldenText     = "sha256:da6c5f850887566780b3ce9890748f5349b03b1cc684031eb82d6b03e95e414a"
	goldenSkeleton = "sha256:7770de9a7a760a3b30071fd5b9eef644b31f35981625fa11ad5b706e0de5f50c"
)

// texts draws strings that hold what normalisation and confusables are about.
func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{
				"e\u0301", "\u00e9", "\u1100\u1161", "\uac00", "\u0430", "\u0456gnore", "\ufb01", "\uff21", "\u2460", "q\u0301\u0316",
				"\u212b", "\ufdfa", "\u0928\u093c", "word ", "1\u00bd", "\u3042", " ", "\u05d0\u05b7", "\U0001d400", "rn", "m", "0", "O",
			}),
			rapid.StringN(0, 4, -1),
		), 0, 8).Draw(t, "parts"), "")
	})
}

func withRationale(s string) *Statement {
	st := sample()
	st.Rationale = s
	return st
}

func hash03(t testing.TB, s *Statement) Hash { return hashOf(t, string(s.AppendJSON(nil)), V03) }

// RFC §7: the hash is that of the visible text. NFC and NFD are equal.
func TestHashOfForms(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := texts().Draw(rt, "text")
		if strings.ContainsFunc(s, longRun(s)) {
			rt.Skip("x/text inserts U+034F")
		}
		a, b, c := withRationale(s), withRationale(norm.NFC.String(s)), withRationale(norm.NFD.String(s))
		if hash03(t, a) != hash03(t, b) || hash03(t, a) != hash03(t, c) {
			rt.Errorf("the 0.3 hash of %+q differs between NFC and NFD", s)
		}
		if a.DedupKey() != b.DedupKey() || a.DedupKey() != c.DedupKey() {
			rt.Errorf("the dedup key of %+q differs between NFC and NFD", s)
		}
	})
}

// longRun is true for the first character where s has more than 30 non-starters,
// or one that x/text's tables may not know as ours do.
func longRun(s string) func(rune) bool {
	n := 0
	for _, r := range s {
		if ucd.Of(r)&ucd.NonStarter != 0 {
			n++
		}
	}
	return func(r rune) bool { return n > 30 || ucd.Of(r)&ucd.Flagged != 0 }
}

// Any character of RFC 4.4, put anywhere that nothing composes across, changes
// nothing; nor does one of the removed set change the dedup key, wherever it is.
func TestHashOfInsertions(t *testing.T) {
	var rfc, hidden []rune
	for r := rune(0x80); r < 0xE1000; r++ {
		if ucd.InRFCSet(r) && ucd.NFKC.IsNormal(string(r)) {
			rfc = append(rfc, r)
		}
		if ucd.Of(r)&ucd.Hidden != 0 && ucd.Substitute(r) == 0 && ucd.NFKC.String(string(r)) == string(r) && ucd.CCC(r) == 0 {
			hidden = append(hidden, r)
		}
	}
	if len(rfc) < 150 || len(hidden) < 4000 {
		t.Fatalf("%d and %d code points", len(rfc), len(hidden))
	}
	rapid.Check(t, func(rt *rapid.T) {
		before, behind := texts().Draw(rt, "before"), texts().Draw(rt, "behind")
		plain := withRationale(before + "a b" + behind)
		r := rapid.SampledFrom(rfc).Draw(rt, "of the RFC")
		if got := withRationale(before + "a" + string(r) + " " + string(r) + "b" + behind); hash03(t, got) != hash03(t, plain) {
			rt.Errorf("%U changes the 0.3 hash", r)
		}
		r = rapid.SampledFrom(hidden).Draw(rt, "hidden")
		if got := withRationale(before + string(r) + "a b" + behind); got.DedupKey() != plain.DedupKey() {
			rt.Errorf("%U behind %+q changes the dedup key", r, before)
		}
	})
}

// fold is stable where no removal brings two characters together.
func TestVisibleIsAFixPoint(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.OneOf(texts(), rapid.String()).Draw(rt, "text")
		var k keyer
		v := k.visible(s)
		if again := k.visible(v); again != v {
			rt.Errorf("visible(%+q) = %+q, then %+q", s, v, again)
		}
		if at, _, _ := ucd.Scan(v, 0, ucd.Hidden|ucd.Confusable); at != len(v) && ucd.Of(rune(v[at]))&(ucd.Hidden|ucd.Confusable) != 0 {
			rt.Errorf("visible(%+q) = %+q holds what it must not", s, v)
		}
	})
}

func TestRelate(t *testing.T) {
	identity := func(change func(*Statement)) Identity {
		s := sample()
		change(s)
		return mustParse(t, signed(t, s.AppendJSON(nil))).Identity()
	}
	known := identity(func(*Statement) {})
	later := func(s *Statement) { s.ID, s.Issued = "urn:uuid:2", s.Issued.Add(time.Hour) }
	for _, tt := range []struct {
		name   string
		change func(*Statement)
		want   Relation
	}{
		{"itself", func(*Statement) {}, Same},
		{"another id", func(s *Statement) { s.ID = "urn:uuid:2" }, Same},
		{"earlier", func(s *Statement) { s.Issued = s.Issued.Add(-time.Hour) }, Same},
		{"other expiry", func(s *Statement) { s.Expires = s.Expires.Add(time.Hour) }, Same},
		{"version 0.2", func(s *Statement) { s.Version = V02 }, Same},
		{"zero width", func(s *Statement) { s.Rationale = "Ti\u200bde gauges and altimetry agree." }, Same},
		{"soft hyphen", func(s *Statement) { s.Rationale = "Ti\u00adde gauges and altimetry agree." }, Same},
		{"Cyrillic", func(s *Statement) { s.Rationale = "Tid\u0435 gauges and altimetry agree." }, Same},
		{"full width", func(s *Statement) { s.Rationale = "\uff34ide gauges and altimetry agree." }, Same},
		{"later", later, Renewal},
		{"later and disguised", func(s *Statement) { later(s); s.Rationale = "Tid\u0435 gauges and altimetry agree." }, Renewal},
		{"skeleton", func(s *Statement) { s.Rationale = "Tide gauges and altirnetry agree." }, Lookalike},
		{"skeleton, later", func(s *Statement) { later(s); s.Rationale = "Tide gauges and altirnetry agree." }, Lookalike},
		{"another text", func(s *Statement) { s.Rationale = "No." }, Distinct},
		{"another verdict", func(s *Statement) { s.Verdict = False }, Distinct},
		{"another validator", func(s *Statement) { s.Validator = mustKey(2).DID() }, Distinct},
		{"another domain", func(s *Statement) { s.Domain = "journalism-default" }, Distinct},
		{"another claim", func(s *Statement) { s.Claim.Text = "It rose." }, Distinct},
		{"text moved to the next field", func(s *Statement) { s.Rationale, s.Qualifications = s.Rationale+s.Qualifications, "" }, Distinct},
	} {
		if got := Relate(known, identity(tt.change)); got != tt.want {
			t.Errorf("%s: relation %d, want %d", tt.name, got, tt.want)
		}
	}
	// What the literal steps of RFC 7 tell apart, the keys do not.
	a := identity(func(s *Statement) { s.Rationale = "caf\u00e9" })
	b := identity(func(s *Statement) { s.Rationale = "cafe\u200c\u0301" })
	if a.Hash == b.Hash || Relate(a, b) != Same {
		t.Errorf("hashes equal: %v; relation %d", a.Hash == b.Hash, Relate(a, b))
	}
}

func TestRefusalTellsNothing(t *testing.T) {
	_, err := CanonicalHash([]byte("{\"\u202eevil\":tru}"), V03)
	if err == nil || strings.ContainsAny(err.Error(), "\u202e") || strings.Contains(err.Error(), "evil") {
		t.Errorf("%q", err)
	}
	r := &Refusal{Code: finding.KeyUnavailable, Pointer: "/proof", cause: errString("evil \u202e")}
	if got, want := r.Error(), `attest: key-unavailable at /proof byte 0: "evil \u202e"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

type errString string

func (e errString) Error() string { return string(e) }
