// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A caseHead is the statement that the key of the log signs about a case: what is left out of the file later, as the
// last of its records, makes another digest. The members are in the order of their names, as the format has it.
type caseHead struct {
	Type          string         `json:"_type"`
	Predicate     casePredicate  `json:"predicate"`
	PredicateType string         `json:"predicateType"`
	Subject       [1]caseSubject `json:"subject"`
}

type casePredicate struct {
	ID      string `json:"id"`
	Records int    `json:"records"` // of the case
	Size    int64  `json:"size"`    // of the log: the case has all records about the decision that are in it
}

type caseSubject struct {
	Digest caseDigest `json:"digest"`
	Name   string     `json:"name"`
}

type caseDigest struct {
	SHA256 string `json:"sha256"`
}

// statementType is that of in-toto, version 1.
const statementType = "https://in-toto.io/Statement/v1"

// sign signs the case with the key that has signed its checkpoint. Where that key is not on this machine, the case has no
// head.
func (b *caseBuilder) sign(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
	keys, err := keysOf(ctx, l)
	if err != nil {
		return err
	}
	opened, err := ledger.OpenCheckpoint(b.checkpoint, keys, nil)
	if err != nil {
		return fmt.Errorf("ledger: case: %w", err)
	}
	ring, err := local.Keyring(dir, b.o.Key)
	if err != nil {
		return err
	}
	key, err := ring.Find(opened.Origin, opened.Keys[len(opened.Keys)-1].ID())
	if errors.Is(err, sequence.ErrNoKey) {
		return nil
	} else if err != nil {
		return err
	}
	digest, err := b.c.digest()
	if err != nil {
		return err
	}
	st, err := json.Marshal(caseHead{statementType, casePredicate{b.c.ID, len(b.c.Records), opened.Size}, CaseType,
		[1]caseSubject{{caseDigest{hex.EncodeToString(digest[:])}, "case"}}})
	if err != nil {
		return err
	}
	head, err := ledger.Sign(st, key)
	b.c.Head = string(head)
	return err
}

// digest is the SHA-256 of a line for each text of the case but its head: its path, a space and its SHA-256.
func (c *Case) digest() (d ledger.Digest, err error) {
	rest := *c
	rest.Head = ""
	b, err := json.Marshal(rest)
	if err != nil {
		return d, err
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return d, err
	}
	return sha256.Sum256(appendTexts(nil, "", v)), nil
}

// appendTexts appends the lines of the texts of a JSON value: members by their names, elements in their order.
func appendTexts(dst []byte, path string, v any) []byte {
	switch v := v.(type) {
	case string:
		dst = fmt.Appendf(dst, "%s %x\n", path, sha256.Sum256([]byte(v)))
	case []any:
		for i, e := range v {
			dst = appendTexts(dst, path+"/"+strconv.Itoa(i), e)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			dst = appendTexts(dst, path+"/"+name, v[name])
		}
	}
	return dst
}
