// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
)

// A readView is a segment of what the model has read, by how much it moved the model.
type readView struct {
	N      Own
	Source marked.Name
	Text   marked.Text
	Cut    Own // how long it is, where its end is not kept; "": all of it is there
	Hint   Own // as of a segmentView; "": it was not tested
	Effect Own // "\u2013": it was not tested
}

// A probeView is one question to the model, and what came of it.
type probeView struct {
	N       Own
	Does    Own
	Without Own
	Came    Own
	Tokens  Own // "\u2013": not known
	At      Own
}

// Bounds of what the page shows of a decision.
const (
	maxRead    = 200
	maxReadLen = 8 << 10
	maxProbes  = 200
)

// context fills what the model has read, where it is kept with the held call. It is held text: only who decides about the call sees it.
func (v *guardedView) context(c *Console, it *hold.Item) {
	if !v.MayDecide || c.opt.Sealer == nil {
		return
	}
	a := review.Ask(it, c.opt.Sealer, "")
	if a.Question == nil || len(a.Context) == 0 {
		v.ReadNo = own(a.Why)
		return
	}
	list, err := guard.ReadContext(a.Context)
	if err != nil {
		v.ReadNo = "damaged: it cannot be read"
		return
	}
	if v.ReadMore = len(list) > maxRead; v.ReadMore {
		list = list[:maxRead]
	}
	for n := range list {
		s := &list[n]
		x := readView{N: own(fmt.Sprintf("s%d", n)), Source: marked.Identifier(s.Source), Text: marked.Of(s.Text[:min(len(s.Text), maxReadLen)]), Effect: unknown}
		if shown := min(len(s.Text), maxReadLen); s.Bytes > shown {
			x.Cut = size(int64(s.Bytes))
		}
		v.Read = append(v.Read, x)
	}
}

// weigh colours what the model has read by the search that tested it. Where several did, the strongest effect counts.
func (v *guardedView) weigh(runs []*counterfactual.Result) {
	strongest := make([]int, len(v.Read))
	for _, r := range runs {
		for n, f := range r.Influence {
			if n >= len(v.Read) || f.Shown == 0 || f.Hidden == 0 {
				continue
			}
			if x := &v.Read[n]; x.Hint == "" || max(f.Effect, -f.Effect) > max(strongest[n], -strongest[n]) {
				strongest[n], x.Hint, x.Effect = f.Effect, influenceClass(f.Effect), effect(f.Effect)
			}
		}
	}
}

// newProbes are the questions of a search about so many segments, in the order of their answers.
func newProbes(list []counterfactual.Observation, segments int) (out []probeView, more bool) {
	for i := range list[:min(len(list), maxProbes)] {
		o := &list[i]
		x := probeView{N: count(int64(i + 1)), Does: labelWord(string(o.Variant.Kind)), Without: "nothing", Came: "the call does not recur", Tokens: unknown, At: lasts(time.Duration(o.Elapsed) * time.Millisecond)}
		var left []int
		for n := range segments {
			if !o.Variant.Kept.Has(n) {
				left = append(left, n)
			}
		}
		if len(left) > 0 {
			x.Without = segmentList(left)
		}
		if o.Tokens > 0 {
			x.Tokens = count(o.Tokens)
		}
		switch {
		case o.Failure != counterfactual.FailNone:
			x.Came = "no answer: " + labelWord(string(o.Failure))
		case o.Refused:
			x.Came = "the model refused"
		default:
			for _, one := range o.Recurrences {
				if one.Recurs {
					x.Came = "the call recurs"
				}
			}
		}
		out = append(out, x)
	}
	return out, len(list) > maxProbes
}
