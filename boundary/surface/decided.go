// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
)

// PinID names the pin of a server in records of the ledger.
func PinID(server string) [16]byte {
	sum := sha256.Sum256([]byte("pin\x00" + server))
	return [16]byte(sum[:16])
}

// Decided returns the digest of the approved and blocked items, without the names of reviewers, which may be erased.
func (p *Pin) Decided() Digest {
	parts := [][]byte{[]byte(p.Server), []byte(strings.Join(p.Tolerates, " "))}
	for i := range p.Items {
		it := &p.Items[i]
		if it.Approved == "" && len(it.Blocked) == 0 {
			continue
		}
		parts = append(parts, []byte(it.Kind.String()), []byte(it.Name), []byte(it.Approved), strconv.AppendBool(nil, it.byHand))
		for _, b := range it.Blocked {
			parts = append(parts, b[:])
		}
	}
	return digestOf("decided", parts...)
}

// DecidedByHand returns the digests of the versions that By may have approved or blocked.
func (p *PinnedItem) DecidedByHand() (of []Digest) {
	if p.byHand {
		of = p.approved().knownDigests()
	}
	return append(of, p.Blocked...)
}

// knownDigests returns the digests of a version: the present one, and that of releases in which the order of a set counted.
func (it Item) knownDigests() []Digest {
	return slices.Compact([]Digest{it.Digest, digestOf("item", []byte(it.Kind.String()), []byte(it.Name), it.JSON)})
}

// isIn reports whether a list names the version.
func (it Item) isIn(list []Digest) bool {
	return slices.ContainsFunc(it.knownDigests(), func(d Digest) bool { return slices.Contains(list, d) })
}
