// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"net/http"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/review"
)

type capturedView struct {
	ID      marked.Name
	Server  marked.Name
	Tool    *marked.Name
	Who     *marked.Name
	Verdict marked.Name
	At      Own
	Until   Own
	Parts   []partView
}

func (capturedView) template() string { return "captured" }

// A partView is one of the texts of a call.
type partView struct {
	Name  Own
	Kept  bool
	Bytes Own // where it is too long to be kept
	Texts []textView
	Ours  bool // the gateway has added members to _meta, which are not shown
}

// decidesAbout reports whether the person decides about the server of a record, where a sealed text does not say of
// which server it is.
func (c *Console) decidesAbout(q *request) bool {
	if q.who.AllServers && q.who.Reviews == nil {
		return true
	}
	_, st, not := c.entry(q)
	return not == nil && q.who.Decides(st.Server)
}

// captured is a call that was not held, with the texts that the operator keeps of it.
func (c *Console) captured(q *request, id string) answer {
	got, err := captures.Read(q.Context(), c.opt.Captures, c.opt.Sealer, id, "", q.now)
	switch {
	case errors.Is(err, captures.ErrNotKept), (errors.Is(err, capture.ErrSealed) || errors.Is(err, capture.ErrForeign)) && !c.decidesAbout(q):
		return state{status: http.StatusNotFound, title: "Not kept", says: "This call was not held, and its text is not kept, or its time is over.",
			why: "To keep the texts of such calls, set capture and capture_of for the tool, its server or in defaults.", to: pathTo("review"), toWord: "To the queue"}
	case errors.Is(err, capture.ErrSealed):
		return state{status: http.StatusOK, title: "Encrypted", says: "The text of this call is encrypted to its reviewers. This program cannot read it.",
			why: "pellucid quarantine show --identity file:KEY shows it with the key of a reviewer.", kind: "held"}
	case errors.Is(err, capture.ErrForeign):
		return state{status: http.StatusOK, title: "Sealed", says: "The text of this call is sealed with a key that this program does not have.", kind: "held"}
	case err != nil:
		return failed(err)
	case !q.who.Decides(got.Server):
		return notYours()
	}
	n := 0
	for _, part := range []*captures.Part{got.Arguments, got.Received, got.Delivered} {
		if part != nil {
			n += len(part.Text)
		}
	}
	if no := c.waitForText(q, n); no != nil {
		return no
	}
	v := &capturedView{ID: marked.Identifier(got.ID), Server: marked.Identifier(got.Server), Tool: nameOf(got.Tool), Who: nameOf(got.Principal), Verdict: marked.Identifier(got.Verdict),
		At: moment(got.Time), Until: minute(got.Until)}
	for _, p := range []struct {
		name Own
		part *captures.Part
	}{{"arguments", got.Arguments}, {"received", got.Received}, {"delivered", got.Delivered}} {
		out := partView{Name: p.name, Kept: p.part != nil}
		if p.part != nil && p.part.Text == "" && p.part.Bytes > 0 {
			out.Bytes = size(int64(p.part.Bytes))
		} else if p.part != nil {
			for place, text := range review.Texts([]byte(p.part.Text)) {
				if p.name == "delivered" && review.Ours(place) {
					out.Ours = true
				} else if len(out.Texts) < maxTexts {
					out.Texts = append(out.Texts, textView{Place: marked.Identifier(place), Received: marked.Of(text)})
				}
			}
		}
		v.Parts = append(v.Parts, out)
	}
	return page("Call", v)
}
