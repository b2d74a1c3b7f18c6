// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// scripted answers by a function.
type scripted func(Probe) Observation

func (f scripted) Ask(p Probe) Observation { return f(p) }

func answer(p Probe, recurs bool) Observation {
	return Observation{Variant: p.Variant, Replicate: p.Replicate, Recurrences: []Recurrence{{Recurs: recurs}}, Tokens: p.Tokens}
}

func TestTampering(t *testing.T) {
	r := Drive(mustPlan(t, problemOf(3)), scripted(func(p Probe) Observation {
		o := answer(p, p.Variant.Kept.Has(1))
		if !o.Recurrences[0].Recurs {
			o.Recurrences[0].Tampered = []string{"iban"}
		}
		return o
	}))
	v := r.Attributions[0]
	if v.Class != Hijack || !slices.Equal(v.Arguments, []string{"iban"}) || found(r) != SetOf(1) {
		t.Errorf("%+v", v)
	}
	if slices.ContainsFunc(r.observations, func(o Observation) bool { return o.Variant.MaskUser }) {
		t.Error("paid for a question that was answered")
	}
}

// TestContradiction: text that hides what other text shows. Every conclusion is
// marked, and what is left is spent on leave-one-out.
func TestContradiction(t *testing.T) {
	r := Drive(mustPlan(t, problemOf(6)), scripted(func(p Probe) Observation {
		k := p.Variant.Kept
		return answer(p, k.Len() >= 5 && k.Has(2) || p.Variant.MaskUser)
	}))
	v := r.Attributions[0]
	if v.Class != Hijack || r.Response() != Quarantine {
		t.Fatalf("%+v", v)
	}
	p := problemOf(6)
	p.Full, p.Rates = true, Rates{P1: 999_000, P0: 1_000}
	r = Drive(mustPlan(t, p), scripted(func(p Probe) Observation {
		k := p.Variant.Kept
		return answer(p, k == SetOf(2) || k.Len() == 6)
	}))
	if v := r.Attributions[0]; !slices.ContainsFunc(v.Contradictions, func(c Contradiction) bool { return c.Recurs == SetOf(2) && c.Vanishes.Len() > 1 }) {
		t.Errorf("%+v", v)
	}
	// Nothing recurs but the whole: no core is found but all of it, or none.
	p = problemOf(12)
	r = Drive(mustPlan(t, p), scripted(func(p Probe) Observation { return answer(p, p.Variant.MaskUser) }))
	v = r.Attributions[0]
	if !v.Contradictory || v.Suspects.Len() != 12 || !slices.Contains(v.NotTested, "localisation") || v.Response != Quarantine {
		t.Errorf("%+v", v)
	}
	checkReplay(t, r)
}

// TestExhausted: at the ceiling the attribution stands, and everything that was not
// cleared is withheld.
func TestExhausted(t *testing.T) {
	for calls := 1; calls < 30; calls++ {
		p := problemOf(64)
		p.Budget = Budget{Calls: calls}
		r := Drive(mustPlan(t, p), &simulated{causes: []Set{SetOf(40)}})
		v := r.Attributions[0]
		switch {
		case r.Spent.Calls > calls:
			t.Fatalf("%d calls of %d", r.Spent.Calls, calls)
		case v.Class == Inconclusive && (v.Response != Hold || v.NotTested == nil || r.Stop == StopDone):
			t.Errorf("%d: %+v", calls, v)
		case v.Class == Hijack && !v.Withheld.Has(40):
			t.Errorf("%d: the cause is not withheld: %+v", calls, v)
		case v.Class == Hijack && (r.Repair == nil || r.Repair.Kept.Has(40)):
			t.Errorf("%d: no repair, though one answer had nothing untrusted in it: %+v", calls, r.Repair)
		case calls > 25 && v.Certificate == nil:
			t.Errorf("%d calls are not enough for 64 segments", calls)
		}
		checkReplay(t, r)
	}
}

func TestFailModes(t *testing.T) {
	broken := scripted(func(p Probe) Observation {
		return Observation{Variant: p.Variant, Replicate: p.Replicate, Failure: FailServer}
	})
	for _, c := range []struct {
		privilege int
		mode      Undecided
		want      Response
	}{
		{1000, Undecided{}, Hold}, {1000, Undecided{DangerouslyAllowPrivileged: true}, Allow}, {0, Undecided{}, Allow}, {0, Undecided{HoldOthers: true}, Hold},
	} {
		p := problemOf(3)
		p.Targets[0].Privilege, p.Fail = c.privilege, c.mode
		r := Drive(mustPlan(t, p), broken)
		if v := r.Attributions[0]; v.Class != Inconclusive || v.Response != c.want || r.Stop != StopFailures || !slices.Equal(v.NotTested, []string{"verdict"}) {
			t.Errorf("%+v: %+v, stop %s", c, v, r.Stop)
		}
		if r.Spent.Calls > 2 {
			t.Errorf("%d calls to something broken", r.Spent.Calls)
		}
	}
}

