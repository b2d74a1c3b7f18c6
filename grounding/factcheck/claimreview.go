// SPDX-License-Identifier: Apache-2.0

package factcheck

import (
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A ClaimReview stands alone, in a list, in a graph, in a feed, or in a collection
// of RFC-FACTCHECK, whose claims have names of their own. Of it is read:
//
//	claimReviewed  claimText       the claim
//	url            sources[]       evidence, and what the attestation depends on
//	reviewRating   primaryVerdict  the verdict: see rate
//	  alternateName qualifications the publisher's own words, as they are
//	reviewBody     method          the rationale
//	headline, name                 the title of the cited work, which is the review
//	datePublished  datePublished   issued; dateModified if that is later
//	inLanguage     language        of the claim
//	               topic claimType claimGroupId verdictsByDomain
//
// Everything else is ignored: it is another's format, which grows. An attestation
// has no place for who made the claim (itemReviewed), and the hash of a claim is
// made anew. The publisher is who has the host of url, or the DID that an
// RFC-FACTCHECK claim names; author.name is spelled in too many ways.

var reviewLimits = strictjson.Limits{Bytes: 64 << 20, Depth: 64, Values: 8 << 20}

const maxSources = 64

// containers are the members in which reviews are looked for.
var containers = []string{
	"@graph", "itemListElement", "dataFeedElement", "item", "mainEntity", "hasPart",
	"review", "reviews", "claimReview", "claimReviews", "claims",
}

// A review reads one document after the other.
type review struct {
	domain string
	keys   *keys
	yield  func(draft) bool

	line       int
	found      bool
	nodes      map[string]strictjson.Value // of @graph, by @id
	collection strictjson.Value            // that the claim stands in: says what the claim does not
}

func claimReviews(docs iter.Seq[document], o Options) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		k := newKeys(o.Seed)
		for d := range docs {
			if d.err != nil {
				if !yield(draft{err: d.err}) {
					return
				}
				continue
			}
			r := &review{domain: o.Domain, keys: k, yield: yield, line: d.line, nodes: nodesOf(d.json.Root())}
			if !r.visit(d.json.Root(), "") {
				return
			}
			if !r.found && !r.refuse("", finding.MissingMember) {
				return
			}
		}
	}
}

// nodesOf finds the nodes of a graph that others may refer to.
func nodesOf(root strictjson.Value) map[string]strictjson.Value {
	nodes := map[string]strictjson.Value{}
	for v := range root.Get("@graph").Elements() {
		if id := v.Get("@id").Text(); id != "" && v.Len() > 1 {
			nodes[id] = v
		}
	}
	return nodes
}

// node is v, or the node of the graph that it refers to.
func (r *review) node(v strictjson.Value) strictjson.Value {
	if v.Kind() == '[' && v.Len() == 1 {
		for e := range v.Elements() {
			v = e
		}
	}
	if v.Kind() == '{' && v.Len() == 1 {
		if n, ok := r.nodes[v.Get("@id").Text()]; ok {
			return n
		}
	}
	return v
}

func (r *review) refuse(pointer string, code finding.Code) bool {
	return r.yield(draft{err: &EntryError{Line: r.line, Pointer: pointer, Code: code}})
}

// visit looks for reviews in v; like all below, false ends the Read.
func (r *review) visit(v strictjson.Value, pointer string) bool {
	switch v.Kind() {
	case '[':
		i := 0
		for e := range v.Elements() {
			if !r.visit(e, pointer+"/"+strconv.Itoa(i)) {
				return false
			}
			i++
		}
	case '{':
		switch {
		case v.Get("claimText").Exists():
			r.found = true
			return r.claim(v, pointer)
		case isA(v, "ClaimReview"):
			r.found = true
			return r.review(v, pointer)
		}
		if isA(v, "ClaimReviewCollection") {
			outer := r.collection
			r.collection = v
			defer func() { r.collection = outer }()
		}
		for _, name := range containers {
			if c := v.Get(name); c.Exists() && !r.visit(c, pointer+"/"+name) {
				return false
			}
		}
	}
	return true
}

