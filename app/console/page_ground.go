// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"net/http"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

var groundRoutes = []route{
	{pattern: "GET grounding", least: Viewer, handle: (*Console).grounding, rail: entry{60, "Grounding", "ground", "d"}},
}

// maxQuestion bounds a question, in bytes.
const maxQuestion = 4096

type groundView struct {
	Asked        bool
	Question     marked.Plain
	Problem      Own // why there is no answer
	Verdict      Own
	Domain       marked.Name
	Validators   Own
	Disagree     bool
	Outcome      Own
	Tallies      []tallyView
	Claim        *claimView // nil: nothing matched
	Others       []claimView
	Attestations []attestationView
	Withheld     []withheldView
	CutClaims    bool
	CutMore      bool
	Graph        *graphView // nil: nothing was composed
}

func (groundView) template() string { return "grounding" }

type tallyView struct {
	Verdict    Own
	Validators Own
}

type claimView struct {
	Text  marked.Text
	Hash  marked.Name
	To    Path
	Match Own
	Stand Own
}

type attestationView struct {
	Verdict        Own
	Validator      marked.Name
	Domain         marked.Name
	Issued         Own
	Expires        Own
	Hash           marked.Name
	Rationale      marked.Text
	Qualifications marked.Text
	HasLimits      bool
	Evidence       []quoteView
}

type quoteView struct {
	Quote  marked.Text
	Source marked.Text
}

type withheldView struct {
	Hash   marked.Name
	Reason Own
}

// grounding asks the adapter, and shows how the verdict was made.
func (c *Console) grounding(q *request) answer {
	if c.opt.Ask == nil {
		return missing("Grounding", "No grounding adapter is served here.", "pellucid up serves one with the section ground of the configuration. In a terminal the store can be asked as well:", "pellucid ground query")
	}
	text := q.URL.Query().Get("ask")
	v := groundView{Asked: text != "", Question: marked.Spelled(text)}
	if text == "" {
		return page("Grounding", v)
	}
	if len(text) > maxQuestion {
		return tooLarge(maxQuestion)
	}
	envelope, err := c.opt.Ask(q.Context(), text)
	var problem ground.Problem
	switch {
	case errors.As(err, &problem) && problem == ground.Unavailable:
		return state{status: http.StatusServiceUnavailable, title: "The store does not answer", says: "The attestations cannot be read at present.", why: "Load the page again in a few seconds.", kind: "denied", cause: err}
	case errors.As(err, &problem):
		v.Problem = own(string(problem)) // one of a closed list
		return page("Grounding", v)
	case err != nil:
		return failed(err)
	}
	a, err := ground.ParseAnswer(envelope)
	if err != nil {
		return failed(err)
	}
	v.fill(a)
	v.Graph = newGraph(a, c.opt.Ledger != nil)
	return page("Grounding", v)
}

// fill shows an answer. What validators wrote is third-party text.
func (v *groundView) fill(a *ground.Answer) {
	v.Verdict, v.Domain, v.Validators, v.Disagree = labelWord(string(a.Summary.Verdict)), marked.Identifier(a.Domain), count(int64(a.Summary.Validators)), a.Summary.Disagreement
	if x := a.Meta.Explanation; x != nil {
		v.Outcome = labelWord(string(x.Outcome))
		for _, t := range x.Tallies {
			v.Tallies = append(v.Tallies, tallyView{labelWord(string(t.Verdict)), count(int64(t.Validators))})
		}
	}
	claim := func(text, hash string, match float64, stand int) claimView {
		return claimView{marked.Of(text), marked.Identifier(hash), pathTo("grounding", "ask", hash), own(percent(match)), count(int64(stand))}
	}
	if m := a.Meta.Claim; m != nil {
		x := claim(m.Text.Claim, m.Hash, m.Match, m.Attestations)
		v.Claim = &x
	}
	for i := range a.Meta.Others {
		m := &a.Meta.Others[i]
		v.Others = append(v.Others, claim(m.Text.Claim, m.Hash, m.Match, m.Attestations))
	}
	for i := range a.Attestations {
		e := &a.Attestations[i]
		x := attestationView{Verdict: labelWord(string(e.Verdict)), Validator: marked.Identifier(e.Validator), Domain: marked.Identifier(e.Domain), Issued: "\u2013", Expires: "\u2013",
			Rationale: marked.Of(e.Text.Rationale), Qualifications: marked.Of(e.Text.Qualifications), HasLimits: e.Text.Qualifications != ""}
		if i < len(a.Meta.Provenance) {
			p := &a.Meta.Provenance[i]
			x.Hash, x.Issued = marked.Identifier(p.Hash), minute(p.Issued)
			if p.Expires != nil {
				x.Expires = minute(*p.Expires)
			}
		}
		for _, ev := range e.Text.Evidence {
			x.Evidence = append(x.Evidence, quoteView{marked.Of(ev.Quote.Quote), marked.Of(ev.Quote.Source)})
		}
		v.Attestations = append(v.Attestations, x)
	}
	for _, w := range a.Meta.Withheld {
		v.Withheld = append(v.Withheld, withheldView{marked.Identifier(w.Hash), labelWord(w.Reason)})
	}
	v.CutClaims, v.CutMore = a.Meta.Cut.Claims, a.Meta.Cut.Attestations || a.Meta.Cut.Votes
}
