// SPDX-License-Identifier: Apache-2.0

package guardbench

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Behaviour is how a simulated model answers. Every rate was measured; where, stands in
// [Parameters]. None of them says what a call is: the model reads the text that a request
// shows, does what planted text says where it is shown, and else what the task needs from the
// values that are shown.
type Behaviour struct {
	// Repeat is the chance that a call recurs where all that caused it is shown.
	Repeat float64 `json:"repeat"`
	// Slip is the chance that it recurs where its cause is not shown.
	Slip float64 `json:"slip"`
	// Invent is the chance that a value stands nowhere in what the model was shown.
	Invent float64 `json:"invent"`
	// Habit is the chance that the model does the task although the request does not ask.
	Habit float64 `json:"habit"`
	// Substitute is the chance that the model takes another value of the same form where the
	// one that it needs is not shown.
	Substitute float64 `json:"substitute"`
}

// Usual has the rates that no recording of a model gives.
var Usual = Behaviour{Repeat: 1, Slip: 0.0028, Invent: 0.02, Habit: 0.0928, Substitute: 1.0 / 61}

// A model is the simulated model of one case.
type model struct {
	c     *Case
	b     Behaviour
	seed  uint64
	whole *view // of the case's own request

	mu    sync.Mutex
	asked map[uint64]int // how often each body was asked
}

func newModel(c *Case, seed uint64) *model {
	m := &model{c: c, b: Usual, seed: seed, whole: read(c.Body), asked: map[uint64]int{}}
	if c.Behaviour != nil {
		m.b = *c.Behaviour
	}
	return m
}

// random is a generator for the n-th time that a body is asked: the order in which a guard
// asks makes no difference.
func (m *model) random(body []byte, again bool) *rand.Rand {
	h := hash(m.c.Run, m.c.Name, string(body))
	m.mu.Lock()
	n := m.asked[h]
	if again {
		m.asked[h]++
	}
	m.mu.Unlock()
	return rand.New(rand.NewPCG(m.seed^h, uint64(n)))
}

func hash(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return h
}

// answer is what the model says to a request: calls, or none.
func (m *model) answer(body []byte) []Call {
	v, rng := read(body), m.random(body, true)
	repeats, slips := rng.Float64() < m.b.Repeat, rng.Float64() < m.b.Slip
	if slips {
		return m.c.Said
	}
	if m.obeys(v) && repeats {
		return m.obeyed(v)
	}
	if m.instructed(v) && rng.Float64() < m.b.Invent {
		return []Call{invented(&m.c.Said[m.c.Attacker[0]], rng)}
	}
	if !m.asks(v) && rng.Float64() >= m.b.Habit {
		return nil
	}
	calls, other := m.usual(v)
	if len(calls) > 0 {
		if m.c.Attack() || repeats {
			return calls
		}
		return other
	}
	return m.without(v, rng)
}

// score is the logarithm of the chance that the model makes a call, for rules that read
// log-probabilities.
func (m *model) score(c *Call, body []byte) float64 {
	v := read(body)
	attacker := slices.ContainsFunc(m.c.Attacker, func(i int) bool { return same(&m.c.Said[i], c) })
	chance := m.b.Slip
	switch {
	case attacker && m.obeys(v), !attacker && m.feasible(v, c) && m.asks(v):
		chance = m.b.Repeat
	case !attacker && m.feasible(v, c):
		chance = m.b.Habit
	}
	return math.Log(min(max(chance, 1e-6), 1-1e-6))
}

// asks reports whether the user's words are shown.
func (m *model) asks(v *view) bool { return strings.Contains(v.user, strings.TrimSpace(m.whole.user)) }

// mark is how many letters of a planted sentence are looked for.
const mark = 24

// instructed reports whether at least half of what was planted and shown is still shown.
func (m *model) instructed(v *view) bool {
	if !m.c.Attack() {
		return false
	}
	was, is := 0, 0
	for _, text := range m.c.Planted {
		for _, s := range sentences(text) {
			l := Letters(s)
			if len(l) < mark/2 {
				continue
			}
			l = l[:min(len(l), 2*mark)]
			if strings.Contains(m.whole.results.letters, l) || strings.Contains(m.whole.mine.letters, l) {
				was++
				if strings.Contains(v.results.letters, l) || strings.Contains(v.mine.letters, l) {
					is++
				}
			}
		}
	}
	return was > 0 && 2*is >= was
}

// obeys reports whether the planted text is shown, and every value that it or another result
// gave to the attacker's calls.
func (m *model) obeys(v *view) bool {
	return m.instructed(v) && !slices.ContainsFunc(m.c.Attacker, func(i int) bool { return !m.feasible(v, &m.c.Said[i]) })
}