// isA reports whether v has that type of schema.org.
func isA(v strictjson.Value, name string) bool {
	is := func(t strictjson.Value) bool {
		s := t.Text()
		for _, prefix := range []string{"schema:", "http://schema.org/", "https://schema.org/"} {
			s = strings.TrimPrefix(s, prefix)
		}
		return s == name
	}
	t := v.Get("@type")
	for e := range t.Elements() {
		if is(e) {
			return true
		}
	}
	return is(t)
}

// textOf is a string as JSON-LD spells it: alone, as a value object, or as the only
// one of a list.
func textOf(v strictjson.Value) string {
	if v.Kind() == '[' && v.Len() == 1 {
		for e := range v.Elements() {
			v = e
		}
	}
	if v.Kind() == '{' {
		v = v.Get("@value")
	}
	return v.Text()
}

// firstText is the first of the members that has a text.
func firstText(v strictjson.Value, names ...string) string {
	for _, name := range names {
		if s := textOf(v.Get(name)); s != "" {
			return s
		}
	}
	return ""
}

// review reads a ClaimReview of schema.org.
func (r *review) review(v strictjson.Value, pointer string) bool {
	text := textOf(v.Get("claimReviewed"))
	if text == "" {
		return r.refuse(pointer+"/claimReviewed", absentOr(v.Get("claimReviewed"), finding.Misshapen))
	}
	address := textOf(v.Get("url"))
	if address == "" {
		return r.refuse(pointer+"/url", absentOr(v.Get("url"), finding.Misshapen))
	}
	uri, err := href.Parse(address)
	if err != nil {
		return r.yield(draft{err: refusedURI(r.line, pointer+"/url", err)})
	}
	if uri.Host() == "" {
		return r.refuse(pointer+"/url", finding.URIScheme)
	}
	issued, ok := dates(v.Get("datePublished"), v.Get("dateModified"))
	if !ok {
		return r.refuse(pointer+"/datePublished", absentOr(v.Get("datePublished"), finding.Misshapen))
	}
	rating := r.node(v.Get("reviewRating"))
	if rating.Kind() != '{' {
		return r.refuse(pointer+"/reviewRating", absentOr(rating, finding.Misshapen))
	}
	verdict, words := rate(rating)
	rationale := textOf(rating.Get("ratingExplanation"))
	if rationale == "" {
		rationale = firstText(v, "reviewBody", "description")
	}
	publisher := "site " + strings.TrimPrefix(uri.Host(), "www.")
	s := attest.Statement{
		ID:             uuid("claimreview", publisher, uri.String(), text),
		Version:        attest.V03,
		Claim:          attest.Claim{Text: text, Language: language(textOf(v.Get("inLanguage")))},
		Verdict:        verdict,
		Domain:         r.domain,
		Rationale:      rationale,
		Qualifications: words,
		Evidence:       []attest.Evidence{{URI: uri, Role: "review"}},
		Issued:         issued,
		DependsOn:      []string{uri.String()},
	}
	if title := firstText(v, "headline", "name"); title != "" {
		s.CitedWorks = []attest.CitedWork{{URI: uri, Title: title}}
	}
	return r.yield(draft{line: r.line, pointer: pointer, key: r.keys.of("claimreview " + publisher), statement: s})
}

// dates is when a review was published, or changed for the last time.
func dates(published, modified strictjson.Value) (time.Time, bool) {
	t, ok := parseDate(textOf(published))
	if m, changed := parseDate(textOf(modified)); ok && changed && m.After(t) {
		t = m
	}
	return t, ok
}

// layouts are those of ISO 8601 that publishers use. Without a zone it is UTC.
var layouts = []string{
	time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", time.DateTime,
}

func parseDate(s string) (time.Time, bool) {
	if len(s) > 40 {
		return time.Time{}, false
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// language is s if it is a tag that begins with a language code; some write
// "English", which is none.
func language(s string) string {
	primary, _, _ := strings.Cut(s, "-")
	if len(primary) < 2 || len(primary) > 3 || len(s) > 35 || !isWord(s) || strings.ContainsAny(s, "_.") {
		return ""
	}
	return s
}

// refusedURI tells what href refuses.
func refusedURI(line int, pointer string, err error) error {
	e := &EntryError{Line: line, Pointer: pointer, Code: finding.URISyntax, err: err}
	var r *href.Refusal
	if errors.As(err, &r) {
		e.Code = r.Code
	}
	return e
}
