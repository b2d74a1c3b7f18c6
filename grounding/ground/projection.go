// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A projection is what the store keeps of an attestation to be shown: three
// lines, which are the stamp of what made it, the entry, and what attest.Meta
// records of it, empty where it records nothing.

// stamp changes with everything that a projection depends on but the attestation.
func stamp(p attest.Policy) string {
	return fmt.Sprintf("1 %s %s %d %d %t %t", scrub.Veritas.Version(), scrub.UnicodeVersion, p.Confusables, p.Scope, p.Ellipsis, p.DangerouslyRFCSetOnly)
}

// projection makes one of a, whose texts p holds.
func (a *Adapter) projection(att *attest.Attestation, p *attest.Projection) ([]byte, error) {
	text, err := json.Marshal(newEntry(att, p))
	if err != nil {
		return nil, err
	}
	out := append([]byte(a.stamp), '\n')
	out = append(append(out, text...), '\n')
	if clean(&p.Meta) {
		return out, nil
	}
	meta, err := json.Marshal(&p.Meta)
	if err != nil {
		return nil, err
	}
	return append(out, meta...), nil
}

// clean reports whether m records nothing.
func clean(m *attest.Meta) bool {
	return len(m.Truncated)+len(m.ConfusablesReplaced)+len(m.StrippedPositions)+len(m.NFKCLossy)+len(m.Normalised)+
		len(m.Noted)+len(m.Deviations) == 0 && !m.ConfusablesPresent
}

// A shown is a projection that was read.
type shown struct {
	entry json.RawMessage
	meta  attest.Meta
	size  int // that both take, about
}

// errStale means that a projection was made by another release or another policy.
var errStale = errors.New("ground: stale projection")

func (a *Adapter) read(projection []byte) (shown, error) {
	stamp, rest, _ := bytes.Cut(projection, []byte{'\n'})
	entry, meta, ok := bytes.Cut(rest, []byte{'\n'})
	if string(stamp) != a.stamp || !ok {
		return shown{}, errStale
	}
	s := shown{entry: entry, size: len(entry) + len(meta)}
	if len(meta) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(meta, &s.meta); err != nil {
		return shown{}, errStale
	}
	if !a.o.DangerouslyIngestUntyped && slices.Contains(s.meta.Deviations, attest.DeviationUntyped) {
		return shown{}, errStale // another adapter has let it through: the original is looked at
	}
	return s, nil
}

// show reads the projection of st, or makes it anew of the original where it is
// stale. The error is the store's, or a *attest.Refusal where the policy of today
// refuses what was accepted once.
func (a *Adapter) show(ctx context.Context, st *Stored) (shown, error) {
	s, err := a.read(st.Projection)
	if err == nil {
		return s, nil
	}
	if st.Original == nil {
		whole, err := a.o.Store.ByHash(ctx, st.Hash)
		if err != nil {
			return shown{}, err
		}
		st.Original = whole.Original
	}
	att, err := attest.Parse(st.Original, a.parse)
	if err != nil {
		return shown{}, err
	}
	var p attest.Projection
	if err := a.projector.Project(att, &p); err != nil {
		return shown{}, err
	}
	if st.Projection, err = a.projection(att, &p); err != nil {
		return shown{}, err
	}
	return a.read(st.Projection)
}

// entryPrefix is the path of the nth entry in _meta.
func entryPrefix(n int) string { return "attestations/" + strconv.Itoa(n) + "/" }
