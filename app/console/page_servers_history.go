// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A historyView is what the latest records say of a server.
type historyView struct {
	Known   bool
	Records Own
	All     bool // they are all that the log has of it
	Span    Own
	Score   Own
	Points  Own // of the line of the score, in a plot of 480 by 100
	Moves   []moveView
	Codes   []codeRow
	Asks    []askRow
}

// A moveView is a record that moved the score.
type moveView struct {
	At    Own
	What  Own
	Moved Own
	To    Path
	ID    marked.Name
}

type codeRow struct {
	Code  Own
	Tool  marked.Name
	N     Own
	To    Path
	Held  Own
	count int64
}

type askRow struct {
	Method  marked.Name
	N       Own
	Through Own
}

// Bounds of what a page reads of one server.
const (
	maxHistory = 500
	maxMoves   = 20
	maxCodes   = 50
)

// history reads the latest records of a server that has these names.
func (c *Console) history(ctx context.Context, names []string) (v historyView, err error) {
	if c.opt.Ledger == nil || len(names) == 0 {
		return v, nil
	}
	list, all, err := latest(ctx, c.opt.Ledger, index.Filter{Servers: names[:1]}, maxHistory)
	if err != nil {
		return v, err
	}
	h := historian{v: &v, state: trust.New(trust.Options{}), codes: map[[2]string]*codeCount{}, asks: map[string]*[2]int64{}}
	v.Known, v.All, v.Records = true, all, count(int64(len(list)))
	for i := range list {
		if st, err := ledger.UnverifiedStatement(list[i].Envelope); err == nil {
			h.take(st)
		}
	}
	h.finish(names[0])
	return v, nil
}

// latest returns the latest records that a filter selects, the oldest first. The index of the log finds them: it has those
// of up to a second ago.
func latest(ctx context.Context, l *storage.Ledger, f index.Filter, most int) (out []sequence.Entry, all bool, err error) {
	var places []int64
	err = l.View(ctx, func(x *storage.View) error {
		list, err := x.List(&f, storage.Page{Limit: most})
		for i := range list.Rows {
			places = append(places, list.Rows[i].Index)
		}
		all = list.Next == storage.Cursor{}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	slices.Sort(places)
	out, err = l.These(ctx, places)
	return out, all, err
}

type codeCount struct{ n, held int64 }

type historian struct {
	v      *historyView
	state  *trust.State
	scores []trust.Score
	codes  map[[2]string]*codeCount
	asks   map[string]*[2]int64
	first  *ledger.Statement
	last   *ledger.Statement
}

func (h *historian) take(st *ledger.Statement) {
	if h.first == nil {
		h.first = st
	}
	h.last = st
	if st.Kind == ledger.Message {
		stopped := st.Verdict == "withheld" || st.Verdict == "dropped"
		if st.Shape == "request" {
			if h.asks[st.Method] == nil && len(h.asks) < maxCodes {
				h.asks[st.Method] = &[2]int64{}
			}
			if a := h.asks[st.Method]; a != nil {
				if a[0]++; !stopped {
					a[1]++
				}
			}
		}
		for _, f := range st.Findings {
			key := [2]string{string(f.Code), st.Tool}
			if h.codes[key] == nil {
				h.codes[key] = &codeCount{}
			}
			if h.codes[key].n += f.N; stopped {
				h.codes[key].held += f.N
			}
		}
	}
	e, counts := standing.Of(&st.Event)
	if !counts {
		return
	}
	origin := trust.Origin{Server: st.Server}
	before := h.state.Score(origin, st.Time.Unix())
	h.state.Apply(e)
	after := h.state.Score(origin, st.Time.Unix())
	h.scores = append(h.scores, after)
	if moved := after - before; e.Kind != trust.Clean && moved != 0 {
		h.v.Moves = append(h.v.Moves, moveView{At: moment(st.Time), What: own(string(e.Kind)), Moved: own(fmt.Sprintf("%+.3f", moved.Float())),
			To: pathTo(findPath + "/" + segment(st.ID.String())), ID: marked.Identifier(st.ID.String()[:8])})
	}
}

// finish puts what was counted into the view.
func (h *historian) finish(server string) {
	v := h.v
	if h.first == nil {
		return
	}
	v.Span = minute(h.first.Time) + " to " + minute(h.last.Time)
	v.Score = own(fmt.Sprintf("%.3f", h.state.Score(trust.Origin{Server: server}, h.last.Time.Unix()).Float()))
	v.Points = points(h.scores)
	slices.Reverse(v.Moves)
	v.Moves = v.Moves[:min(len(v.Moves), maxMoves)]
	for key, n := range h.codes {
		v.Codes = append(v.Codes, codeRow{Code: codeName(ledgerCode(key[0])), Tool: marked.Identifier(key[1]), N: count(n.n), Held: count(n.held), count: n.n,
			To: pathTo(findPath, "q", "server:"+server+" code:"+key[0])})
	}
	slices.SortFunc(v.Codes, func(a, b codeRow) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.Code, b.Code), cmp.Compare(a.To, b.To))
	})
	v.Codes = v.Codes[:min(len(v.Codes), maxCodes)]
	for method, n := range h.asks {
		v.Asks = append(v.Asks, askRow{marked.Identifier(method), count(n[0]), count(n[1])})
	}
	slices.SortFunc(v.Asks, func(a, b askRow) int { return cmp.Compare(a.Method.Show(), b.Method.Show()) })
}

// points draws scores from 0 to 1 in a plot of 480 by 100, at most one for each of its units.
func points(scores []trust.Score) Own {
	const wide, high = 480, 100
	step := max(1, len(scores)/wide)
	var b strings.Builder
	for i := 0; i < len(scores); i += step {
		x := 0.0
		if len(scores) > 1 {
			x = float64(i) * wide / float64(len(scores)-1)
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", x, high-scores[i].Float()*high)
	}
	return own(strings.TrimSpace(b.String()))
}
