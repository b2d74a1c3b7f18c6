// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A state is the page of a request that has no other answer: what happened, why, and what to do.
type state struct {
	status  int
	title   Own
	says    Own    // what happened, in one sentence
	why     Own    // and what follows; "": nothing to add
	command string // that helps; "": none
	stored  bool   // the command reads the store
	kind    Own    // of the note: "", "held" or "denied"
	to      Path   // "": nowhere
	toWord  Own    // of the link to it
	cause   error  // for the log; its text is not shown
}

type stateView struct {
	Says    Own
	Why     Own
	Command marked.Plain
	Has     bool // a command
	Kind    Own
	To      Path
	ToWord  Own
}

func (stateView) template() string { return "state" }

func (s state) write(c *Console, w http.ResponseWriter, q *request) {
	if s.cause != nil {
		c.opt.Log.Error("console: a request failed", "status", s.status, "error", finding.Quote(s.cause.Error()))
	}
	if s.status == http.StatusServiceUnavailable || s.status == http.StatusTooManyRequests {
		if h := w.Header(); h.Get("Retry-After") == "" {
			h.Set("Retry-After", "5")
		}
		short := *q
		short.who = Person{} // a refusal has no rail and no header: they would cost more than it saves
		q = &short
	}
	command := s.command
	if s.stored {
		command += c.opt.Flag
	}
	pageAnswer{s.status, s.title, stateView{s.says, s.why, marked.Spelled(command), command != "", s.kind, s.to, s.toWord}}.write(c, w, q)
}

// notFound is the state of an address without a page.
func notFound() state {
	return state{status: http.StatusNotFound, title: "Not found", says: "There is no such page or item.",
		why: "It may have expired, or the address is incomplete."}
}

// noRight is the state of a person whose role does not reach.
func noRight(has, needs Role) state {
	return state{status: http.StatusForbidden, title: "No right", says: "Your role is " + has.Name() + ". This needs the role " + needs.Name() + ".",
		why: "An operator gives roles in the configuration, under console."}
}

// notYours is the state of something of a server that the person may not see.
func notYours() state {
	return state{status: http.StatusForbidden, title: "No right", says: "You may not see what comes from this server.",
		why: "An operator says in the configuration, under console, which servers a reviewer may see."}
}

// crossSite is the state of a form that another site has sent.
func crossSite() state {
	return state{status: http.StatusForbidden, title: "Refused", says: "This request came from another site. Nothing was done.",
		why: "Open the page in the console itself, and do it there.", kind: "denied"}
}

// tooLarge is the state of a form with too much in it.
func tooLarge(most int64) state {
	return state{status: http.StatusRequestEntityTooLarge, title: "Too large", says: "This is more than the page takes: " + size(most) + ".", kind: "denied"}
}

// missing is the state of a page that reads something which is not configured.
func missing(title, says, why, command Own) state {
	return state{status: http.StatusOK, title: title, says: says, why: why, command: string(command)}
}

// failed is the state for an error of what a page reads or does.
func failed(err error) answer {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, hold.ErrNotFound):
		return notFound()
	case errors.Is(err, hold.ErrMany):
		return state{status: http.StatusBadRequest, title: "Too many", says: "More items are selected than can be decided about at once: 1,000,000. Nothing was decided.", why: "Narrow the filter, and decide about its parts.", kind: "held"}
	case errors.Is(err, hold.ErrSecond):
		return state{status: http.StatusConflict, title: "Another person is needed", says: "This needs two persons, and the first one is you. Nothing was changed.", kind: "held"}
	case errors.Is(err, hold.ErrDecided):
		return state{status: http.StatusConflict, title: "Decided already", says: "Another reviewer decided this before you, or it has expired. Your decision was not carried out.", kind: "held"}
	case errors.Is(err, context.DeadlineExceeded):
		return state{status: http.StatusServiceUnavailable, title: "The store does not answer", says: "The store does not answer. Nothing was changed by this request, as far as is known.",
			why: "What happens to calls until it is back depends on the member evidence of the configuration. Load the page again in a few seconds.", kind: "denied", cause: err}
	case errors.Is(err, context.Canceled):
		return state{status: 499, title: "Ended", says: "The browser ended the request."}
	}
	return state{status: http.StatusInternalServerError, title: "This failed", says: "The program could not do this. Its log says why.", kind: "denied", cause: err}
}
