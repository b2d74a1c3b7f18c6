// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A spoken call is what events have said of a call before the response does in which they
// end. Some clients act on these.
type spoken struct {
	at    int64    // output_index
	began *pending // as it was announced; nil: it was not
	whole *pending // as it was done; nil: it was not
}

// speak takes in a call that is announced or done.
func (r *responsesReading) speak(v, item strictjson.Value, done bool) {
	name := item.Get("name").Text()
	arguments := item.Get("arguments").Text() + item.Get("input").Text()
	s := r.spokenAt(v)
	if s == nil || !done || s.whole != nil {
		if len(r.spoken) == maxCalls {
			r.odd()
			return
		}
		s = &spoken{at: int64(len(r.spoken))}
		if i, ok := v.Get("output_index").Int64(); ok {
			s.at = i
		}
		r.spoken = append(r.spoken, s)
	}
	if !done {
		s.began = r.call(item.Get("call_id").Text(), name)
		r.argue(s.began, arguments)
		return
	}
	s.whole = &pending{id: strings.Clone(item.Get("call_id").Text()), name: strings.Clone(name)}
	r.argue(s.whole, arguments)
	r.held = r.held || r.policy.Privilege(name) > 0
}

// spokenAt is the call that an event is about: the last one, if it does not say.
func (r *responsesReading) spokenAt(v strictjson.Value) *spoken {
	i, said := v.Get("output_index").Int64()
	for _, s := range slices.Backward(r.spoken) {
		if !said || s.at == i {
			return s
		}
	}
	return nil
}

// piece takes in a piece of the arguments of a call, or all of them.
func (r *responsesReading) piece(v, arguments strictjson.Value, all bool) part {
	s := r.spokenAt(v)
	switch {
	case s == nil || s.began == nil:
		return r.odd()
	case !all:
		r.argue(s.began, arguments.Text())
	case s.began.arguments.Len() == 0:
		r.argue(s.began, arguments.Text())
	case s.began.arguments.String() != arguments.Text() && r.held:
		return r.odd()
	}
	return r.part(partShown)
}

// agree checks that the response proposes the calls that the events before it did, where
// one of them is privileged: what is tested must be what any client takes the answer for.
// A response that repeats nothing of its output is made whole.
func (r *responsesReading) agree() {
	a := r.last
	a.strange, a.fetched = a.strange || r.strange, a.fetched || r.fetched
	if !r.held || len(r.spoken) == 0 {
		return
	}
	var calls []counterfactual.Call
	slices.SortStableFunc(r.spoken, func(x, y *spoken) int { return cmp.Compare(x.at, y.at) })
	for _, s := range r.spoken {
		if s.whole == nil {
			a.strange = true
			continue
		}
		arguments := s.whole.arguments.String()
		if b := s.began; b != nil && (b.name != s.whole.name || b.arguments.Len() > 0 && b.arguments.String() != arguments) {
			a.strange = true
		}
		calls = append(calls, counterfactual.Call{ID: s.whole.id, Name: s.whole.name, Arguments: []byte(arguments)})
	}
	if a.bare {
		a.said.Calls, a.said.Text = calls, r.text.String()
	}
	a.strange = a.strange || !slices.EqualFunc(calls, a.said.Calls, func(x, y counterfactual.Call) bool {
		return x.Name == y.Name && string(x.Arguments) == string(y.Arguments)
	})
}
