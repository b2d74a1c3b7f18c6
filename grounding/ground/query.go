// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// The bounds of an answer.
const (
	maxClaims    = 10   // that are searched for
	maxGroup     = 100  // claims of a group
	maxVotes     = 1000 // on one claim that are composed
	maxVotesTold = 100  // that are explained one by one
	maxWithheld  = 100

	// maxShown bounds the entries of an answer and what _meta records of them, in
	// bytes. A validator can make one attestation need 180 KB of records; whoever
	// does so is left out, not those beside.
	maxShown = 512 << 10

	// minMatch is the share of the query's words that a claim must have, by weight,
	// to be what was asked about. Others are listed, but the verdict is not on them.
	minMatch = 1.0 / 3
)

// Ground answers a request with a response envelope (RFC 5.1) as JSON: valid UTF-8
// in which only what is inside of frames was written by validators. The verdict is
// on one claim, the best match, or on the claims of the group that was asked for.
// The error wraps a Problem, or is that of the context.
func (a *Adapter) Ground(ctx context.Context, r Request) ([]byte, error) {
	profile, domain, err := a.profile(&r)
	if err != nil {
		return nil, err
	}
	if profile.LedgerUse() != "" && a.o.Scores == nil {
		return nil, ScoresUnknown
	}
	q, err := parseQuery(r.Query)
	if err != nil {
		return nil, err
	}
	if r.Limit < 0 || r.Limit > MaxLimit {
		return nil, LimitOutOfRange
	}
	q.Domain = string(domain)
	out := a.newReply(r.Query)
	out.envelope.Domain = nameOf(profile)
	about, err := a.find(ctx, q, out)
	if err != nil {
		return nil, a.unavailable(ctx, err)
	}
	if about == nil {
		return out.json()
	}
	if err := a.answer(ctx, profile, about, cmp.Or(r.Limit, defaultLimit), out); err != nil {
		return nil, a.unavailable(ctx, err)
	}
	return out.json()
}

// unavailable hides the store's error behind a Problem, but for whoever unwraps.
func (a *Adapter) unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", Unavailable, err)
}

// A subject is what the verdict is on, with the votes on it.
type subject struct {
	topic   string                  // that was asked for
	refused map[string]finding.Code // by the policy of today, by hash
	records []Stored
	votes   []consensus.Vote // of records
}

// find searches, tells of the claims that it found, and returns the one that the verdict
// is on; nil if none is what was asked about.
func (a *Adapter) find(ctx context.Context, q Query, out *reply) (*subject, error) {
	hits, err := a.o.Store.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	out.more.Cut.Claims = hits.Cut
	claims := hits.Claims
	matching := len(claims)
	if i := slices.IndexFunc(claims, func(c Claim) bool { return c.Match < minMatch }); i >= 0 {
		claims = slices.Clone(claims)
		slices.SortStableFunc(claims, func(x, y Claim) int { return cmp.Compare(level(y), level(x)) })
		matching = slices.IndexFunc(claims, func(c Claim) bool { return c.Match < minMatch })
	}
	main := best(q, claims[:matching])
	var about *subject
	switch {
	case q.GroupID != "" && main >= 0: // the claims of a group are one subject, and the first stands for them
		about, err = a.subject(ctx, q, claims[:matching], out)
	case main >= 0:
		about, err = a.subject(ctx, q, claims[main:main+1], out)
	}
	if err != nil {
		return nil, err
	}
	for i := range claims {
		m := a.claim(&claims[i])
		switch {
		case i == main:
			out.more.Claim = &m
		case q.GroupID != "" || len(out.more.Others) < maxClaims:
			out.more.Others = append(out.more.Others, m)
		}
	}
	return about, nil
}

func level(c Claim) int {
	if c.Match < minMatch {
		return 0
	}
	return 1
}

// best returns the index of the claim that the verdict is on, -1 for none: the first that
// may say the same as the question, unless another matches the question better. Whether
// a vote on it counts has no influence: a retraction must not move the verdict to another
// claim. spec: grounding/3
func best(q Query, claims []Claim) int {
	for i := range claims {
		switch {
		case claims[i].Match < claims[0].Match:
			return -1
		case q.Text == "" || answers(q.Text, claims[i].Text):
			return i
		}
	}
	return -1
}

// subject fetches the votes on claims.
func (a *Adapter) subject(ctx context.Context, q Query, claims []Claim, out *reply) (*subject, error) {
	hashes := make([]attest.Hash, len(claims))
	for i := range claims {
		hashes[i] = claims[i].Hash
	}
	all, err := a.o.Store.Attestations(ctx, hashes, max(1, maxVotes/len(claims)))
	if err != nil {
		return nil, err
	}
	s := &subject{topic: q.Topic, refused: map[string]finding.Code{}}
	for i := range all {
		out.more.Cut.Votes = out.more.Cut.Votes || all[i].Cut
		s.records = append(s.records, all[i].Records...)
	}
	for i := range s.records {
		v := a.vote(&s.records[i])
		if v.Status == consensus.Live {
			_, err := a.show(ctx, &s.records[i])
			var refused *attest.Refusal
			if errors.As(err, &refused) {
				v.Status, s.refused[v.ID] = consensus.Refused, refused.Code
			} else if err != nil {
				return nil, err
			}
		}
		s.votes = append(s.votes, v)
	}
	return s, nil
}

func (a *Adapter) vote(st *Stored) consensus.Vote {
	known := a.o.Validators.standing(st.Validator)
	return consensus.Vote{
		ID: st.Hash.String(), Validator: st.Validator, Verdict: st.Verdict, Domain: consensus.Domain(st.Domain), Topic: st.Topic,
		Issued: st.Issued, Expires: st.Expires, Status: st.Status, Reputation: known.Reputation, Trust: known.Trust,
	}
}

