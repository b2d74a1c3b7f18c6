// SPDX-License-Identifier: Apache-2.0

package console

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A graphView is how a verdict was made, from the claim by the attestations and their validators to the verdict: boxes that are links,
// and a table that says the same.
type graphView struct {
	Width, Height int
	Edges         []edgeView
	Boxes         []boxView
	Votes         []voteView
	Validators    []validatorView
	Drawn         Own // how many attestations the drawing leaves out; "": none
	Omitted       Own // how many the answer leaves out; "": none
}

// An edgeView joins two boxes.
type edgeView struct {
	X1, Y1, Middle, X2, Y2 int
	Class                  Own
}

type boxView struct {
	X, Y   int
	Class  Own
	First  Own
	Second Own
	To     Path // "": nowhere
}

type voteView struct {
	N         Own
	Hash      marked.Name
	Record    Path // "": there is no log
	Verdict   Own
	Validator Own
	At        Path // of the validator
	Outcome   Own
	Counts    bool
	Gone      bool // it was withdrawn, or what it depends on was
	Row       Own  // its id on the page
}

type validatorView struct {
	N    Own
	Name marked.Name
	Row  Own
}

// The drawing: four columns of boxes.
const (
	boxWide   = 136
	boxHigh   = 40
	boxGap    = 10
	columnGap = 32
	mostDrawn = 24 // attestations
)

// outcomes are what became of an attestation, in words.
var outcomes = map[consensus.Reason]Own{
	consensus.Counted: "counts", consensus.Withdrawn: "withdrawn", consensus.Pending: "its source withdrawn", consensus.Superseded: "replaced",
	consensus.Repeated: "repeated", consensus.Expired: "expired", consensus.NotAccepted: "refused by the policy", consensus.NotYetIssued: "not issued yet",
	consensus.WrongDomain: "of another domain", consensus.WrongTopic: "of another topic", consensus.LowReputation: "reputation too low", consensus.LowTrust: "trust too low",
	consensus.NoWeight: "has no weight", consensus.Invalid: "not valid", consensus.ProfileNotInForce: "profile not in force",
}

func column(i int) int { return i * (boxWide + columnGap) }

func line(i int) int { return i * (boxHigh + boxGap) }

// newGraph draws the cascade of an answer; nil where nothing was composed.
func newGraph(a *ground.Answer, logged bool) *graphView {
	x := a.Meta.Explanation
	if x == nil || a.Meta.Claim == nil || len(x.Votes) == 0 {
		return nil
	}
	votes := slices.Clone(x.Votes) // what counts stands first
	slices.SortStableFunc(votes, func(p, q ground.AnswerVote) int { return rank(p.Reason) - rank(q.Reason) })
	g := &graphView{Width: column(3) + boxWide}
	validators := map[string]int{}
	primary := a.Summary.Verdict
	drawn := min(len(votes), mostDrawn)
	for i, v := range votes {
		at, known := validators[v.Validator]
		if !known {
			at = len(validators)
			validators[v.Validator] = at
			g.Validators = append(g.Validators, validatorView{numbered("v", at+1), marked.Identifier(v.Validator), numbered("validator-", at+1)})
		}
		out := voteView{N: numbered("a", i+1), Hash: marked.Identifier(v.Hash), Verdict: labelWord(string(v.Verdict)), Validator: g.Validators[at].N, At: anchor("validator-", at+1),
			Outcome: outcomes[v.Reason], Counts: v.Reason == consensus.Counted, Gone: v.Reason == consensus.Withdrawn || v.Reason == consensus.Pending, Row: numbered("vote-", i+1)}
		if out.Outcome == "" {
			out.Outcome = "other"
		}
		if h, ok := attest.ParseHash(v.Hash); ok && logged {
			out.Record = recordsPath(index.Filter{Digest: ledger.Digest(h)})
		}
		g.Votes = append(g.Votes, out)
	}
	if n := len(votes) - drawn; n > 0 {
		g.Drawn = things(n, "attestation")
	}
	if x.Omitted > 0 {
		g.Omitted = things(x.Omitted, "more attestation")
	}
	g.draw(votes[:drawn], validators, primary, labelWord(string(primary)))
	return g
}

// rank orders votes: what counts, what does not, and what was withdrawn.
func rank(r consensus.Reason) int {
	switch r {
	case consensus.Counted:
		return 0
	case consensus.Withdrawn, consensus.Pending:
		return 2
	}
	return 1
}

// draw places the boxes and joins them. The claim and the verdict stand in the middle of their columns.
func (g *graphView) draw(votes []ground.AnswerVote, validators map[string]int, primary attest.Verdict, verdict Own) {
	shown := 0 // validators of what is drawn: the first ones
	for _, v := range votes {
		shown = max(shown, validators[v.Validator]+1)
	}
	rows := max(len(votes), shown)
	g.Height = line(rows) - boxGap
	middle := (g.Height - boxHigh) / 2
	offset := (g.Height - (line(shown) - boxGap)) / 2
	counts := make([]bool, shown)
	agrees := make([]bool, shown)
	for i := range votes {
		v, at := &g.Votes[i], validators[votes[i].Validator]
		class, box := Own("g-edge"), Own("g-box")
		switch {
		case v.Gone:
			class, box = "g-edge g-gone", "g-box g-gone"
		case !v.Counts:
			class, box = "g-edge g-out", "g-box g-out"
		default:
			counts[at] = true
			agrees[at] = agrees[at] || votes[i].Verdict == primary
		}
		y := line(i)
		g.join(0, middle, 1, y, class)
		g.join(1, y, 2, offset+line(at), class)
		g.Boxes = append(g.Boxes, boxView{X: column(1), Y: y, Class: box, First: v.N + " " + v.Verdict, Second: v.Outcome, To: anchor("vote-", i+1)})
	}
	for i := range shown {
		box, says := Own("g-box"), Own("agrees")
		switch {
		case !counts[i]:
			box, says = "g-box g-out", "does not count"
		case agrees[i]:
			g.join(2, offset+line(i), 3, middle, "g-edge")
		default:
			says = "another verdict"
			g.join(2, offset+line(i), 3, middle, "g-edge g-against")
		}
		g.Boxes = append(g.Boxes, boxView{X: column(2), Y: offset + line(i), Class: box, First: "validator " + g.Validators[i].N, Second: says, To: anchor("validator-", i+1)})
	}
	claim := boxView{X: 0, Y: middle, Class: "g-box g-end", First: "the claim", To: anchor("gv", 0)}
	end := boxView{X: column(3), Y: middle, Class: "g-box g-end", First: verdict, Second: "the verdict", To: anchor("gv", 0)}
	g.Boxes = append(append([]boxView{claim}, g.Boxes...), end)
}

func (g *graphView) join(from, y1, to, y2 int, class Own) {
	x1, x2 := column(from)+boxWide, column(to)
	g.Edges = append(g.Edges, edgeView{x1, y1 + boxHigh/2, (x1 + x2) / 2, x2, y2 + boxHigh/2, class})
}
