// SPDX-License-Identifier: Apache-2.0

package console

import (
	"github.com/pellucid-mcp/pellucid/app/backtest"
	"github.com/pellucid-mcp/pellucid/app/console/marked"
	decide "github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

var policyRoutes = []route{
	{pattern: "GET policy", least: Viewer, handle: (*Console).policyPage, rail: entry{70, "Policy", "policy", "p"}},
	{pattern: "POST policy/backtest", least: Reviewer, handle: (*Console).backtest, body: maxTrial + 4096},
	{pattern: "GET policy/backtest/{trial}", least: Reviewer, handle: (*Console).trialState},
}

// maxTrial bounds the rules that are tried, in bytes.
const maxTrial = 256 << 10

type policyView struct {
	Known      bool // the rules in force
	Version    Own
	Rules      []ruleView
	Holds      []holdView
	Exceptions []exceptionView
	CanTry     bool
	MayTry     bool
	Tried      *triedView
}

func (policyView) template() string { return "policy" }

type ruleView struct {
	Name       marked.Name
	On, Then   Own
	When       marked.Text
	Unless     marked.Text
	HasUnless  bool
	From       marked.Name
	FromPreset bool
	Audit      bool
}

type holdView struct {
	Server, Tool marked.Name
	AllTools     bool
	Codes        []Own
}

type exceptionView struct {
	Server, Tool marked.Name
	AllTools     bool
	Code, Until  Own
	Why          marked.Text
	By           *marked.Name // the reviewer who granted it; nil: it stands in the configuration
	This         bool         // for one result only
}

// A triedView is the outcome of a backtest.
type triedView struct {
	Gone         bool // it is not kept any more
	Runs         bool // it has not ended; then only Typed and what follows here is set
	Done, Size   Own  // records
	State, Here  Path // where a script asks how far it is, and the page itself
	Problem      marked.Text
	Failed       bool
	Typed        marked.Text
	Calls        Own
	Held, Only   Own
	Denied       Own
	DeniedOnly   Own
	Passes       Own
	NotEvaluable Own
	Watched      Own
	Captured     Own // "": no capture was asked for a size
	Sealed       Own
	Span         Own
	Cut          Own // "": every record was read
	Tables       []triedTable
}

type triedTable struct {
	Title Own
	Rows  []triedRow
	More  Own // "": all rows are there
}

type triedRow struct {
	N, Only      Own
	Server, Tool marked.Name
	By           marked.Name
	Action       Own
	Lacks        marked.Name
	HasLacks     bool
	Examples     []exampleView
}

type exampleView struct {
	To Path
	ID marked.Name
}

// policyPage is the page with the backtest that its address names, where it is the person's.
func (c *Console) policyPage(q *request) answer {
	name := q.URL.Query().Get("trial")
	if name == "" {
		return c.policyWith(q, nil)
	}
	t := c.trials.of(name, q.who)
	if t == nil {
		return c.policyWith(q, &triedView{Gone: true})
	}
	return c.policyWith(q, t.shown())
}

// policyWith is the page with the outcome of a backtest; nil: without one.
func (c *Console) policyWith(q *request, tried *triedView) answer {
	v := c.policyOf(q)
	v.Tried = tried
	if c.opt.Exceptions != nil {
		list, err := c.opt.Exceptions.List(q.Context(), false)
		if err != nil {
			return failed(err)
		}
		for i := range list {
			if e := &list[i]; q.who.Sees(e.Server) && c.opt.Exceptions.Counts(e, q.now) {
				by := marked.Identifier(e.By)
				v.Exceptions = append(v.Exceptions, exceptionView{Server: marked.Identifier(e.Server), Tool: marked.Identifier(e.Tool), AllTools: e.Tool == "",
					Code: codeName(e.Code), Until: minute(e.Until), Why: marked.Of(e.Why), By: &by, This: e.Digest != hold.Digest{}})
			}
		}
	}
	return page("Policy", v)
}

// policyOf is the page without a backtest.
func (c *Console) policyOf(q *request) policyView {
	v := policyView{CanTry: c.opt.Ledger != nil, MayTry: q.who.Role >= Reviewer}
	if c.opt.Rules == nil {
		return v
	}
	r := c.opt.Rules()
	if r == nil {
		return v
	}
	v.Known, v.Version = true, own(r.Version())
	for _, x := range r.Policy.Listed() {
		v.Rules = append(v.Rules, ruleView{Name: marked.Identifier(x.Name), On: direction(x.On), Then: own(x.Then.String()), When: marked.Of(x.When),
			Unless: marked.Of(x.Unless), HasUnless: x.Unless != "", From: marked.Identifier(x.Preset), FromPreset: x.Preset != "", Audit: x.Audit})
	}
	for _, h := range r.Holdings() {
		if !q.who.Sees(h.Server) {
			continue
		}
		x := holdView{Server: marked.Identifier(h.Server), Tool: marked.Identifier(h.Tool), AllTools: h.Tool == ""}
		for _, code := range h.Codes {
			x.Codes = append(x.Codes, codeName(code))
		}
		v.Holds = append(v.Holds, x)
	}
	for _, e := range r.ListedExceptions() {
		if q.who.Sees(e.Server) {
			v.Exceptions = append(v.Exceptions, exceptionView{Server: marked.Identifier(e.Server), Tool: marked.Identifier(e.Tool), AllTools: e.Tool == "",
				Code: codeName(e.Code), Until: minute(e.Until), Why: marked.Of(e.Why)})
		}
	}
	return v
}

func direction(d decide.Direction) Own {
	if d == decide.Call {
		return "call"
	}
	return "result"
}

func (v *triedView) fill(r *backtest.Report) {
	v.Calls, v.Held, v.Only, v.Denied, v.DeniedOnly = count(r.Calls), count(r.Held.N), count(r.Held.Only), count(r.Denied.N), count(r.Denied.Only)
	v.Passes, v.NotEvaluable, v.Watched = count(r.Passes), count(r.NotEvaluable), count(r.Watched)
	if r.Captured > 0 || r.Sealed > 0 {
		v.Captured, v.Sealed = count(r.Captured), count(r.Sealed)
	}
	if r.First != "" {
		v.Span = own(r.First + " to " + r.Last)
	}
	for _, t := range []struct {
		title Own
		rows  []backtest.Row
	}{{"Would have been held or refused", r.Rows}, {"Would pass, and did not", r.Passing}, {"Not evaluable: the rule needs what no record has", r.Unknown}} {
		if len(t.rows) == 0 {
			continue
		}
		out := triedTable{Title: t.title}
		for i, row := range t.rows {
			if i == maxTriedRows {
				out.More = count(int64(len(t.rows) - i))
				break
			}
			x := triedRow{N: count(row.N), Only: count(row.Only), Server: marked.Identifier(row.Server), Tool: marked.Identifier(row.Tool), By: marked.Identifier(row.By),
				Action: own(row.Action), Lacks: marked.Identifier(row.Lacks), HasLacks: row.Lacks != ""}
			for _, id := range row.Examples {
				x.Examples = append(x.Examples, exampleView{pathTo(findPath + "/" + segment(id)), marked.Identifier(id)})
			}
			out.Rows = append(out.Rows, x)
		}
		v.Tables = append(v.Tables, out)
	}
}

// maxTriedRows is how many rows of a table a page shows.
const maxTriedRows = 50
