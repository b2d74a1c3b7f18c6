// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/review"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// later says what became of it: by the log, and by the queue, which alone knows names.
func (x *teller) later(ctx context.Context) {
	o := x.out
	ended := false
	for _, t := range x.about {
		if t.st.Kind == ledger.Classified {
			continue // it stands under why
		}
		index := t.index
		s := Step{Time: when(t.st.Time), Text: sentence(t.st, x.source()), ID: t.st.ID.String(), Index: &index}
		s.Asked = x.asked != nil && x.asked.ID == t.st.ID
		switch t.st.Kind {
		case ledger.ResultReleased, ledger.ResultDenied:
			s.By, ended = "a reviewer, whom the record names only by a salted digest", true
			if x.item != nil && x.item.By != "" {
				s.By = x.item.By
			}
		case ledger.ResultExpired, ledger.ResultTaken:
			ended = true
		}
		o.Since = append(o.Since, s)
	}
	if it := x.item; it != nil {
		if !slices.ContainsFunc(x.about, func(t told) bool { return t.st.Kind == ledger.ResultHeld }) {
			o.Since = append([]Step{{Time: when(it.Held), Text: "It was put into the queue for a reviewer."}}, o.Since...)
		}
		if !ended {
			x.stateOf(it)
		}
		x.state(it)
	}
	x.approvals(ctx)
	slices.SortStableFunc(o.Since, func(a, b Step) int { return strings.Compare(a.Time, b.Time) })
	if x.asked != nil && !slices.ContainsFunc(o.Since, func(s Step) bool { return s.Asked }) {
		o.Notes = append(o.Notes, "The record that was asked for, of kind "+string(x.asked.Kind)+", is about "+o.ID+", which is explained here.")
	}
}

// stateOf adds what the queue says happened, where the log does not.
func (x *teller) stateOf(it *hold.Item) {
	var s Step
	switch it.State {
	case hold.Released, hold.Taken:
		s = Step{Time: when(it.Decided), Text: "A reviewer released it.", By: it.By}
	case hold.Denied:
		s = Step{Time: when(it.Decided), Text: "A reviewer denied it; its content was destroyed.", By: it.By}
	case hold.Expired:
		s = Step{Time: when(it.Until), Text: "It expired; its content was destroyed."}
	default:
		return
	}
	x.out.Since = append(x.out.Since, s)
	if it.State == hold.Taken {
		x.out.Notes = append(x.out.Notes, "It was delivered to the next "+asks(it)+" that was the same.")
	}
}

// asks is what gets the item once it is released.
func asks(it *hold.Item) string {
	if it.Found.Task != "" {
		return "request for the result of the task"
	}
	return "call"
}

// state says where the item stands now.
func (x *teller) state(it *hold.Item) {
	text := map[hold.State]string{
		hold.Held:     "It waits for a reviewer until " + when(it.Until) + "; then its content is destroyed.",
		hold.Released: "It is released: the next " + asks(it) + " that is the same gets it once, until " + when(it.Until) + ".",
		hold.Taken:    "It was released and taken: its content is gone.",
		hold.Denied:   "It was denied: its content is gone.",
		hold.Expired:  "It has expired: its content is gone.",
	}[it.State]
	if it.State == hold.Released && it.IsCall() {
		text = "It is released: the next call that is the same goes to the server once, until " + when(it.Until) + "."
	}
	if text != "" {
		x.out.Happened = append(x.out.Happened, text)
	}
	if it.Sealed() {
		x.out.Notes = append(x.out.Notes, "Its content is encrypted to the reviewers: showing or releasing it needs --identity.")
	}
}

// approvals adds those that a reviewer gave for this call.
func (x *teller) approvals(ctx context.Context) {
	if x.src.Approvals == nil {
		return
	}
	list, err := x.src.Approvals.List(ctx, true)
	if err != nil {
		x.out.Notes = append(x.out.Notes, "The approvals could not be read.")
		return
	}
	for i := range list {
		if list[i].Item != x.id.String() {
			continue
		}
		a := review.NewApproval(&list[i])
		if !slices.Contains(x.out.Found, "approvals") {
			x.out.Found = append(x.out.Found, "approvals")
		}
		x.out.Since = append(x.out.Since, Step{Time: when(list[i].Since), Text: "Calls like this one are approved until " + when(list[i].Until) + ": approval " + a.ID + ".", By: frame.Label(list[i].By), ID: a.ID})
		if list[i].Revoked.IsZero() && x.src.Now().Before(list[i].Until) {
			x.do("End the approval before its time", "pellucid quarantine revoke "+a.ID)
		}
	}
}

