// SPDX-License-Identifier: Apache-2.0

package factcheck_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/factcheck"
)

// review is a ClaimReview as publishers write it; rest stands before its end.
func review(alternateName, rest string) string {
	return `{"@context":"https://schema.org","@type":"ClaimReview","url":"https://www.checks.example/moon",
"claimReviewed":"The Moon is made of cheese.","datePublished":"2024-05-06",
"author":{"@type":"Organization","name":"Checks","url":"https://www.checks.example/"},
"itemReviewed":{"@type":"Claim","author":{"@type":"Person","name":"A. Mouse"}},
"reviewRating":{"@type":"Rating","alternateName":` + alternateName + `}` + rest + `}`
}

// oneLine is review without line breaks.
func oneLine(alternateName, rest string) string {
	return strings.ReplaceAll(review(alternateName, rest), "\n", "")
}

func TestClaimReview(t *testing.T) {
	as, errs := attestations(t, factcheck.ClaimReview, review(`"Mostly False"`,
		`,"headline":"No cheese","reviewBody":"Samples are basalt.","inLanguage":"en-GB","dateModified":"2024-05-07T08:00:00+02:00","x":{"y":[]}`))
	if len(errs) > 0 || len(as) != 1 {
		t.Fatalf("%d, %v", len(as), errs)
	}
	a := as[0]
	if a.Verdict != attest.Disputed || a.Qualifications != "Mostly False" || a.Rationale != "Samples are basalt." ||
		a.Claim != (attest.Claim{Text: "The Moon is made of cheese.", Language: "en-GB"}) || a.Domain != "journalism-default" ||
		!a.Issued.Equal(time.Date(2024, 5, 7, 6, 0, 0, 0, time.UTC)) || !strings.HasPrefix(a.ID, "urn:uuid:") ||
		len(a.Evidence) != 1 || a.Evidence[0].URI.String() != "https://www.checks.example/moon" || a.Evidence[0].Role != "review" ||
		len(a.CitedWorks) != 1 || a.CitedWorks[0].Title != "No cheese" || a.DependsOn[0] != "https://www.checks.example/moon" {
		t.Errorf("%+v", a.Statement)
	}
	// An update renews: the same ID and validator, issued later.
	later, _ := attestations(t, factcheck.ClaimReview, review(`"False"`, `,"dateModified":"2025-01-01"`))
	if later[0].ID != a.ID || later[0].Validator != a.Validator || !later[0].Issued.After(a.Issued) {
		t.Errorf("%+v", later[0].Statement)
	}
	earlier, _ := attestations(t, factcheck.ClaimReview, review(`"False"`, `,"dateModified":"2023-01-01"`))
	if got := earlier[0].Issued.Format(time.DateOnly); got != "2024-05-06" {
		t.Errorf("changed before it was published: issued %s", got)
	}
	// With and without www. is one publisher, another host is not.
	for host, same := range map[string]bool{"checks.example": true, "WWW.checks.example": true, "checks2.example": false} {
		other, _ := attestations(t, factcheck.ClaimReview, strings.Replace(review(`"False"`, ""), "//www.checks.example/moon", "//"+host+"/sun", 1))
		if (other[0].Validator == a.Validator) != same {
			t.Errorf("%s: same publisher %v, want %v", host, !same, same)
		}
	}
}

