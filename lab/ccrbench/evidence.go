// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An EvidenceRow is one property of the records, and how often it held.
type EvidenceRow struct {
	Check string `json:"check"`
	Held  Share  `json:"held"`
}

// An examination counts how often records have each of their properties.
type examination struct {
	same, replayed, conclusion, answer, dropped, tampered Share
}

func (e *examination) rows() []EvidenceRow {
	return []EvidenceRow{
		{"the same answers give the same bytes", e.same},
		{"replay derives the record byte for byte", e.replayed},
		{"a changed conclusion is refused", e.conclusion},
		{"a changed answer is refused", e.answer},
		{"a left-out answer is refused", e.dropped},
		{"a changed byte is refused, or changes the digest alone", e.tampered},
	}
}

// evidence checks records of simulated decisions: determinism, replay, tampering.
func evidence(x *index, opt *Options) ([]EvidenceRow, error) {
	count := 60
	if opt.Full {
		count = 400
	}
	var e examination
	for i := range count {
		opt.say("G: evidence", i, count)
		rng := random(opt.Seed, "G", i)
		s := shapes[rng.IntN(len(shapes))]
		n, noise := sizes[rng.IntN(2)], noises[rng.IntN(len(noises))]
		run := func() ([]byte, error) { return decision(&s, n, noise, opt.Seed, i) }
		record, err := e.makeTwice(run)
		if err != nil {
			return nil, err
		}
		if err := e.tamper(record, rng); err != nil {
			return nil, err
		}
	}
	rows := append(e.rows(), x.rebuilt...)
	for i := range rows {
		rows[i].Held = rows[i].Held.done()
	}
	return rows, nil
}

// makeTwice makes a record, and makes it again.
func (e *examination) makeTwice(run func() ([]byte, error)) (record []byte, err error) {
	if record, err = run(); err != nil {
		return nil, err
	}
	again, err := run()
	if err != nil {
		return nil, err
	}
	e.same.add(bytes.Equal(record, again))
	_, err = counterfactual.Replay(record)
	e.replayed.add(err == nil)
	return record, nil
}

// tamper changes a record in every way, and in bytes at random.
func (e *examination) tamper(record []byte, rng *rand.Rand) error {
	for _, t := range tampers {
		changed, ok, err := t.apply(record, rng)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		_, err = counterfactual.Replay(changed)
		switch t.kind {
		case tamperConclusion:
			e.conclusion.add(err != nil)
		case tamperAnswer:
			e.answer.add(err != nil)
		case tamperDropped:
			e.dropped.add(err != nil)
		}
	}
	for range 20 {
		changed := bytes.Clone(record)
		changed[rng.IntN(len(changed))] ^= byte(1 + rng.IntN(255))
		r, err := counterfactual.Replay(changed)
		e.tampered.add(err != nil || sameConclusion(r, record))
	}
	return nil
}

// decision returns the record of one simulated decision.
func decision(s *shape, n int, noise float64, seed uint64, number int) ([]byte, error) {
	causes, order := s.draw(n, random(seed, "G draw", number))
	sim := &simulated{causes: causes, p1: 1 - noise, p0: slipFloor, rng: random(seed, "G answers", number)}
	plan, err := counterfactual.NewPlan(problem(n, order, sim))
	if err != nil {
		return nil, err
	}
	for {
		probes := plan.Next(1)
		if len(probes) == 0 {
			return plan.Result().Record()
		}
		plan.Observe(sim.Ask(probes[0]))
	}
}

// sameConclusion reports whether what a changed record concludes is what the first one
// does: then what was changed is something that no attribution rests on, and only the
// digest and the signature tell.
func sameConclusion(r *counterfactual.Result, first []byte) bool {
	b, err := r.Record()
	return err == nil && bytes.Equal(member(b, "conclusion"), member(first, "conclusion"))
}

func member(b []byte, name string) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) != nil {
		return nil
	}
	return m[name]
}

// rebuild checks of a sample of real contexts that a manifest gives the bytes of its
// variant again, and that of another assembly or of other rules gives none.
func (x *index) rebuild(a *counterfactual.Assembly) {
	const every = 16
	if x.seen++; x.seen%every != 1 {
		return
	}
	n := len(a.Segments)
	if x.rebuilt == nil {
		x.rebuilt = []EvidenceRow{{Check: "a manifest gives the bytes of its variant again"}, {Check: "a manifest of something else gives none"}}
	}
	for _, v := range []counterfactual.Variant{
		counterfactual.KeepOnly(""), counterfactual.Variant{Kind: counterfactual.KindRemove, Kept: counterfactual.AllOf(n - 1)}, counterfactual.MaskUser(n),
		counterfactual.Attenuate(n, counterfactual.AllOf(n), counterfactual.LevelMasked), counterfactual.Reorder(n, uint64(x.seen)),
	} {
		want, err := a.Render(v)
		m := a.Manifest(v)
		got, again := a.Rebuild(m)
		x.rebuilt[0].Held.add(err == nil && again == nil && bytes.Equal(got, want))
		m.Assembly = strings.Replace(m.Assembly, m.Assembly[len(m.Assembly)-1:], "x", 1)
		_, err = a.Rebuild(m)
		m = a.Manifest(v)
		m.Transform += "0"
		_, again = a.Rebuild(m)
		x.rebuilt[1].Held.add(err != nil && again != nil)
	}
}

type tamperKind uint8

const (
	tamperConclusion tamperKind = iota
	tamperAnswer
	tamperDropped
)

// A tamper changes one thing in a record and writes it as a record is written.
type tamper struct {
	kind   tamperKind
	change func(m map[string]any, rng *rand.Rand) bool
}

var tampers = []tamper{
	{tamperConclusion, func(m map[string]any, _ *rand.Rand) bool {
		first(m, "conclusion", "verdicts")["class"] = "user-driven-x"
		return true
	}},
	{tamperConclusion, func(m map[string]any, _ *rand.Rand) bool {
		v := first(m, "conclusion", "verdicts")
		was := v["response"]
		v["response"] = "allow"
		return was != "allow"
	}},
	{tamperConclusion, func(m map[string]any, _ *rand.Rand) bool {
		c := m["conclusion"].(map[string]any)
		was := c["withheld"]
		c["withheld"] = ""
		return was != ""
	}},
	{tamperConclusion, func(m map[string]any, _ *rand.Rand) bool {
		v := first(m, "conclusion", "verdicts")
		v["log_e"] = v["log_e"].(float64) + 1
		return true
	}},
	{tamperAnswer, func(m map[string]any, rng *rand.Rand) bool {
		list := m["observations"].([]any)
		o := list[rng.IntN(len(list))].(map[string]any)["outcomes"].([]any)[0].(map[string]any)
		o["recurs"] = !o["recurs"].(bool)
		return true
	}},
	{tamperDropped, func(m map[string]any, rng *rand.Rand) bool {
		list := m["observations"].([]any)
		i := rng.IntN(len(list))
		m["observations"] = append(list[:i:i], list[i+1:]...)
		return true
	}},
}

func first(m map[string]any, outer, list string) map[string]any {
	return m[outer].(map[string]any)[list].([]any)[0].(map[string]any)
}

func (t *tamper) apply(b []byte, rng *rand.Rand) (changed []byte, ok bool, err error) {
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, false, err
	}
	if !t.change(m, rng) {
		return nil, false, nil
	}
	if changed, err = json.Marshal(m); err != nil {
		return nil, false, err
	}
	changed, err = strictjson.Canonical(nil, changed, strictjson.Limits{})
	return changed, true, err
}
