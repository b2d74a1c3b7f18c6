// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
)

// The bounds of a request.
const (
	MaxQuery     = 64 << 10 // bytes; the store looks at the first 4,096, and 2,000 are echoed
	MaxDocument  = 64 << 10 // bytes of a consumer's profile
	defaultLimit = 20       // attestations
	MaxLimit     = 100
)

// A Request is a question to the adapter.
type Request struct {
	// Query is free text; or the hash of a claim, "sha256:…"; or a group, "urn:…".
	// Words "topic:…" in free text limit the search to the topic and those below.
	Query   string
	Domain  string // consensus domain, identifier or alias; "": the profile's
	Profile string // ID of a profile that the adapter holds, "": its default
	// Document is a profile that the consumer brings along, in place of Profile.
	Document []byte
	Limit    int // greatest number of attestations returned; 0 stands for 20, the most is 100
}

// A Problem is why there is no answer. Its text is constant: a model may read it.
type Problem string

func (p Problem) Error() string { return "ground: " + string(p) }

// The problems.
const (
	QueryEmpty        Problem = "the query is empty"
	QueryTooLong      Problem = "the query is too long"
	DomainUnknown     Problem = "the consensus domain is not registered"
	DomainNotBelieved Problem = "the profile does not believe that consensus domain"
	ProfileUnknown    Problem = "no profile has that identifier"
	ProfileRefused    Problem = "the profile document is not valid"
	ScoresUnknown     Problem = "the profile takes trust scores, and this adapter has none"
	HashMalformed     Problem = "the hash is malformed"
	NotFound          Problem = "no attestation has that hash"
	LimitOutOfRange   Problem = "the limit is out of range"
	Unavailable       Problem = "the attestations cannot be read at present: try again later"
)

// profile is the one to compose by, and the domain that was asked for.
func (a *Adapter) profile(r *Request) (*consensus.Profile, consensus.Domain, error) {
	var domain consensus.Domain
	if r.Domain != "" {
		var err error
		if domain, err = a.o.Domains.Resolve(r.Domain); err != nil {
			return nil, "", DomainUnknown
		}
	}
	var p *consensus.Profile
	switch {
	case r.Document != nil:
		if len(r.Document) > MaxDocument {
			return nil, "", ProfileRefused
		}
		var err error
		if p, err = consensus.Compile(r.Document, a.o.Domains); err != nil {
			return nil, "", fmt.Errorf("%w: %w", ProfileRefused, err)
		}
	case r.Profile != "":
		if p = a.profiles[r.Profile]; p == nil {
			return nil, "", ProfileUnknown
		}
	case domain != "":
		return consensus.ForDomain(domain), domain, nil
	default:
		return a.o.Default, "", nil
	}
	if domain != "" {
		var ok bool
		if p, ok = p.Restrict(domain); !ok {
			return nil, "", DomainNotBelieved
		}
	}
	return p, domain, nil
}

// nameOf is the domain that p believes, or the profile's identifier where it
// believes several.
func nameOf(p *consensus.Profile) string {
	if ds := p.Domains(); len(ds) == 1 {
		return string(ds[0])
	}
	return p.ID()
}

// parseQuery reads the forms that Request.Query has.
func parseQuery(s string) (Query, error) {
	text := strings.TrimSpace(s)
	switch {
	case text == "":
		return Query{}, QueryEmpty
	case len(s) > MaxQuery:
		return Query{}, QueryTooLong
	case strings.HasPrefix(text, "sha256:"):
		h, ok := attest.ParseHash(text)
		if !ok {
			return Query{}, HashMalformed
		}
		return Query{ClaimHash: h, Limit: 1}, nil
	case strings.HasPrefix(text, "urn:") && !strings.ContainsAny(text, " \t\n"):
		return Query{GroupID: text, Limit: maxGroup}, nil
	}
	q := Query{Limit: maxClaims}
	words := strings.Fields(text)
	rest := words[:0]
	for _, w := range words {
		if topic, ok := strings.CutPrefix(w, "topic:"); ok && q.Topic == "" && attest.TopicValid(topic) {
			q.Topic = topic
		} else {
			rest = append(rest, w)
		}
	}
	q.Text = strings.Join(rest, " ")
	return q, nil
}
