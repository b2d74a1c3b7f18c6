// SPDX-License-Identifier: Apache-2.0

package validator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Report says whether an attestation is accepted, or why not.
type Report struct {
	Accepted  bool   `json:"accepted"`
	Code      string `json:"code,omitempty"`
	Pointer   string `json:"pointer,omitempty"`
	Offset    *int   `json:"offset,omitempty"`
	InText    bool   `json:"in_text,omitzero"` // the offset is that in the decoded string
	ID        string `json:"id,omitempty"`
	Version   string `json:"canonicalisation_version,omitempty"`
	Hash      string `json:"hash,omitempty"`
	ClaimHash string `json:"claim_hash,omitempty"`
	Validator string `json:"validator_did,omitempty"`
	Verdict   string `json:"verdict,omitempty"`
	Untyped   string `json:"untyped,omitempty"` // what typing would have refused it for
}

// Check checks envelope, typing, hashes and proof at a time, a zero one being now, with the
// keys that are known offline: those of did:key. The registry of domains, and whether a
// store has the same, are not checked.
func Check(doc []byte, at time.Time, o attest.Options) (*Report, error) {
	if at.IsZero() {
		at = time.Now()
	}
	a, err := attest.Parse(doc, o)
	if err == nil {
		err = a.Verify(context.Background(), at, offlineKeys{})
	}
	var r *attest.Refusal
	switch {
	case errors.As(err, &r):
		return &Report{Code: string(r.Code), Pointer: r.Pointer, Offset: &r.Offset, InText: r.Text}, nil
	case err != nil:
		return nil, err
	}
	rep := &Report{
		Accepted: true, ID: a.ID, Version: string(a.Version), Hash: a.Hash().String(), ClaimHash: a.ClaimHash.String(),
		Validator: a.Validator, Verdict: string(a.Verdict),
	}
	if a.Untyped != nil {
		rep.Untyped = string(a.Untyped.Code)
	}
	return rep, nil
}

// WriteText writes the report for a person.
func (r *Report) WriteText(w io.Writer) error {
	if !r.Accepted {
		at := "byte"
		if r.InText {
			at = "byte of the text"
		}
		_, err := fmt.Fprintf(w, "refused: %s at %s, %s %d\n", r.Code, finding.Quote(r.Pointer), at, *r.Offset)
		return err
	}
	if _, err := fmt.Fprintf(w, "accepted: %s\n%s by %s\n", r.Hash, r.Verdict, r.Validator); err != nil || r.Untyped == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "not plain text: %s\n", r.Untyped)
	return err
}

// Hash is the canonical hash of a JSON object without its member "proof", by a version or,
// where that is "", by the one that the document names.
func Hash(doc []byte, v attest.Version) (string, error) {
	if v == "" {
		v = attest.StatedVersion(doc)
	}
	h, err := attest.CanonicalHash(doc, v)
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// DedupKeys are two lines: the keys by which duplicates of an attestation are found, that of
// its text and that of the skeleton of the text.
func DedupKeys(doc []byte) (string, error) {
	a, err := attest.Parse(doc, attest.Options{})
	if err != nil {
		return "", err
	}
	k := a.DedupKey()
	return fmt.Sprintf("text %s\nskeleton %s", k.Text, k.Skeleton), nil
}
