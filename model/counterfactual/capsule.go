// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Capsule is a group of segments that moves together, with what must hold while
// it is in a context. The zero value of each condition asks for nothing.
type Capsule struct {
	ID              string
	ForbiddenTopics []string // words or phrases that neither its text nor the answer may hold
	Clearance       int      // that the reader has to have
	OutputSchema    []byte   // JSON Schema that the answer's text must match
	NoExternalCalls bool     // the answer may call no tool
	Expires         int64    // seconds since 1970; 0 = never
}

// A Draft is what an Assembly is to be made of.
type Draft struct {
	System, Task string
	Tools        []byte // JSON array for the request; may be empty
	Model        string
	Segments     []Segment // Text, Source, Trust, Capsule and Call count
	Capsules     []Capsule
}

// Rules say what of a Draft gets in. The zero Rules let everything in.
type Rules struct {
	MinTrust    int // thousandths
	MaxSegments int // 0 = MaxSegments
	MaxBytes    int // of all segments together; 0 = 1 MiB
	Clearance   int // of the reader
	Now         int64
}

// A Drop is a segment that did not get in.
type Drop struct {
	Place int // in the Draft
	Why   DropReason
}

// A DropReason says why.
type DropReason string

// The reasons.
const (
	DropTrust     DropReason = "below-minimum-trust"
	DropCount     DropReason = "too-many-segments"
	DropBytes     DropReason = "too-many-bytes"
	DropClearance DropReason = "clearance"
	DropExpired   DropReason = "expired"
	DropTopic     DropReason = "forbidden-topic"
	DropCapsule   DropReason = "no-such-capsule"
	DropUTF8      DropReason = "ill-formed-utf8"
)

// A Report tells what Assemble did: the places in the Draft of what is in, in the
// assembly's order, and what is not.
type Report struct {
	Kept    []int
	Dropped []Drop
}

// Assemble makes an assembly of the segments that the rules let in: the most
// trusted first, among equals the draft's order. A capsule of which one segment
// cannot get in stays out whole. It is a request of format.Chat: the system's text,
// and one message of the user with the task and behind it each segment as a block.
func Assemble(d Draft, rules Rules) (*Assembly, Report, error) {
	var rep Report
	for i := range d.Segments {
		if why := d.refuse(i, rules); why != "" {
			rep.Dropped = append(rep.Dropped, Drop{i, why})
		} else {
			rep.Kept = append(rep.Kept, i)
		}
	}
	slices.SortStableFunc(rep.Kept, func(i, j int) int { return d.Segments[j].Trust - d.Segments[i].Trust })
	d.wholeCapsules(&rep) // before the caps, so that it takes no place
	d.limit(&rep, rules)
	d.wholeCapsules(&rep)
	slices.SortFunc(rep.Dropped, func(x, y Drop) int { return x.Place - y.Place })
	a, err := d.build(rep.Kept)
	return a, rep, err
}

func (d *Draft) capsule(id string) *Capsule {
	for i := range d.Capsules {
		if d.Capsules[i].ID == id {
			return &d.Capsules[i]
		}
	}
	return nil
}

func (d *Draft) refuse(i int, rules Rules) DropReason {
	s := &d.Segments[i]
	switch {
	case s.Trust < rules.MinTrust:
		return DropTrust
	case strings.ToValidUTF8(s.Text, "") != s.Text:
		return DropUTF8
	case s.Capsule == "":
		return ""
	}
	c := d.capsule(s.Capsule)
	switch {
	case c == nil:
		return DropCapsule
	case c.Expires != 0 && rules.Now >= c.Expires:
		return DropExpired
	case c.Clearance > rules.Clearance:
		return DropClearance
	case c.forbidden(s.Text) != "":
		return DropTopic
	}
	return ""
}

// forbidden is the first topic that text holds.
func (c *Capsule) forbidden(text string) string {
	text = " " + strings.Join(words(squeeze(text)), " ") + " "
	for _, topic := range c.ForbiddenTopics {
		if t := strings.Join(words(squeeze(topic)), " "); t != "" && strings.Contains(text, " "+t+" ") {
			return topic
		}
	}
	return ""
}

// limit drops what goes beyond the caps: the least trusted.
func (d *Draft) limit(rep *Report, rules Rules) {
	most, size := rules.MaxSegments, rules.MaxBytes
	if most <= 0 || most > maxSegments {
		most = maxSegments
	}
	if size <= 0 {
		size = 1 << 20
	}
	kept := rep.Kept[:0]
	for _, i := range rep.Kept {
		n := len(d.Segments[i].Text)
		switch {
		case len(kept) >= most:
			rep.Dropped = append(rep.Dropped, Drop{i, DropCount})
		case n > size:
			rep.Dropped = append(rep.Dropped, Drop{i, DropBytes})
		default:
			size -= n
			kept = append(kept, i)
		}
	}
	rep.Kept = kept
}

