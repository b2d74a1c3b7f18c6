// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Problem is what a Plan needs to know of the assembly to explain the targets. Rates,
// budget and the like are the caller's to fill in; baseTokens is what the base
// request and its answer cost, 0 if that is not known.
func (a *Assembly) Problem(targets []Proposal, baseTokens int64) Problem {
	p := Problem{Assembly: a.id, Segments: make([]Unit, len(a.Segments))}
	p.Budget.BaseTokens = cmp.Or(baseTokens, int64(len(a.src)+2)/3)
	twins, parents := a.Twins(), a.parents()
	task := " " + strings.Join(words(squeeze(cutValue(a.Task))), " ") + " "
	control := make([]int, len(a.Segments)) // sentences that sound like it
	for i := range a.Segments {
		s := &a.Segments[i]
		u := Unit{
			ID: s.ID, Digest: s.Digest.String(), Source: s.Source.Label(), Trust: s.Trust, Capsule: s.Capsule,
			Parents: parents[i], Twins: twins[i], Named: s.named(task), Bytes: len(s.Text),
		}
		// A token is at least three bytes of most texts; the base request says better.
		u.Tokens = int(p.Budget.BaseTokens * int64(len(s.Text)) / int64(max(len(a.src), 1)))
		ends, n := walk(s.Text)
		control[i] = n
		if a.single(i) {
			u.Cuts = ends
		}
		p.Segments[i] = u
	}
	given := &vocabulary{text: a.Task + "\n" + a.Instructions}
	for i := range targets {
		t := &targets[i]
		out := Target{Digest: t.Digest(), Tool: frame.Label(t.Tool), Privilege: t.Privilege, UserGiven: len(t.Critical) > 0}
		for _, arg := range t.Critical {
			out.Critical = append(out.Critical, frame.Label(arg.Path))
			out.UserGiven = out.UserGiven && given.holds(arg.Value)
		}
		p.Targets = append(p.Targets, out)
	}
	p.Order = a.suspicion(targets, control)
	return p
}

// named reports whether the user's task names where the segment came from: a word
// of the tool's name that is no verb for reading, or a word of what the agent asked
// the tool for.
func (s *Segment) named(task string) bool {
	list := words(s.Source.Origin.Tool)
	if len(s.Call) <= maxValue {
		list = append(list, words(s.Call)...)
	}
	for _, w := range list {
		if len(w) >= 4 && !readVerbs()[w] && !strings.Contains(stopWords, " "+w+" ") &&
			(strings.Contains(task, " "+w+" ") || strings.Contains(task, " "+strings.TrimSuffix(w, "s")+" ")) {
			return true
		}
	}
	return false
}

// suspicion orders the segments by how likely they are to have caused the targets:
// by how many of their arguments stand in the text, how much of it sounds like
// control, how late it came, and how little its source is trusted. It costs no call
// and decides nothing.
func (a *Assembly) suspicion(targets []Proposal, control []int) []int {
	n := len(a.Segments)
	score := make([]int, n)
	values := distinctive(targets)
	for i := range a.Segments {
		text := plainWords(a.Segments[i].Text)
		for _, v := range values {
			if strings.Contains(text, v) {
				score[i] += 2000 / len(values)
			}
		}
		score[i] += 60*min(control[i], 10) + 500*(i+1)/n + (1000-a.Segments[i].Trust)/2
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(score[j], score[i]) })
	return order
}

// distinctive are the values of targets that are worth looking for in a text.
func distinctive(targets []Proposal) []string {
	const most = 32
	var out []string
	for i := range targets {
		for _, list := range [][]Argument{targets[i].Critical, targets[i].Free} {
			for _, a := range list {
				v := a.Value
				if len(v) > 2 && v[1] == ':' {
					v = v[2:]
				}
				if v = plainWords(v[:min(len(v), 64)]); len(v) >= 3 && len(out) < most && !slices.Contains(out, v) {
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// plainWords is text in ASCII lower case without anything but letters, digits and
// what is not ASCII.
func plainWords(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		if c := letter(text[i]); c != 0 {
			out = append(out, c)
		}
	}
	return string(out)
}

// walk is one pass over a text: where a span of it may begin or end, and how many
// sentences of its beginning sound like control. A text of line feeds alone has as many
// sentences as bytes; it takes a second pass, and no list of all of them.
func walk(text string) (cuts []int, control int) {
	const most = 64 // sentences, and so many bytes
	const listed = 1 << 14
	at, seen, all := 0, 0, 0
	for s := range sentences(text) {
		if seen < most && at < 1<<13 {
			seen++
			if soundsLikeControl(s) {
				control++
			}
		}
		if at += len(s); at < len(text) {
			if all++; all <= listed {
				cuts = append(cuts, at)
			}
		}
	}
	if all <= listed {
		return coarser(cuts), control
	}
	step, n := coarseness(all), 0
	cuts, at = cuts[:0], 0
	for s := range sentences(text) {
		if at += len(s); at == len(text) {
			break
		}
		if n++; n%step == 0 {
			cuts = append(cuts, at)
		}
	}
	return cuts, control
}