// answer composes the verdict and shows the attestations that it rests on.
func (a *Adapter) answer(ctx context.Context, p *consensus.Profile, s *subject, limit int, out *reply) error {
	now := a.o.Now()
	point, err := a.recorded(ctx, p, s.votes, now)
	if err != nil {
		return err
	}
	verdict, why := consensus.Compose(p, s.topic, now, s.votes)
	out.envelope.Summary = summary{verdict.Primary, verdict.Validators, verdict.Disagreement}
	byID := make(map[string]*Stored, len(s.records))
	for i := range s.records {
		byID[s.votes[i].ID] = &s.records[i]
	}
	counted := make(map[attest.Verdict][]consensus.Entry)
	for _, e := range why.Votes {
		switch e.Reason {
		case consensus.Counted:
			counted[e.Verdict] = append(counted[e.Verdict], e)
		case consensus.NotAccepted:
			out.withhold(e.ID, string(s.refused[e.ID]))
		case consensus.Pending, consensus.Withdrawn, consensus.Expired:
			out.withhold(e.ID, string(e.Reason))
		}
	}
	for _, es := range counted {
		slices.SortFunc(es, func(x, y consensus.Entry) int {
			return cmp.Or(y.Weight.Compare(x.Weight), byID[y.ID].Issued.Compare(byID[x.ID].Issued), cmp.Compare(x.ID, y.ID))
		})
	}
	shown := 0
	for e := range turns(why.Tallies, counted) {
		if shown == limit {
			out.more.Cut.Attestations = true
			break
		}
		if err := a.add(ctx, byID[e.ID], out); err != nil {
			return err
		}
		shown++
	}
	out.more.Explanation = newExplanation(verdict, why)
	out.more.Explanation.Point = point
	return nil
}

// recorded gives votes the ledger's scores of their validators, where the profile takes
// them, and says as of which point.
func (a *Adapter) recorded(ctx context.Context, p *consensus.Profile, votes []consensus.Vote, now time.Time) (*LedgerPoint, error) {
	if p.LedgerUse() == "" {
		return nil, nil
	}
	dids := make([]string, len(votes))
	for i := range votes {
		dids[i] = votes[i].Validator
	}
	scores, point, err := a.o.Scores(ctx, dids, now)
	if err != nil {
		return nil, err
	}
	for i := range votes {
		votes[i].Recorded = scores[i]
	}
	return &point, nil
}

// turns yields what counted, the verdicts taking turns, so that a limit hides no
// dissent.
func turns(tallies []consensus.Tally, counted map[attest.Verdict][]consensus.Entry) func(yield func(consensus.Entry) bool) {
	return func(yield func(consensus.Entry) bool) {
		for i, more := 0, true; more; i++ {
			more = false
			for _, t := range tallies {
				if es := counted[t.Verdict]; i < len(es) {
					more = true
					if !yield(es[i]) {
						return
					}
				}
			}
		}
	}
}

// add shows st, or tells that it is withheld where the policy of today refuses it.
func (a *Adapter) add(ctx context.Context, st *Stored, out *reply) error {
	p, err := a.show(ctx, st)
	var refused *attest.Refusal
	switch {
	case errors.As(err, &refused):
		out.withhold(st.Hash.String(), string(refused.Code))
	case err != nil:
		return err
	case out.size+p.size > maxShown && len(out.envelope.Attestations) > 0:
		out.more.Cut.Attestations = true
	default:
		out.show(st, p)
	}
	return nil
}

func (r *reply) withhold(hash, reason string) {
	if len(r.more.Withheld) < maxWithheld {
		r.more.Withheld = append(r.more.Withheld, withheld{hash, reason})
	}
}

// Attestation returns the envelope of one attestation, by its canonical hash. One
// that does not stand, has expired or is superseded is withheld: the envelope says
// so. The error wraps a Problem, or is that of the context.
func (a *Adapter) Attestation(ctx context.Context, hash string) ([]byte, error) {
	h, ok := attest.ParseHash(hash)
	if !ok {
		return nil, HashMalformed
	}
	st, err := a.o.Store.ByHash(ctx, h)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, NotFound
	case err != nil:
		return nil, a.unavailable(ctx, err)
	}
	out := a.newReply(h.String())
	out.envelope.Domain = st.Domain
	m := a.claim(&Claim{Hash: st.ClaimHash, Text: st.ClaimText, Language: st.Language, GroupID: st.GroupID, Topic: st.Topic, Match: 1})
	out.more.Claim = &m
	switch reason := a.hidden(&st); {
	case reason != "":
		out.withhold(st.Hash.String(), string(reason))
	default:
		if err := a.add(ctx, &st, out); err != nil {
			return nil, a.unavailable(ctx, err)
		}
	}
	if n := len(out.envelope.Attestations); n > 0 {
		m.Attestations = n
		out.envelope.Summary = summary{Verdict: st.Verdict, Validators: n}
	}
	return out.json()
}

// hidden says why an attestation is not shown, "" if it is.
func (a *Adapter) hidden(st *Stored) consensus.Reason {
	switch {
	case st.Status == consensus.Retracted:
		return consensus.Withdrawn
	case st.Status != consensus.Live:
		return consensus.Pending
	case st.SupersededBy != (attest.Hash{}):
		return consensus.Superseded
	case !st.Expires.IsZero() && !a.o.Now().Before(st.Expires):
		return consensus.Expired
	case st.Issued.After(a.o.Now().Add(attest.MaxSkew)):
		return consensus.NotYetIssued
	}
	return ""
}
