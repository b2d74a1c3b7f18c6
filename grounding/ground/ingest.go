// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
)

// A Receipt says what became of one attestation or cascade event that was handed
// in. Nothing in it is third-party text.
type Receipt struct {
	Accepted bool   `json:"accepted"`
	Code     string `json:"code,omitempty"` // why not: a finding.Code, or one of the constants below
	// Pointer and Offset say where, as in attest.Refusal; Text: Offset counts
	// bytes of the decoded string at Pointer.
	Pointer string `json:"pointer,omitempty"`
	Offset  int    `json:"offset,omitempty"`
	Text    bool   `json:"in_text,omitempty"`
	// Retry: the same bytes may be accepted later.
	Retry bool `json:"retry,omitempty"`

	Hash      string `json:"hash,omitempty"`      // canonical, "sha256:…"
	Status    string `json:"status,omitempty"`    // live, cascade-pending or retracted
	Renews    string `json:"renews,omitempty"`    // hash of what it takes the place of
	Repeats   string `json:"repeats,omitempty"`   // hash of what it is a duplicate of; its own for a replay
	Lookalike string `json:"lookalike,omitempty"` // hash of what it looks like, without saying the same
}

// The codes of a Receipt that are not those of package finding.
const (
	CodeDuplicate   = "duplicate"
	CodeBusy        = "store-busy"
	CodeFull        = "store-full"
	CodeUnavailable = "store-unavailable"
	CodeInvalid     = "not-storable"
)

// A Refused is what is kept as evidence of something that was not accepted.
type Refused struct {
	At        time.Time
	Submitter string // principal of the submitter, or ""
	Digest    string // "sha256:…" of the bytes
	Receipt   Receipt
	Validator string // whose signature was verified before it was refused for what it says; "": nobody's
}

// Ingest checks attestations, stores those that pass, and returns a receipt for
// each, in their order. submitter is kept as evidence of refusals. Whatever is
// acknowledged is durable. The error is that of the context only: then nothing is
// said of any, and all may be handed in again.
func (a *Adapter) Ingest(ctx context.Context, submitter string, bodies [][]byte) ([]Receipt, error) {
	receipts := make([]Receipt, len(bodies))
	records := make([]*Record, len(bodies)) // nil: refused
	signers := make([]string, len(bodies))  // of what was refused although its signature holds
	each(len(bodies), func(i int) {
		r, signer, err := a.check(ctx, bodies[i])
		if err != nil {
			receipts[i], signers[i] = refusal(bodies[i], err), signer
			return
		}
		records[i] = r
	})
	var batch []Record
	var at []int
	for i, r := range records {
		if r != nil {
			batch, at = append(batch, *r), append(at, i)
		}
		if len(batch) == MaxBatch || i == len(records)-1 {
			for k, r := range a.put(ctx, batch) {
				receipts[at[k]] = r
			}
			batch, at = batch[:0], at[:0]
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range receipts {
		a.witness(submitter, bodies[i], receipts[i], signers[i])
	}
	return receipts, nil
}

// each calls f for 0 to n-1, on all processors.
func each(n int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// check takes an attestation through everything that comes before the store, in
// the order of docs/spec/attestation.md. The error is a *attest.Refusal; signer is
// whose signature was verified before it.
func (a *Adapter) check(ctx context.Context, body []byte) (_ *Record, signer string, _ error) {
	att, err := attest.Parse(body, a.parse)
	if err != nil {
		return nil, "", err
	}
	if err := att.Verify(ctx, a.o.Now(), a.o.Keys); err != nil {
		return nil, "", err
	}
	var p attest.Projection
	if err := a.projector.Project(att, &p); err != nil {
		return nil, att.Validator, err
	}
	projection, err := a.projection(att, &p)
	if err != nil {
		return nil, att.Validator, err
	}
	id := att.Identity()
	return &Record{
		Hash: id.Hash, HashVersion: att.Version, Key: id.Key, ID: att.ID, Validator: att.Validator,
		ClaimHash: att.ClaimHash, ClaimText: p.Claim.String(), Language: att.Claim.Language,
		GroupID: att.Claim.GroupID, Topic: att.Claim.Topic,
		Domain: att.Domain, Verdict: att.Verdict, Issued: att.Issued, Expires: att.Expires,
		DependsOn: att.DependsOn, Original: att.Source(), Projection: projection,
	}, att.Validator, nil
}

// put stores a batch and says what became of each.
func (a *Adapter) put(ctx context.Context, batch []Record) []Receipt {
	if len(batch) == 0 {
		return nil
	}
	receipts := make([]Receipt, len(batch))
	var evidence func([]PutResult) ([][]byte, error)
	if a.o.Evidence != nil {
		evidence = func(outcomes []PutResult) ([][]byte, error) { return a.o.Evidence.Put(batch, outcomes) }
	}
	outcomes, err := a.o.Store.Put(ctx, batch, evidence)
	switch {
	case err == nil:
		for i := range batch {
			receipts[i] = receipt(&batch[i], outcomes[i])
		}
	case errors.Is(err, ErrInvalid) && len(batch) > 1: // one of them; the others are not to suffer
		for i := range batch {
			receipts[i] = a.put(ctx, batch[i:i+1])[0]
		}
	default:
		code, retry := storeCode(err)
		for i := range batch {
			receipts[i] = Receipt{Code: code, Retry: retry, Hash: batch[i].Hash.String()}
		}
	}
	return receipts
}

func receipt(r *Record, o PutResult) Receipt {
	out := Receipt{Accepted: true, Hash: r.Hash.String(), Status: statusName(o.Status), Lookalike: hashName(o.Lookalike)}
	switch o.Disposition {
	case Renewed:
		out.Renews = hashName(o.Other)
	case Duplicate:
		out.Accepted, out.Code, out.Repeats = false, CodeDuplicate, hashName(o.Other)
		if o.Other != r.Hash {
			out.Status = "" // that of another
		}
	}
	return out
}

// hashName is "" for no hash.
func hashName(h attest.Hash) string {
	if h == (attest.Hash{}) {
		return ""
	}
	return h.String()
}

func statusName(s consensus.Status) string {
	switch s {
	case consensus.Live:
		return "live"
	case consensus.CascadePending:
		return "cascade-pending"
	case consensus.Retracted:
		return "retracted"
	}
	return ""
}

// witness tells of what was not accepted. A replay is none: every federation sends
// each attestation as often as it has peers.
func (a *Adapter) witness(submitter string, body []byte, r Receipt, signer string) {
	if r.Accepted || a.o.Refused == nil || r.Repeats != "" && r.Repeats == r.Hash {
		return
	}
	a.o.Refused(Refused{At: a.o.Now(), Submitter: submitter, Digest: attest.Hash(sha256.Sum256(body)).String(), Receipt: r, Validator: signer})
}