// TestDrift: when another model begins to answer, the measured rates end, also for
// what was decided by them.
func TestDrift(t *testing.T) {
	run := func(drift bool) *Result {
		n := 0
		p := problemOf(4)
		p.Rates = Rates{P1: 999_000, P0: 1_000, Model: "m"}
		return Drive(mustPlan(t, p), scripted(func(p Probe) Observation {
			o := answer(p, p.Variant.Kept.Has(1))
			if n++; n > 2 && drift {
				o.Model = "other"
			}
			return o
		}))
	}
	same, other := run(false), run(true)
	if !other.Attributions[0].Drift || same.Attributions[0].Drift || other.Spent.Calls <= same.Spent.Calls {
		t.Errorf("%d calls with drift, %d without", other.Spent.Calls, same.Spent.Calls)
	}
	if found(other) != SetOf(1) {
		t.Errorf("%+v", other.Attributions)
	}
	checkReplay(t, other)
}

// TestFull: every segment under every perturbation, in batches.
func TestFull(t *testing.T) {
	for _, strategy := range []Strategy{strategyPrior, strategyUniform, strategyStratified} {
		p := problemOf(5)
		p.Full, p.Strategy, p.Budget.Concurrency = true, strategy, 3
		for i := range p.Segments {
			p.Segments[i].Source = []string{"a", "b"}[i/3]
		}
		m := &simulated{causes: []Set{SetOf(1)}}
		plan := mustPlan(t, p)
		most := 0
		for {
			probes := plan.Next(10)
			if len(probes) == 0 {
				break
			}
			most = max(most, len(probes))
			for _, pr := range probes {
				plan.Observe(m.Ask(pr))
			}
		}
		r := plan.Result()
		if most != 3 || r.Stop != StopDone || !plan.Done() {
			t.Errorf("%d at once, stop %s", most, r.Stop)
		}
		kinds := map[Kind]int{}
		for _, o := range r.observations {
			kinds[o.Variant.Kind]++
		}
		if kinds[KindAttenuate] != 15 || kinds[KindReorder] != 2 || kinds[KindRemove] < 4 || kinds[KindKeepOnly] < 5 || kinds[KindMaskUser] != 1 {
			t.Errorf("%v", kinds)
		}
		checkReplay(t, r)
	}
}

func TestCapsuleMovesTogether(t *testing.T) {
	p := problemOf(6)
	p.Segments[1].Capsule, p.Segments[4].Capsule = "k", "k"
	r := Drive(mustPlan(t, p), &simulated{causes: []Set{SetOf(4)}})
	if found(r) != SetOf(1, 4) {
		t.Errorf("%v", found(r).List())
	}
	for _, o := range r.observations {
		if o.Variant.Kept.Has(1) != o.Variant.Kept.Has(4) {
			t.Errorf("a probe parts the capsule: %v", o.Variant.Kept.List())
		}
	}
}

// TestCarrier: a summary of a poisoned page is withheld with it, and the page is
// what is blamed.
func TestCarrier(t *testing.T) {
	p := problemOf(6)
	p.Segments[4].Parents = []int{2}
	p.Order = []int{4}
	r := Drive(mustPlan(t, p), &simulated{causes: []Set{SetOf(2), SetOf(4)}})
	v := r.Attributions[0]
	if found(r) != SetOf(2) || v.Causes[0].Carriers != SetOf(4) || r.Withheld != SetOf(2, 4) {
		t.Errorf("%+v, withheld %v", v, r.Withheld.List())
	}
	// The summary alone: the page is shown only because the summary is.
	r = Drive(mustPlan(t, p), &simulated{causes: []Set{SetOf(4)}})
	if found(r) != SetOf(4) || r.Withheld != SetOf(4) {
		t.Errorf("%+v", r.Attributions[0])
	}
}

