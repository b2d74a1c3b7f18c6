// SPDX-License-Identifier: Apache-2.0

// Package ground is the Veritas grounding adapter: it answers a query with attestations, a verdict on them, and every validator's word in a frame.
//
// An [Adapter] takes attestations and the cascade events that withdraw them into a
// [Store], sanitised once, at ingestion, and grounds queries on what the store has: as an
// MCP server over HTTP ([Adapter.Handler]) and pipes ([Adapter.ServeStdio]), and as
// plain HTTP for validators and other federations ([Adapter.Handler], [Adapter.Follow]).
// Keys are resolved when something is taken in, never during a query.
package ground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Options are what an Adapter is made of. The zero value of each member but Store
// is the strict choice.
type Options struct {
	Store Store // required; the Adapter does not close it

	Keys     attest.KeyResolver  // nil: attest.DIDKey
	Policy   attest.Policy       // how texts are made safe
	Verdicts *attest.Registry    // nil: the built-in ones
	Domains  *consensus.Registry // nil: the built-in one

	// Profiles are those that a query may name by their ID.
	Profiles []*consensus.Profile
	// Default is applied to a query that names neither a profile nor a domain; nil
	// stands for one that believes every registered domain alike.
	Default *consensus.Profile
	// Validators is what the operator knows of validators; nil: all are equal.
	Validators *Validators
	// Scores are those that the ledger gives validators, for profiles that take them; nil:
	// such a profile is refused.
	Scores Scores
	// Issuers are the DIDs whose cascade events are believed, whatever they are
	// about. Any validator's are, about its own attestations.
	Issuers []string

	// Refused is told of every attestation and event that was not accepted, as
	// evidence. It may be called at the same time; nil: nobody is told.
	Refused func(Refused)
	// Evidence makes the ledger's records of what is accepted; nil: absent.
	Evidence Evidence

	// DangerouslyIngestUntyped is attest.Options's.
	DangerouslyIngestUntyped bool

	Now func() time.Time // nil: time.Now
}

// Scores returns, of each validator, named by its DID, the score that the ledger gives it
// (docs/spec/trust.md) at the time now, all of one point of the ledger.
type Scores func(ctx context.Context, dids []string, now time.Time) ([]consensus.Score, LedgerPoint, error)

// A LedgerPoint says of what scores are made, so that they can be made again.
type LedgerPoint struct {
	Size    int64     `json:"log_size"` // of the records of the log, the first ones
	At      time.Time `json:"at"`       // the scores are as they are at that time
	Options string    `json:"trust"`    // version of the arithmetic, rest and floor in millionths, half-life in seconds
}

// Evidence makes the ledger's records of what a Store is about to keep. What cannot be
// recorded is not kept.
type Evidence interface {
	// Put is of a batch, and of what becomes of each of its records.
	Put(batch []Record, outcomes []PutResult) ([][]byte, error)
	// Apply is of an event.
	Apply(Cascade) ([]byte, error)
}

// An Adapter answers queries from a Store, and puts into it what it has checked.
// It is safe for concurrent use.
type Adapter struct {
	o         Options
	parse     attest.Options
	projector *attest.Projector
	echo      *scrub.Scrubber // of queries, claims and other text that is no attestation's
	stamp     string          // of the projections that are made now
	profiles  map[string]*consensus.Profile
}

// New checks o and makes an Adapter.
func New(o Options) (*Adapter, error) {
	if o.Store == nil {
		return nil, errors.New("ground: no store")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Keys == nil {
		o.Keys = attest.DIDKey{}
	}
	a := &Adapter{o: o, profiles: map[string]*consensus.Profile{}}
	a.parse = attest.Options{
		Verdicts:                 o.Verdicts,
		DangerouslyIngestUntyped: o.DangerouslyIngestUntyped,
		Domain: func(name string) (string, bool) {
			d, err := o.Domains.Resolve(name)
			return string(d), err == nil
		},
	}
	var err error
	if a.projector, err = attest.NewProjector(o.Policy); err != nil {
		return nil, fmt.Errorf("ground: policy: %w", err)
	}
	if a.echo, err = scrub.Compile(echoPolicy(o.Policy)); err != nil {
		return nil, fmt.Errorf("ground: policy: %w", err)
	}
	a.stamp = stamp(o.Policy)
	for _, p := range o.Profiles {
		if a.profiles[p.ID()] != nil {
			return nil, fmt.Errorf("ground: two profiles have the identifier %s", p.ID())
		}
		a.profiles[p.ID()] = p
	}
	if a.o.Default == nil {
		if a.o.Default, err = everyDomain(o.Domains); err != nil {
			return nil, fmt.Errorf("ground: default profile: %w", err)
		}
	}
	return a, nil
}

// echoPolicy is for text that cannot be refused: it is replaced in instead.
func echoPolicy(p attest.Policy) scrub.Policy {
	s := scrub.Policy{
		Profile: scrub.Veritas, MaxBytes: attest.MaxText, Confusables: p.Confusables, Scope: p.Scope,
		Ellipsis: p.Ellipsis, DangerouslyRFCSetOnly: p.DangerouslyRFCSetOnly,
	}
	if s.Confusables == scrub.Reject {
		s.Confusables = scrub.Replace
	}
	return s
}

// EveryDomain is the identifier of the profile that stands for a missing default.
const EveryDomain = "urn:cpml:pellucid:every-domain"

// everyDomain makes a profile that believes every domain of the registry alike.
func everyDomain(r *consensus.Registry) (*consensus.Profile, error) {
	type domain struct {
		Name   consensus.Domain `json:"name"`
		Weight int              `json:"weight"`
	}
	doc := struct {
		Context string   `json:"@context"`
		Type    string   `json:"@type"`
		ID      string   `json:"id"`
		Version string   `json:"version"`
		Issued  string   `json:"issued"`
		Domains []domain `json:"domains"`
	}{Context: consensus.ProfileContext, Type: consensus.ProfileType, ID: EveryDomain, Version: "1", Issued: "1970-01-01T00:00:00Z"}
	for _, e := range r.Domains() {
		doc.Domains = append(doc.Domains, domain{e.ID, 1})
	}
	src, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return consensus.Compile(src, r)
}
