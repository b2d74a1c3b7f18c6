// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/rfc3339"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// ManifestVersion is that of docs/spec/counterfactual.md, "Manifest of a context".
const ManifestVersion = "ccr-manifest/1"

// A Manifest is what is known of a saved context beside its bytes.
type Manifest struct {
	Version string `json:"version"`
	// Clearance is that of the reader of the answer.
	Clearance int `json:"clearance"`
	// Trust has weights by source, the first whose pattern matches counts.
	Trust    []sourceWeight          `json:"trust"`
	Segments map[string]segmentClaim `json:"segments"` // by id: s1, s2, …
	Edges    []edge                  `json:"edges"`
	Capsules []capsule               `json:"capsules"`
}

type sourceWeight struct {
	Source string   `json:"source"` // pattern of labels, such as bank/* or ?/fetch
	Weight *float64 `json:"weight"`
}

type segmentClaim struct {
	Trust   *float64 `json:"trust"`
	Capsule string   `json:"capsule"`
}

type edge struct {
	Kind counterfactual.EdgeKind `json:"kind"`
	From string                  `json:"from"`
	To   string                  `json:"to"`
}

type capsule struct {
	ID              string          `json:"id"`
	ForbiddenTopics []string        `json:"forbidden_topics"`
	Clearance       int             `json:"clearance"`
	OutputSchema    json.RawMessage `json:"output_schema"`
	NoExternalCalls bool            `json:"no_external_calls"`
	Expires         string          `json:"expires"` // RFC 3339
}

// Bounds of a manifest.
const (
	maxManifest  = 4 << 20
	maxClaims    = 4096 // of each list
	maxTopicSize = 256
)

// ErrManifest means that a manifest cannot be read, or is of another context.
var ErrManifest = errors.New("ccr: manifest")

// ParseManifest reads a manifest.
func ParseManifest(b []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := strictjson.Unmarshal(b, m, strictjson.Limits{Bytes: maxManifest, Depth: 64}); err != nil {
		return nil, err
	}
	if m.Version != ManifestVersion {
		return nil, errors.New("want version " + ManifestVersion)
	}
	if max(len(m.Trust), len(m.Segments), len(m.Edges), len(m.Capsules)) > maxClaims {
		return nil, errors.New("too many entries in one list")
	}
	for i := range m.Trust {
		t := &m.Trust[i]
		if t.Source == "" || len(t.Source) > maxTopicSize {
			return nil, fmt.Errorf("trust %d: source: want a pattern such as bank/*", i+1)
		}
		if !isWeight(t.Weight) {
			return nil, fmt.Errorf("trust %d: weight: want a number from 0 to 1", i+1)
		}
	}
	for id, s := range m.Segments {
		if s.Trust != nil && !isWeight(s.Trust) {
			return nil, errors.New("segment " + finding.Quote(id) + ": trust: want a number from 0 to 1")
		}
	}
	for i := range m.Capsules {
		if _, err := m.Capsules[i].compile(); err != nil {
			return nil, fmt.Errorf("capsule %d: %w", i+1, err)
		}
		for k := range i {
			if m.Capsules[k].ID == m.Capsules[i].ID {
				return nil, fmt.Errorf("capsule %d: id: an earlier one has it", i+1)
			}
		}
	}
	return m, nil
}

func isWeight(w *float64) bool { return w != nil && *w >= 0 && *w <= 1 }

func thousandths(w float64) int { return int(math.Round(1000 * w)) }

// compile is the capsule for an assembly.
func (c *capsule) compile() (out counterfactual.Capsule, err error) {
	if !frame.IsLabel(c.ID) {
		return out, errors.New("id: want a label: letters, digits, '-', '_' or '.', at most 64 bytes")
	}
	if c.Clearance < 0 {
		return out, errors.New("clearance: want 0 or more")
	}
	if len(c.ForbiddenTopics) > maxClaims {
		return out, errors.New("forbidden_topics: too many")
	}
	for _, t := range c.ForbiddenTopics {
		if strings.TrimSpace(t) == "" || len(t) > maxTopicSize {
			return out, fmt.Errorf("forbidden_topics: want words of at most %d bytes", maxTopicSize)
		}
	}
	out = counterfactual.Capsule{ID: c.ID, ForbiddenTopics: c.ForbiddenTopics, Clearance: c.Clearance, OutputSchema: c.OutputSchema, NoExternalCalls: c.NoExternalCalls}
	if c.Expires != "" {
		at, ok := rfc3339.Parse(c.Expires)
		if !ok {
			return out, errors.New("expires: want a time of RFC 3339")
		}
		out.Expires = max(at.Unix(), 1)
	}
	return out, nil
}

// trust is the weight of a source.
func (m *Manifest) trust(s counterfactual.Source) int {
	for i := range m.Trust {
		if counterfactual.Glob(m.Trust[i].Source, s.Label()) {
			return thousandths(*m.Trust[i].Weight)
		}
	}
	return 0
}

// apply is the assembly with what the manifest says of it.
func (m *Manifest) apply(a *counterfactual.Assembly) (*counterfactual.Assembly, error) {
	claim := counterfactual.Claim{Members: map[int]string{}, Trust: map[int]int{}}
	place := func(id string) (int, error) {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "s"))
		if err != nil || n < 1 || n > len(a.Segments) || id != a.Segments[n-1].ID {
			return 0, errors.New(finding.Quote(id) + ": the context has no such segment")
		}
		return n - 1, nil
	}
	for i := range m.Capsules {
		c, err := m.Capsules[i].compile()
		if err != nil {
			return nil, err
		}
		claim.Capsules = append(claim.Capsules, c)
	}
	for id, s := range m.Segments {
		i, err := place(id)
		if err != nil {
			return nil, err
		}
		if s.Trust != nil {
			claim.Trust[i] = thousandths(*s.Trust)
		}
		if s.Capsule != "" {
			claim.Members[i] = s.Capsule
		}
	}
	for _, e := range m.Edges {
		from, err := place(e.From)
		if err != nil {
			return nil, err
		}
		to, err := place(e.To)
		if err != nil {
			return nil, err
		}
		claim.Edges = append(claim.Edges, counterfactual.Edge{Kind: e.Kind, From: from, To: to})
	}
	return a.With(claim)
}

// A Breach is an invariant of a capsule that does not hold.
type Breach struct {
	Capsule string                    `json:"capsule"`
	Kind    counterfactual.BreachKind `json:"kind"`
	Segment string                    `json:"segment,omitempty"` // "": the answer, or the capsule as a whole
}

// Breaches holds the context and the answer against the capsules of the manifest. valid says
// whether a text matches a JSON Schema.
func (q *Question) Breaches(now time.Time, valid func(schema []byte, text string) bool) []Breach {
	var out []Breach
	for _, b := range q.Assembly.Breaches(q.answer, counterfactual.Reader{Clearance: q.clearance, Now: now.Unix()}, valid) {
		of := Breach{Capsule: b.Capsule, Kind: b.Kind}
		if b.Segment >= 0 {
			of.Segment = q.Assembly.Segments[b.Segment].ID
		}
		out = append(out, of)
	}
	return out
}