// wholeCapsules drops every segment of a capsule of which one was dropped.
func (d *Draft) wholeCapsules(rep *Report) {
	broken := map[string]DropReason{}
	for _, x := range rep.Dropped {
		if id := d.Segments[x.Place].Capsule; id != "" && broken[id] == "" {
			broken[id] = x.Why
		}
	}
	rep.Kept = slices.DeleteFunc(rep.Kept, func(i int) bool {
		why := broken[d.Segments[i].Capsule]
		if why != "" {
			rep.Dropped = append(rep.Dropped, Drop{i, why})
		}
		return why != ""
	})
}

// build writes the request and takes it apart at the places where it was put
// together.
func (d *Draft) build(kept []int) (*Assembly, error) {
	for _, s := range []string{d.System, d.Task, d.Model} {
		if strings.ToValidUTF8(s, "") != s {
			return nil, errors.New("counterfactual: assemble: ill-formed UTF-8")
		}
	}
	src := []byte(`{"model":`)
	src = strictjson.AppendQuote(src, d.Model)
	src = append(src, `,"messages":[{"role":"system","content":`...)
	src = strictjson.AppendQuote(src, d.System)
	src = append(src, `},{"role":"user","content":[{"type":"text","text":`...)
	src = strictjson.AppendQuote(src, d.Task)
	for _, i := range kept {
		src = append(src, `},{"type":"text","text":`...)
		src = strictjson.AppendQuote(src, d.Segments[i].Text)
	}
	src = append(src, `}]}]`...)
	if len(d.Tools) > 0 {
		src = append(append(src, `,"tools":`...), d.Tools...)
	}
	src = append(src, '}')
	a := &Assembly{Format: format.Chat, src: src, doc: new(strictjson.Doc), Task: d.Task, Instructions: d.System, Capsules: d.Capsules}
	if err := a.doc.Reset(src, strictjson.Limits{}); err != nil {
		return nil, errors.New("counterfactual: assemble: the list of tools is no JSON")
	}
	messages := slices.Collect(a.doc.Root().Get("messages").Elements())
	a.list = messages[1].Get("content")
	a.Trusted = []Part{{"system", len(d.System)}, {"user", len(d.Task)}}
	var blocks []round
	for i, b := range slices.Collect(a.list.Elements()) {
		text := b.Get("text")
		if i == 0 {
			a.slots = append(a.slots, slot{v: text, role: slotTask, pieces: []piece{{0, len(d.Task), -1}}})
			continue
		}
		s := d.Segments[kept[i-1]]
		s.Source.Origin = s.Source.Origin.Labels()
		s.Trust = min(max(s.Trust, 0), 1000)
		s.Digest = sha256.Sum256([]byte(s.Text))
		r := reader{a: a}
		k := r.segment(s)
		a.Segments[k].Trust = s.Trust
		a.slots = append(a.slots, slot{v: text, pieces: []piece{{0, len(s.Text), k}}})
		blocks = append(blocks, round{i, i + 1})
	}
	if len(blocks) > 0 {
		a.rounds = [][]round{blocks}
	}
	return a, a.seal()
}

// A Breach is an invariant of a capsule that an answer breaks.
type Breach string

// The breaches.
const (
	BreachTopic        Breach = "forbidden-topic"
	BreachCall         Breach = "external-call"
	BreachSchema       Breach = "output-schema"
	BreachExpired      Breach = "expired"
	BreachClearance    Breach = "clearance"
	BreachUnverifiable Breach = "output-schema-unverifiable" // no validator was given
)

// Check holds an answer against the capsule. valid says whether a text matches a
// JSON Schema; without one a schema cannot be verified, which is a breach as well.
func (c *Capsule) Check(a *Answer, rules Rules, valid func(schema []byte, text string) bool) []Breach {
	var out []Breach
	if c.Expires != 0 && rules.Now >= c.Expires {
		out = append(out, BreachExpired)
	}
	if c.Clearance > rules.Clearance {
		out = append(out, BreachClearance)
	}
	topic := c.forbidden(a.Text) != ""
	for _, call := range a.Calls {
		topic = topic || c.forbidden(string(call.Arguments)) != ""
	}
	if topic {
		out = append(out, BreachTopic)
	}
	if c.NoExternalCalls && len(a.Calls) > 0 {
		out = append(out, BreachCall)
	}
	switch {
	case len(c.OutputSchema) == 0:
	case valid == nil:
		out = append(out, BreachUnverifiable)
	case !valid(c.OutputSchema, a.Text):
		out = append(out, BreachSchema)
	}
	return out
}
