// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/validator"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Cascade is a cascade event that is to be signed, and handed in to the store or to a
// running adapter.
type Cascade struct {
	Kind   ground.CascadeKind
	Target string // IRI of a source, or the id or hash of an attestation
	Reason string
	Key    string    // file of the key; "": the operator's own
	Method string    // where the key is published; "": as its did:key
	At     time.Time // zero: now

	DB      string   // as for a Plan; there must be a store
	Issuers []string // that are believed beside the operator

	URL   string                 // of a running adapter; "": the event goes to the store
	Token func() (string, error) // bearer token for URL, "" without one
}

// Send signs the event and hands it in. A receipt that refuses it is not an error, unless
// the store could not take it.
func (g *Cascade) Send(ctx context.Context, dir *state.Dir) (r ground.CascadeReceipt, err error) {
	operator, err := operatorKey(dir)
	if err != nil {
		return r, err
	}
	key := operator
	if g.Key != "" {
		if key, err = validator.ReadKey(g.Key); err != nil {
			return r, fmt.Errorf("ground: %w", err)
		}
	}
	o := validator.SignOptions(key, g.Method, g.At)
	event, err := ground.SignCascade(g.Kind, g.Target, g.Reason, o.Created, key, o)
	if refused, ok := errors.AsType[*attest.Refusal](err); ok && refused.Pointer == "/target" {
		err = fmt.Errorf("ground: %s is neither the IRI of a source nor the id or hash of an attestation", finding.Quote(g.Target))
	}
	if err != nil {
		return r, exit.With(exit.Usage, err)
	}
	if g.URL != "" {
		r, err = g.postEvent(ctx, event)
	} else {
		r, err = g.applyHere(ctx, dir, operator, validator.OwnKey{Key: key, Method: o.Method}, event)
	}
	if err == nil && r.StoreFailed() {
		err = exit.With(exit.Unreachable, fmt.Errorf("ground: %s", r.Code))
	}
	return r, err
}

// applyHere hands the event to an adapter on the store.
func (g *Cascade) applyHere(ctx context.Context, dir *state.Dir, operator attest.Key, keys attest.KeyResolver, event []byte) (r ground.CascadeReceipt, err error) {
	a := &Adapter{}
	defer a.Close()
	if a.store, err = openGroundStore(ctx, dir, g.DB, refuseAbsent); err != nil {
		return r, err
	}
	o := ground.Options{Store: a.store.attestations, Keys: keys, Issuers: append(g.Issuers, operator.DID())}
	if a.records, err = a.store.record(ctx, dir, &o, nil, false, nil); err != nil {
		return r, err
	}
	if err = a.make(o); err != nil {
		return r, err
	}
	receipt, change, err := a.IngestEvent(ctx, "operator", event)
	return ground.CascadeReceipt{Receipt: receipt, Live: change.Live, Pending: change.Pending, Retracted: change.Retracted}, err
}

// postEvent hands the event to a running adapter.
func (g *Cascade) postEvent(ctx context.Context, event []byte) (r ground.CascadeReceipt, err error) {
	token, err := g.Token()
	if err != nil {
		return r, err
	}
	r, err = ground.PostCascade(ctx, g.URL, token, event)
	switch {
	case errors.Is(err, ground.ErrURL):
		return r, exit.With(exit.Usage, fmt.Errorf("ground: --url is not one: %s", finding.Quote(g.URL)))
	case err != nil:
		return r, exit.With(exit.Unreachable, err)
	}
	return r, nil
}