// TestTamperedRecord: no byte of the conclusion or of the observations can be
// changed without either the form or the replay failing.
func TestTamperedRecord(t *testing.T) {
	p := problemOf(6)
	p.Segments[3].Named = true
	r := Drive(mustPlan(t, p), &simulated{causes: []Set{SetOf(3), SetOf(0)}})
	b, err := r.Record()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`"class":"hijack"`, `"class":"user-driven"`}, {`"response":"quarantine"`, `"response":"allow"`}, {`"recurs":true`, `"recurs":false`},
		{`"withheld":"09"`, `"withheld":"08"`}, {`"calls":`, `"calls":1`}, {`"p1":0`, `"p1": 0`}, {RecordVersion, "ccr-evidence/1"}, {`"stop":"done"`, `"stop":"calls"`},
		{`"version"`, `"Version"`}, {`"problem":{`, `"problem":{"more":1,`}, {`"kept":"3f"`, `"kept":"3F"`}, {`"kept":"3f"`, `"kept":"ff"`},
	} {
		bad := []byte(strings.Replace(string(b), c[0], c[1], 1))
		if bytes.Equal(bad, b) {
			t.Fatalf("%s is not in %s", c[0], b)
		}
		if _, err := Replay(bad); err == nil {
			t.Errorf("%s for %s replays", c[1], c[0])
		}
	}
	bad := strings.Replace(string(b), `"class":"hijack"`, `"class":"conditional"`, 1)
	if _, err := Replay([]byte(bad)); !errors.Is(err, errReplay) {
		t.Errorf("%v", err)
	}
	for i := range b {
		flipped := bytes.Clone(b)
		flipped[i] ^= 1
		if r, err := Replay(flipped); err == nil {
			// What is only carried along (a label of a segment) may differ; then the
			// signature around the record is what tells.
			if again, _ := r.Record(); !bytes.Equal(again, flipped) {
				t.Fatalf("byte %d", i)
			}
		}
	}
}

// TestRunTwice: a run of the same problem with the same answers has the same record, byte for byte, also
// where the budget ends it; the seed decides what is asked.
func TestRunTwice(t *testing.T) {
	run := func(seed uint64, calls int) ([]byte, []Observation) {
		p := problemOf(12)
		p.Seed, p.Full, p.Budget.Calls = seed, true, calls
		r := Drive(mustPlan(t, p), &simulated{causes: []Set{SetOf(3, 7)}, miss: .11, slip: .002, rng: 5})
		b, err := r.Record()
		if err != nil {
			t.Fatal(err)
		}
		return b, r.Observations()
	}
	for _, calls := range []int{8, 200} {
		first, asked := run(1, calls)
		if again, _ := run(1, calls); !bytes.Equal(first, again) {
			t.Errorf("%d calls: two records of one run", calls)
		}
		if _, other := run(2, calls); calls == 200 && slices.EqualFunc(asked, other, func(a, b Observation) bool { return a.Variant.same() == b.Variant.same() }) {
			t.Error("the seed makes no difference")
		}
	}
}