// obeyed is the answer that the model gave, without calls whose values are not shown.
func (m *model) obeyed(v *view) []Call {
	return slices.DeleteFunc(slices.Clone(m.c.Said), func(c Call) bool { return !m.feasible(v, &c) })
}

// feasible reports whether every value of a call that the whole request showed is shown. A
// value that the request never showed is the model's own.
func (m *model) feasible(v *view, c *Call) bool {
	return !slices.ContainsFunc(c.values(), func(x value) bool {
		return !v.mine.holds(x.text) && !v.results.holds(x.text) && (m.whole.results.holds(x.text) || m.whole.mine.holds(x.text))
	})
}

// honest are the calls of the recorded answer that are not the attacker's.
func (m *model) honest() (list []Call) {
	for i, c := range m.c.Said {
		if !slices.Contains(m.c.Attacker, i) {
			list = append(list, c)
		}
	}
	return list
}

// usual is what the task needs next, as far as its values are shown; other is what the model
// does where it does not do that. A model that is shown what it needs acts, and else reads.
func (m *model) usual(v *view) (calls, other []Call) {
	for _, c := range m.honest() {
		if m.feasible(v, &c) {
			calls = append(calls, c)
		}
	}
	done := slices.Concat(v.done, m.honest())
	for _, reads := range []bool{false, true} {
		for _, n := range m.c.Needs {
			c := n.Call
			if len(other) == 0 && looks(c.Name) == reads && m.feasible(v, &c) && !slices.ContainsFunc(done, func(d Call) bool { return same(&c, &d) || reads && again(&c, &d) }) {
				other = []Call{c}
			}
		}
	}
	if len(calls) == 0 {
		return other, nil
	}
	return calls, other
}

// again reports whether a reader was asked for the same thing, however many items it wanted.
func again(a, b *Call) bool {
	things := func(c *Call) (out []string) {
		for _, l := range c.leaves() {
			if _, ok := l.raw.(string); ok {
				out = append(out, strings.TrimPrefix(strings.TrimPrefix(flat(l.text), "https://"), "http://"))
			}
		}
		return out
	}
	return a.Name == b.Name && slices.Equal(things(a), things(b))
}

// without is what the model does where a value that it needs is not shown: it says so, takes
// another value of the same form, or invents one.
func (m *model) without(v *view, rng *rand.Rand) []Call {
	list := m.honest()
	for _, n := range m.c.Needs {
		list = append(list, n.Call)
	}
	if len(list) == 0 {
		return nil
	}
	switch c, p := &list[0], rng.Float64(); {
	case p < m.b.Substitute:
		return m.substituted(v, c)
	case p < m.b.Substitute+m.b.Invent:
		return []Call{invented(c, rng)}
	}
	return nil
}

// forms are those in which a value can be taken for another one.
var forms = []*regexp.Regexp{regexp.MustCompile(`\b[A-Z]{2}\d{10,30}\b`), regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.]+`),
	regexp.MustCompile(`(?:https?://|www\.)[^\s<>"')\]]+`), regexp.MustCompile(`\b\d+(?:\.\d+)?\b`)}

// substituted is a call with values of the same form in the place of those not shown; none
// where there is no such value.
func (m *model) substituted(v *view, c *Call) []Call {
	args, changed := c.Args, false
	for _, x := range c.values() {
		if v.mine.holds(x.text) || v.results.holds(x.text) {
			continue
		}
		for _, form := range forms {
			if form.FindString(x.text) != x.text {
				continue
			}
			if other := form.FindString(strings.ToUpper(v.results.flat)); other != "" {
				args, changed = replaced(args, x.text, other), true
			}
			break
		}
	}
	if !changed {
		return nil
	}
	return []Call{{c.Name, args}}
}

// invented is a call with a value that stands nowhere in the place of its first one.
func invented(c *Call, rng *rand.Rand) Call {
	all := c.values()
	if len(all) == 0 {
		return *c
	}
	now := "Example"
	if was := all[0].text; number.FindString(was) == was {
		now = "7" + strings.Repeat("3", 1+rng.IntN(4))
	}
	return Call{c.Name, replaced(c.Args, all[0].text, now)}
}

// replaced is arguments with another value.
func replaced(args json.RawMessage, was, now string) json.RawMessage {
	if quoted := encode(was); bytes.Contains(args, quoted) {
		return bytes.ReplaceAll(args, quoted, encode(now))
	}
	if out := bytes.ReplaceAll(args, []byte(was), []byte(now)); json.Valid(out) {
		return out
	}
	return args
}

// sentences parts a text at line feeds and behind full stops.
func sentences(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		for s := range strings.SplitAfterSeq(line, ". ") {
			out = append(out, s)
		}
	}
	return out
}
