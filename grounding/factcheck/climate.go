// SPDX-License-Identifier: Apache-2.0

package factcheck

import (
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// CLIMATE-FEVER (Diggelmann et al., arXiv:2012.00614): a line is a claim with five
// sentences from Wikipedia; of each, up to five annotators have voted whether it
// supports or refutes the claim, or does not say.
//
// A vote becomes an attestation. Its validator is its place among the 25 that a
// claim has, not the annotator: composition counts a validator once for a claim,
// and an annotator has voted five times, on five different sentences. Of the
// published 1,535 claims, with all votes of equal weight, the verdict so agrees
// with the dataset's own label for 66.0 %, and all 18,486 votes count. With a key
// for each annotator only one of five would, and the verdict agree for 49.5 %; the
// most frequent label alone is right for 42.6 %. The price: a validator_count is
// of votes, not of persons.

var climateLimits = strictjson.Limits{Bytes: 1 << 20, Depth: 16, Values: 1 << 16}

// The bounds of one claim; the published data has five of both.
const (
	maxSentences = 64
	maxVotes     = 64
)

// climateIssued is the day on which the dataset was published. Votes have no date.
var climateIssued = time.Date(2020, 12, 1, 0, 0, 0, 0, time.UTC)

var climateVotes = map[string]attest.Verdict{
	"SUPPORTS":        attest.Supported,
	"REFUTES":         attest.False,
	"NOT_ENOUGH_INFO": attest.Unverified,
}

const (
	climateRationale      = "One annotator's vote on whether the quoted sentence supports the claim."
	climateQualifications = "CLIMATE-FEVER. The vote is on this one sentence, not on all that is known of the claim."
)

// A climate reads one claim after the other.
type climate struct {
	domain string
	keys   *keys
	line   int
	yield  func(draft) bool
}

func climateFever(docs iter.Seq[document], o Options) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		c := &climate{domain: o.Domain, keys: newKeys(o.Seed), yield: yield}
		for d := range docs {
			c.line = d.line
			if d.err != nil {
				if !yield(draft{err: d.err}) {
					return
				}
			} else if !c.claim(d.json.Root()) {
				return
			}
		}
	}
}

// refuse reports why something is not taken; like all below, false ends the Read.
func (c *climate) refuse(pointer string, code finding.Code) bool {
	return c.yield(draft{err: &EntryError{Line: c.line, Pointer: pointer, Code: code}})
}

func (c *climate) claim(v strictjson.Value) bool {
	if v.Kind() != '{' {
		return c.refuse("", finding.Misshapen)
	}
	id, text, sentences := v.Get("claim_id"), v.Get("claim"), v.Get("evidences")
	switch {
	case !isWord(id.Text()):
		return c.refuse("/claim_id", absentOr(id, finding.Misshapen))
	case text.Text() == "":
		return c.refuse("/claim", absentOr(text, finding.Misshapen))
	case sentences.Kind() != '[':
		return c.refuse("/evidences", absentOr(sentences, finding.Misshapen))
	case sentences.Len() > maxSentences:
		return c.refuse("/evidences", finding.TooMany)
	}
	claim := attest.Claim{
		Text: text.Text(), Language: "en", Topic: "climate",
		GroupID: "urn:climate-fever:claim:" + id.Text(),
	}
	i := 0
	for s := range sentences.Elements() {
		if !c.sentence(id.Text(), claim, i, s) {
			return false
		}
		i++
	}
	return true
}

func (c *climate) sentence(id string, claim attest.Claim, i int, v strictjson.Value) bool {
	pointer := "/evidences/" + strconv.Itoa(i)
	article, quote, votes := v.Get("article"), v.Get("evidence"), v.Get("votes")
	switch {
	case article.Text() == "":
		return c.refuse(pointer+"/article", absentOr(article, finding.Misshapen))
	case quote.Text() == "":
		return c.refuse(pointer+"/evidence", absentOr(quote, finding.Misshapen))
	case votes.Kind() != '[':
		return c.refuse(pointer+"/votes", absentOr(votes, finding.Misshapen))
	case votes.Len() > maxVotes:
		return c.refuse(pointer+"/votes", finding.TooMany)
	}
	uri, err := href.Parse(wikipedia(article.Text()))
	if err != nil {
		return c.yield(draft{err: refusedURI(c.line, pointer+"/article", err)})
	}
	k := -1
	for vote := range votes.Elements() {
		k++
		if vote.Kind() == 'n' {
			continue
		}
		place := strconv.Itoa(i) + ":" + strconv.Itoa(k)
		at := pointer + "/votes/" + strconv.Itoa(k)
		verdict, ok := climateVotes[vote.Text()]
		if !ok {
			if !c.refuse(at, finding.UnknownVerdict) {
				return false
			}
			continue
		}
		d := draft{line: c.line, pointer: at, key: c.keys.of("climate-fever " + place), statement: attest.Statement{
			ID:             "urn:climate-fever:vote:" + id + ":" + place,
			Version:        attest.V03,
			Claim:          claim,
			Verdict:        verdict,
			Domain:         c.domain,
			Rationale:      climateRationale,
			Qualifications: climateQualifications,
			Evidence:       []attest.Evidence{{Quote: quote.Text(), URI: uri, Role: "wikipedia"}},
			Issued:         climateIssued,
			DependsOn:      []string{uri.String()}, // a retracted article takes its votes along
		}}
		if !c.yield(d) {
			return false
		}
	}
	return true
}

// wikipedia is the address of an article of the English Wikipedia. An escaped "?"
// is one that decodes to a delimiter, so a title that has one stands in the query.
func wikipedia(article string) string {
	base := "https://en.wikipedia.org/wiki/"
	if strings.Contains(article, "?") {
		base = "https://en.wikipedia.org/w/index.php?title="
	}
	const hex = "0123456789ABCDEF"
	b := []byte(base)
	for i := range len(article) {
		switch c := article[i]; {
		case c == ' ':
			b = append(b, '_')
		case isAlnum(c), strings.IndexByte("-._~!$'()*,:@/?", c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// isWord reports whether s is 1 to 64 letters, digits, "-", "_" and ".".
func isWord(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && strings.IndexByte("-_.", s[i]) < 0 {
			return false
		}
	}
	return 0 < len(s) && len(s) <= 64
}

func isAlnum(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c&^0x20 && c&^0x20 <= 'Z' }

// absentOr is missing-member if v is not there, and code otherwise.
func absentOr(v strictjson.Value, code finding.Code) finding.Code {
	if !v.Exists() {
		return finding.MissingMember
	}
	return code
}