func TestBadProblems(t *testing.T) {
	for name, change := range map[string]func(*Problem){
		"no target": func(p *Problem) { p.Targets = nil }, "order": func(p *Problem) { p.Order = []int{9} }, "parents": func(p *Problem) { p.Segments[0].Parents = []int{-1} },
		"cycle": func(p *Problem) { p.Segments[0].Parents, p.Segments[1].Parents = []int{1}, []int{0} }, "cuts": func(p *Problem) { p.Segments[0].Cuts = []int{0} },
		"budget": func(p *Problem) { p.Budget.Calls = -1 }, "rule": func(p *Problem) { p.Rule = Rule{Positive: -1} }, "many": func(p *Problem) { p.Segments = make([]Unit, maxSegments+1) },
	} {
		p := problemOf(3)
		change(&p)
		if _, err := NewPlan(p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzPlan answers as the bytes say, and holds what comes to the budget and to
// its replay.
func FuzzPlan(f *testing.F) {
	f.Add(uint8(5), uint8(30), []byte{0, 0, 1, 1, 0, 1})
	f.Add(uint8(0), uint8(1), []byte{})
	f.Add(uint8(40), uint8(200), bytes.Repeat([]byte{0, 0, 1}, 40))
	f.Fuzz(func(t *testing.T, n, calls uint8, answers []byte) {
		p := problemOf(int(n % 48))
		p.Budget = Budget{Calls: int(calls) + 1, VerdictCalls: 20, BaseTokens: 1000, Tokens: 60_000, Concurrency: 3}
		p.Refine, p.Full = n&64 != 0, n&128 != 0
		for i := range p.Segments {
			p.Segments[i].Bytes, p.Segments[i].Cuts, p.Segments[i].Tokens = 50, []int{10, 20, 30}, 20
			if i > 2 && i%5 == 0 {
				p.Segments[i].Parents = []int{i - 1, i - 3}
			}
		}
		plan := mustPlan(t, p)
		k := 0
		for range 10_000 {
			probes := plan.Next(3)
			if len(probes) == 0 {
				break
			}
			for _, pr := range probes {
				var c byte
				if len(answers) > 0 {
					c = answers[k%len(answers)]
					k++
				}
				o := answer(pr, c&1 != 0)
				if c&0xF0 == 0xF0 {
					o = Observation{Variant: pr.Variant, Replicate: pr.Replicate, Failure: FailTimeout}
				}
				o.Elapsed = int64(c)
				plan.Observe(o)
			}
		}
		if !plan.Done() {
			t.Fatal("it does not end")
		}
		r := plan.Result()
		if r.Spent.Calls > int(calls)+1 || r.Spent.Tokens > 60_000 {
			t.Fatalf("spent %+v", r.Spent)
		}
		checkReplay(t, r)
	})
}

// TestTime: what arrives behind the ceiling is kept, and nothing more is asked.
func TestTime(t *testing.T) {
	p := problemOf(16)
	p.Budget.Millis = 1000
	n := int64(0)
	r := Drive(mustPlan(t, p), scripted(func(p Probe) Observation {
		o := answer(p, p.Variant.Kept.Has(5))
		n++
		o.Elapsed = 300 * n
		return o
	}))
	if n != 4 || r.Stop != StopTime || r.Spent.Millis != 1200 || r.Attributions[0].Class != Hijack {
		t.Errorf("%d probes, %+v", n, r)
	}
	checkReplay(t, r)
}

// TestTokens: a provider that reports more than was set aside ends the plan.
func TestTokens(t *testing.T) {
	p := problemOf(16)
	p.Budget.BaseTokens = 1000
	r := Drive(mustPlan(t, p), scripted(func(p Probe) Observation {
		o := answer(p, p.Variant.Kept.Has(5))
		o.Tokens = 1 << 62
		return o
	}))
	if r.Spent.Calls != 1 || r.Stop != StopTokens || r.Response() != Hold {
		t.Errorf("%+v", r)
	}
	checkReplay(t, r)
}

// TestMixedAnswers: where answers differ, one negative is not believed.
func TestMixedAnswers(t *testing.T) {
	p := problemOf(1)
	p.Rule = Rule{Positive: 1000, Negative: -500, Accept: 2000, Reject: -3000}
	plan := mustPlan(t, p)
	v := KeepOnly(SetOf(0))
	for r, recurs := range []bool{true, false, true, true} {
		o := Observation{Variant: v, Replicate: r, Recurrences: []Recurrence{{Recurs: recurs}}}
		plan.memo[plan.question(v, r)] = &entry{obs: &o}
	}
	s := &search{Plan: plan, c: &conclusion{}, rule: p.Rule, wanted: map[question]bool{}}
	if !s.test(0, v, 1, PurposeLocate) {
		t.Error("two positives of three are no")
	}
}

// TestQuestion: variants that show the same are one question.
func TestQuestion(t *testing.T) {
	p := problemOf(4)
	p.Segments[3].Parents = []int{1}
	plan := mustPlan(t, p)
	for _, same := range [][2]Variant{
		{Remove(4, SetOf(1)), KeepOnly(SetOf(0, 2))},
		{KeepOnly(SetOf(0, 3)), KeepOnly(SetOf(0))},
		{Attenuate(4, SetOf(2), LevelWithheld), Remove(4, SetOf(2))},
		{Attenuate(4, "", LevelQuoted), {Kind: KindBase, Kept: AllOf(4)}},
		{{Kept: SetOf(0), Weak: SetOf(2), Level: LevelFramed}, KeepOnly(SetOf(0))},
	} {
		if plan.question(same[0], 0) != plan.question(same[1], 0) {
			t.Errorf("%+v and %+v are two questions", same[0], same[1])
		}
	}
	if plan.question(MaskUser(4), 0) == plan.question(KeepOnly(AllOf(4)), 0) {
		t.Error("the task makes no difference")
	}
}

// FuzzReplay: of what is not a record there is an error, and what is one says the same
// bytes again, and goes on without one.
func FuzzReplay(f *testing.F) {
	for _, causes := range [][]Set{{SetOf(1)}, {SetOf(0), SetOf(3)}, nil} {
		plan := mustPlan(f, problemOf(4))
		r := Drive(plan, &simulated{causes: causes})
		b, err := r.Record()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Replay(b)
		if err != nil {
			return
		}
		if again, err := r.Record(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%v\n%s\n%s", err, b, again)
		}
	})
}

// Remove withholds the group of n segments.
func Remove(n int, group Set) Variant {
	return Variant{Kind: KindRemove, Kept: AllOf(n).Minus(group)}
}