func (x *teller) do(text, command string) {
	c := Command{text, command + x.src.Flag}
	if !slices.Contains(x.out.Do, c) {
		x.out.Do = append(x.out.Do, c)
	}
}

// commands says what a person can do now.
func (x *teller) commands(ctx context.Context, d *ruled) {
	o, id := x.out, x.id.String()
	if x.waits() {
		x.waiting(id)
	}
	for _, c := range o.Why {
		if c.Kind == "pin" && x.st != nil && x.st.Kind == ledger.SurfaceRejected {
			x.do("See why the check refused it, with code and place", "pellucid pins list --items "+c.Name)
		} else if c.Kind == "pin" {
			x.do("See what the server changed, and approve or block it", "pellucid pins diff "+c.Name)
		}
	}
	kept := x.item != nil || slices.ContainsFunc(x.about, func(t told) bool { return t.st.Kind == ledger.ResultHeld })
	if d != nil && !kept && d.shape != "call" {
		x.sayWhatWasKept(ctx, d)
	}
	if x.st != nil && slices.ContainsFunc(o.Why, func(c Cause) bool { return c.Kind == "policy" || c.Kind == "hold" }) {
		x.do("Try other rules on what was recorded, before they are in force", "pellucid policy backtest FILE")
	}
	if x.isGuard() && x.src.Guard != "" {
		x.plain("Compute the verdict of the guard again from its statement", "pellucid ccr replay "+terminal.ShellWord(filepath.Join(x.src.Guard, id+".json")))
	}
	if x.st != nil {
		x.do("Prove that the record stands in the log", "pellucid explain --proof "+id)
		x.do("Give all of it to another person in one file, with its proofs", "pellucid explain --case case.json "+id)
	} else if x.journal != nil {
		o.Notes = append(o.Notes, "No ledger has this decision, so nothing proves it. To have one: evidence: {mode: best-effort} in the configuration, or --evidence best-effort of wrap.")
	}
}

// sayWhatWasKept says how a person can read the undelivered text of a message, or of the next one.
func (x *teller) sayWhatWasKept(ctx context.Context, d *ruled) {
	withheld := d.verdict == "withheld" || d.verdict == "dropped"
	if !withheld && !d.removed() {
		return
	}
	if x.src.Captured != nil && x.src.Captured(ctx, x.id.String()) {
		x.do("Read what was kept of the call: third-party text, with what is hidden made visible", "pellucid quarantine show "+x.id.String())
		return
	}
	note := "What was removed was not kept."
	if withheld {
		note = "Nothing of the message was kept."
	}
	switch {
	case !slices.ContainsFunc(d.withheld, func(c ledger.Count) bool { return !hold.Exceptable(c.Code) }):
		note += " To keep such results for a reviewer, name the code under hold in the configuration, or give wrap --set hold=CODE; then pellucid quarantine show prints them. Results of an agent's own tools are never kept."
	case x.out.Tool != "":
		note += " No reviewer can release such a result. To see the next one, set capture: [received] for the tool in the configuration; then pellucid quarantine show prints it."
	}
	x.out.Notes = append(x.out.Notes, note)
}

// plain is do without the flag of the database.
func (x *teller) plain(text, command string) { x.out.Do = append(x.out.Do, Command{text, command}) }

func (x *teller) waiting(id string) {
	identity := ""
	if x.item.Sealed() {
		identity = " --identity file:KEY"
	}
	x.do("Read it: third-party text, with what is hidden made visible", "pellucid quarantine show "+id+identity)
	switch {
	case x.item.Rule == hold.GuardCall:
		x.do("Let the same call pass once", "pellucid quarantine release "+id+identity)
		x.do("Let the same call pass for 30 days", "pellucid quarantine release --remember 30d "+id+identity)
	case x.item.IsCall():
		x.do("Let the same call go to the server once", "pellucid quarantine release "+id+identity)
	default:
		x.do("Deliver it once, scrubbed, to the next "+asks(x.item)+" that is the same", "pellucid quarantine release "+id+identity)
	}
	x.do("Destroy it", "pellucid quarantine deny "+id)
	if c := x.item.Code; x.item.Rule == "finding" && c != finding.Code("") && c.Known() {
		x.out.Notes = append(x.out.Notes, "To let such results pass without a reviewer, take "+string(c)+" out of hold, or add an exception for it.")
	}
}