func TestClaimReviewShapes(t *testing.T) {
	one, two := review(`"True"`, ""), strings.ReplaceAll(review(`"False"`, ""), "moon", "sun")
	for _, tt := range []struct {
		name, in string
		n        int
		errs     string
	}{
		{"alone", one, 1, ""},
		{"a list", "[" + one + "," + two + "]", 2, ""},
		{"lines", oneLine(`"True"`, "") + "\n" + oneLine(`"Fake"`, "") + "\n", 2, ""},
		{"a graph", `{"@context":"https://schema.org","@graph":[{"@type":"WebPage"},` + one + "," + two + `]}`, 2, ""},
		{"a graph of references", `{"@graph":[{"@id":"#r","@type":"Rating","alternateName":"False"},` +
			strings.Replace(one, `{"@type":"Rating","alternateName":"True"}`, `{"@id":"#r"}`, 1) + `]}`, 1, ""},
		{"a dangling reference", `{"@graph":[` + strings.Replace(one, `{"@type":"Rating","alternateName":"True"}`, `{"@id":"#r"}`, 1) + `]}`, 1, ""},
		{"an ItemList", `{"@type":"ItemList","itemListElement":[{"@type":"ListItem","position":1,"item":` + one + `}]}`, 1, ""},
		{"a DataFeed", `{"@type":"DataFeed","dataFeedElement":[{"@type":"DataFeedItem","item":[` + one + `]},{"@type":"DataFeedItem","item":` + two + `}]}`, 2, ""},
		{"a page", `{"@type":"Article","review":` + one + `}`, 1, ""},
		{"two types", strings.Replace(one, `"ClaimReview"`, `["Review","http://schema.org/ClaimReview"]`, 1), 1, ""},
		{"a prefix", strings.Replace(one, `"ClaimReview"`, `"schema:ClaimReview"`, 1), 1, ""},
		{"value objects", strings.Replace(one, `"The Moon is made of cheese."`, `[{"@value":"X","@language":"en"}]`, 1), 1, ""},
		{"a list of one rating", strings.Replace(one, `{"@type":"Rating","alternateName":"True"}`, `[{"alternateName":"True"}]`, 1), 1, ""},

		{"no review", `{"@type":"Article"}`, 0, "1 missing-member"},
		{"an empty list", `[]`, 0, "1 missing-member"},
		{"null", `null`, 0, "1 missing-member"},
		{"no claim", strings.Replace(one, "claimReviewed", "x", 1), 0, "1 /claimReviewed missing-member"},
		{"a claim of another type", strings.Replace(one, `"The Moon is made of cheese."`, `5`, 1), 0, "1 /claimReviewed misshapen"},
		{"no url", strings.Replace(one, `"url":"https://www.checks.example/moon"`, `"u":1`, 1), 0, "1 /url missing-member"},
		{"http", strings.Replace(one, `https://www.checks.example/moon`, `http://www.checks.example/moon`, 1), 0, "1 /url uri-scheme"},
		{"a URN", strings.Replace(one, `https://www.checks.example/moon`, `urn:doi:10.1000/182`, 1), 0, "1 /url uri-scheme"},
		{"a private host", strings.Replace(one, `https://www.checks.example/moon`, `https://10.0.0.1/`, 1), 0, "1 /url uri-host"},
		{"no date", strings.Replace(one, `datePublished`, `x`, 1), 0, "1 /datePublished missing-member"},
		{"a date in words", strings.Replace(one, `2024-05-06`, marker, 1), 0, "1 /datePublished misshapen"},
		{"no rating", strings.Replace(one, `reviewRating`, `x`, 1), 0, "1 /reviewRating missing-member"},
		{"two ratings", strings.Replace(one, `{"@type":"Rating","alternateName":"True"}`, `[{},{}]`, 1), 0, "1 /reviewRating misshapen"},
		{"a rating of another type", strings.Replace(one, `{"@type":"Rating","alternateName":"True"}`, `"False"`, 1), 0, "1 /reviewRating misshapen"},
		{"markup", review(`"True"`, `,"reviewBody":"<p>`+marker+`</p>"`), 0, "1 typed-tag"},
		{"one of three is bad", `[` + one + `,` + review(`"`+marker+` {\"role\":\"system\"}"`, "") + `,` + two + `]`, 2, "1 /1 typed-json"},
		{"a bad line", oneLine(`"True"`, "") + "\n{\n" + oneLine(`"False"`, ""), 2, "2 not-json"},
		{"two names", strings.Replace(one, `"headline"`, ``, 1) + "\n" + one + "{", 0, "1 not-json"},
		{"deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), 0, "1 too-deep"},
		{"many sources", `{"@type":"ClaimReviewCollection","claims":[{"claimText":"x","primaryVerdict":"FALSE","datePublished":"2024-01-01","sources":[` +
			strings.Repeat(`{},`, 1_000_000) + `{}]}]}`, 0, "1 /claims/0/sources too-many"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as, errs := attestations(t, factcheck.ClaimReview, tt.in)
			if got := strings.Join(errs, "|"); got != tt.errs || len(as) != tt.n {
				t.Errorf("%d with %q, want %d with %q", len(as), got, tt.n, tt.errs)
			}
		})
	}
}

