// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// An Approval lets the same call of the same principal pass until it ends. A reviewer gives it
// when releasing a held call.
type Approval struct {
	ID        string // 32 hex digits
	Call      Digest // of the principal, the tool, its arguments and where these come from
	Principal string
	Tool      string // label
	Item      string // id of the held call that it was given for

	Since   time.Time
	Until   time.Time // when it ends by itself
	By      string    // who gave it
	Revoked time.Time // zero: not before
	Revoker string    // who ended it
	Uses    int
	Used    time.Time // the last time; zero: never
}

// An ApprovalStore keeps Approvals.
type ApprovalStore interface {
	TimedStore[Approval]
	// Use counts a use of the approval for a call that is in force; ErrNotFound.
	Use(ctx context.Context, call Digest, now time.Time) (Approval, error)
}

// ApprovalOptions are the bounds of Approvals; a zero member is its default.
type ApprovalOptions struct {
	remember time.Duration // how long one that has ended is still listed; 30 days
	Most     int           // in force; 10,000
	Now      func() time.Time

	// Evidence returns the ledger's record of an Approval that is given or revoked. What
	// cannot be recorded does not happen. nil: nothing is recorded.
	Evidence func(Approval) ([]byte, error)
}

// MaxApproval is the longest time for which a call can be approved.
const MaxApproval = 365 * 24 * time.Hour

// Approvals are the Approvals of an ApprovalStore. They are safe for concurrent use.
type Approvals struct {
	timed[Approval]
	uses ApprovalStore
}

// NewApprovals makes Approvals.
func NewApprovals(s ApprovalStore, o ApprovalOptions) *Approvals {
	setDefault(&o.remember, Remembered)
	setDefault(&o.Most, 10_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Approvals{timed[Approval]{s, o.Most, o.remember, o.Now, o.Evidence}, s}
}

var (
	errNotRemembered = errors.New("hold: only a call that pellucid guard has held, with arguments that it could read, can be remembered")
	errApprovalTime  = errors.New("hold: an approval lasts from a minute to 365 days")
	errFirstOfTwo    = errors.New("hold: the item needs two persons: release it without an approval, which proposes it; the person who confirms it can approve its calls")
)

// Remember approves the calls of a held item, whose opened body is given, for a time. by names
// the person.
func (as *Approvals) Remember(ctx context.Context, it *Item, body []byte, by string, keep time.Duration) (out []Approval, err error) {
	if keep < time.Minute || keep > MaxApproval {
		return nil, errApprovalTime
	}
	calls, err := approvable(it, body)
	if err != nil {
		return nil, err
	}
	now := as.now().UTC()
	if err := as.Sweep(ctx); err != nil {
		return nil, err
	}
	for _, c := range calls {
		a := Approval{ID: NewID(), Call: c.call, Principal: it.Principal, Tool: c.tool, Item: it.ID, Since: now, Until: now.Add(keep), By: by}
		if err := as.add(ctx, a); err != nil {
			return out, err
		}
		out = append(out, a)
	}
	return out, nil
}

// ReleaseAndRemember releases a held item, and approves its calls then, as Remember does. opened is the body that
// a reviewer has decrypted; nil where the item is not sealed. The first of two persons who are needed approves
// nothing.
func (as *Approvals) ReleaseAndRemember(ctx context.Context, q *Queue, it *Item, opened []byte, by string, keep time.Duration) ([]Approval, error) {
	if keep < time.Minute || keep > MaxApproval {
		return nil, errApprovalTime
	}
	body := opened
	if body == nil {
		body = it.Body
	}
	if it.State == Held { // else the release says what has become of it
		if it.People > 1 && it.Proposer == "" {
			return nil, errFirstOfTwo
		}
		if opened == nil && it.Sealed() {
			return nil, ErrSealed
		}
		if _, err := approvable(it, body); err != nil {
			return nil, err
		}
	}
	if err := q.ReleaseOpened(ctx, it.ID, by, opened); err != nil {
		return nil, err
	}
	now, err := q.Get(ctx, it.ID)
	if err != nil {
		return nil, err
	}
	if now.State == Held { // the person who had proposed it was forgotten meanwhile
		return nil, errFirstOfTwo
	}
	list, err := as.Remember(ctx, it, body, by, keep)
	if err != nil {
		err = fmt.Errorf("hold: the item is released, and not all of its calls are approved: %w", err)
	}
	return list, err
}

type approvableCall struct {
	tool string
	call Digest
}

// approvable are the calls in the body of an item of the guard, each with the digest by which
// the guard looks for an approval.
func approvable(it *Item, body []byte) (out []approvableCall, err error) {
	var calls []struct{ Tool, Approval string }
	if it.Rule != GuardCall || !it.Opened(body) || json.Unmarshal(body, &calls) != nil || len(calls) == 0 {
		return nil, errNotRemembered
	}
	for _, c := range calls {
		sum, err := hex.DecodeString(strings.TrimPrefix(c.Approval, "sha256:"))
		if err != nil || len(sum) != len(Digest{}) {
			return nil, errNotRemembered
		}
		out = append(out, approvableCall{frame.Label(c.Tool), Digest(sum)})
	}
	return out, nil
}

// Use returns the approval for a call that is in force, and counts its use; false if there is
// none.
func (as *Approvals) Use(ctx context.Context, call Digest) (Approval, bool) {
	a, err := as.uses.Use(ctx, call, as.now())
	return a, err == nil
}

// Revoke ends an Approval. by names the person.
func (as *Approvals) Revoke(ctx context.Context, id, by string) error {
	return as.end(ctx, id, by, func(a *Approval, now time.Time) { a.Revoked, a.Revoker = now, by })
}