func TestRatings(t *testing.T) {
	for _, tt := range []struct {
		rating  string
		verdict attest.Verdict
		words   string
	}{
		{`{"alternateName":"True"}`, attest.Supported, "True"},
		{`{"alternateName":" FALSE. "}`, attest.False, " FALSE. "},
		{`{"alternateName":"Pants on Fire!"}`, attest.False, "Pants on Fire!"},
		{`{"alternateName":"Half  True"}`, attest.Qualified, "Half  True"},
		{`{"alternateName":"Misleading"}`, attest.Disputed, "Misleading"},
		{`{"alternateName":"Unproven"}`, attest.Unverified, "Unproven"},
		{`{"alternateName":"Falsch"}`, attest.False, "Falsch"},
		{`{"alternateName":"C\u2019est faux"}`, attest.False, "C\u2019est faux"},
		{`{"alternateName":"Engañoso"}`, attest.Disputed, "Engañoso"},
		{`{"alternateName":"Meia verdade"}`, attest.Qualified, "Meia verdade"},
		{`{"alternateName":"НЕПРАВДА"}`, attest.False, "НЕПРАВДА"},
		{`{"alternateName":"YANLIŞ"}`, attest.Unverified, "YANLIŞ"}, // whose lower case is Turkish
		{`{"alternateName":"誤り"}`, attest.False, "誤り"},
		{`{"alternateName":"거짓"}`, attest.False, "거짓"},
		{`{"alternateName":"\u0635\u062d\u064a\u062d"}`, attest.Supported, "\u0635\u062d\u064a\u062d"},
		{`{"alternateName":"Satire"}`, attest.Unverified, "Satire"},
		{`{"alternateName":"Not false"}`, attest.Unverified, "Not false"},
		{`{"alternateName":"F\u0430lse"}`, attest.Unverified, "F\u0430lse"},
		{`{"name":"True"}`, attest.Supported, "True"},
		{`{"ratingValue":"False"}`, attest.False, "False"},
		// Words rule over numbers, unless these say the contrary.
		{`{"alternateName":"Half true","ratingValue":1}`, attest.Qualified, "Half true"},
		{`{"alternateName":"Neither here nor there","ratingValue":1}`, attest.Unverified, "Neither here nor there"},
		{`{"alternateName":"False","ratingValue":5}`, attest.Unverified, "False"},
		{`{"alternateName":"True","ratingValue":"1","bestRating":"5","worstRating":"1"}`, attest.Unverified, "True"},
		{`{"alternateName":"True","ratingValue":4}`, attest.Supported, "True"},
		{`{"alternateName":"False","ratingValue":-1}`, attest.False, "False"},
		// Numbers alone.
		{`{"ratingValue":1}`, attest.False, "Rated 1 on a scale from 1 to 5."},
		{`{"ratingValue":"2"}`, attest.Disputed, "Rated 2 on a scale from 1 to 5."},
		{`{"ratingValue":3}`, attest.Qualified, "Rated 3 on a scale from 1 to 5."},
		{`{"ratingValue":4.5}`, attest.Qualified, "Rated 4.5 on a scale from 1 to 5."},
		{`{"ratingValue":5,"bestRating":5}`, attest.Supported, "Rated 5 on a scale from 1 to 5."},
		{`{"ratingValue":0,"worstRating":0,"bestRating":1}`, attest.False, "Rated 0 on a scale from 0 to 1."},
		{`{"ratingValue":4,"worstRating":4,"bestRating":0}`, attest.False, "Rated 4 on a scale from 4 to 0."},
		{`{"ratingValue":-1}`, attest.Unverified, "Not rated."},
		{`{"ratingValue":6}`, attest.Unverified, "Not rated."},
		{`{"ratingValue":1,"worstRating":1,"bestRating":1}`, attest.Unverified, "Not rated."},
		{`{"ratingValue":1,"bestRating":"many"}`, attest.Unverified, "Not rated."},
		{`{"ratingValue":1e0}`, attest.Unverified, "Not rated."},
		{`{"ratingValue":"1-5"}`, attest.Unverified, "Not rated."},
		{`{}`, attest.Unverified, "Not rated."},
		{`{"alternateName":5}`, attest.Unverified, "Not rated."},
	} {
		in := strings.Replace(review(`1`, ""), `{"@type":"Rating","alternateName":1}`, tt.rating, 1)
		as, errs := attestations(t, factcheck.ClaimReview, in)
		if len(as) != 1 {
			t.Errorf("%s: %v", tt.rating, errs)
			continue
		}
		if as[0].Verdict != tt.verdict || as[0].Qualifications != tt.words {
			t.Errorf("%s: %s %q, want %s %q", tt.rating, as[0].Verdict, as[0].Qualifications, tt.verdict, tt.words)
		}
	}
}

func TestDates(t *testing.T) {
	for in, want := range map[string]string{
		"2024-05-06":                    "2024-05-06T00:00:00Z",
		"2024-05-06T07:08:09Z":          "2024-05-06T07:08:09Z",
		"2024-05-06T07:08:09.123+02:00": "2024-05-06T05:08:09Z",
		"2024-05-06T07:08:09+0200":      "2024-05-06T05:08:09Z",
		"2024-05-06T07:08:09":           "2024-05-06T07:08:09Z",
		"2024-05-06T07:08":              "2024-05-06T07:08:00Z",
		"2024-05-06 07:08:09":           "2024-05-06T07:08:09Z",
		"May 6, 2024":                   "",
		"2024-13-01":                    "",
		"0001-01-01":                    "",
		"":                              "",
	} {
		as, _ := attestations(t, factcheck.ClaimReview, strings.Replace(review(`"True"`, ""), "2024-05-06", in, 1))
		got := ""
		if len(as) == 1 {
			got = as[0].Issued.Truncate(time.Second).Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

const collection = `{"@type":"ClaimReviewCollection","datePublished":"2026-04-25","language":"en",
"checkerIdentity":{"name":"The desk","did":"did:web:desk.example"},
"claims":[
 {"claimText":"Software is eaten by rust.","claimHash":"sha256:61e115dc342db7dea8c7c9339e643e3b144b3e80500cf80987f725a2093a3646",
  "claimGroupId":"urn:x-desk:rust","claimType":"FACT","topic":"technology:software","url":"https://desk.example/rust",
  "method":"We asked.","primaryVerdict":"QUALIFIED","qualifications":"Some of it.",
  "sources":[{"uri":"https://rust.example/","role":"primary"}],
  "verdictsByDomain":{"scientific-default":"FALSE","journalism-default":"SUPPORTED"}},
 {"@type":"ClaimReview","claimText":"Second.","datePublished":"2026-04-26","primaryVerdict":"VERIFIED","checkerIdentity":{"did":"did:web:other.example"}}]}`

func TestCollection(t *testing.T) {
	as, errs := attestations(t, factcheck.ClaimReview, collection)
	var got []string
	for _, a := range as {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", a.Claim.Text, a.Verdict, a.Domain, a.Issued.Format(time.DateOnly), a.Claim.Language))
	}
	want := `Software is eaten by rust. FALSE scientific-default 2026-04-25 en
Software is eaten by rust. SUPPORTED journalism-default 2026-04-25 en
Second. VERIFIED journalism-default 2026-04-26 en`
	if strings.Join(got, "\n") != want || len(errs) > 0 {
		t.Fatalf("%s\n%v", strings.Join(got, "\n"), errs)
	}
	a := as[0]
	if a.Claim.GroupID != "urn:x-desk:rust" || a.Claim.Topic != "technology:software" || a.Claim.Type != "FACT" || a.Rationale != "We asked." ||
		a.Qualifications != "Some of it." || len(a.Evidence) != 2 || a.Evidence[1].Role != "primary" || len(a.DependsOn) != 2 {
		t.Errorf("%+v", a.Statement)
	}
	if a.Validator != as[1].Validator || a.Validator == as[2].Validator || a.ID == as[1].ID {
		t.Error("a checker has a key, an attestation an ID")
	}
	for _, tt := range []struct{ old, new, errs string }{
		{`"VERIFIED"`, `"` + marker + `"`, "1 /claims/1 unknown-verdict"},
		{`"VERIFIED"`, `1`, "1 /claims/1/primaryVerdict misshapen"},
		{`"Second."`, `""`, "1 /claims/1/claimText misshapen"},
		{`did:web:other.example`, `did:web:127.0.0.1`, "1 /claims/1/checkerIdentity/did uri-host"},
		{`sha256:61`, marker, "1 /claims/0/claimHash misshapen"},
		{`"FACT"`, `"` + marker + `"`, "1 /claims/0/verdictsByDomain/#0 misshapen|1 /claims/0/verdictsByDomain/#1 misshapen"},
		{`"journalism-default":"SUPPORTED"`, `"` + marker + `!":"SUPPORTED"`, "1 /claims/0/verdictsByDomain/#1 misshapen"},
		{`{"scientific-default":"FALSE","journalism-default":"SUPPORTED"}`, `[]`, "1 /claims/0/verdictsByDomain misshapen"},
		{`https://rust.example/`, `javascript:` + marker, "1 /claims/0/sources/0/uri uri-scheme"},
		{`[{"uri":"https://rust.example/","role":"primary"}]`, `{}`, "1 /claims/0/sources misshapen"},
		{`"2026-04-26"`, `[]`, "1 /claims/1/datePublished misshapen"},
	} {
		_, errs := attestations(t, factcheck.ClaimReview, strings.Replace(collection, tt.old, tt.new, 1))
		if got := strings.Join(errs, "|"); got != tt.errs {
			t.Errorf("%s: %q, want %q", tt.new, got, tt.errs)
		}
	}
}

func FuzzClaimReview(f *testing.F) {
	f.Add(review(`"True"`, `,"ratingValue":3`))
	f.Add("[" + review(`{"@value":"False"}`, "") + `,{"@graph":[]}]`)
	f.Add(strings.Replace(review("1", ""), `"alternateName":1`, `"ratingValue":"4","bestRating":5,"worstRating":"0"`, 1))
	f.Add(oneLine(`"True"`, "") + "\nx\n" + oneLine(`"a"`, ""))
	f.Add(collection)
	f.Fuzz(fuzz(factcheck.ClaimReview))
}

func FuzzAttestation(f *testing.F) {
	f.Add("{\"a\":1}\n{\"b\":2}\n")
	f.Add("{\n\"a\":1\n}")
	f.Add("{\n{}\n[]\n\x00")
	f.Add(gzipped("{}\n{}"))
	f.Fuzz(func(t *testing.T, in string) {
		bodies, errs := readAll(t, factcheck.Attestation, in, factcheck.Options{})
		if len(bodies)+len(errs) > strings.Count(in, "\n")+2 && !strings.HasPrefix(in, "\x1f\x8b") {
			t.Fatalf("%d documents and %d errors in %q", len(bodies), len(errs), in)
		}
		for _, b := range bodies {
			if again, errs := readAll(t, factcheck.Attestation, string(b), factcheck.Options{}); len(again) != 1 || len(errs) > 0 || string(again[0]) != string(b) {
				t.Fatalf("%q is not itself: %q %v", b, again, errs)
			}
		}
	})
}
