// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/record/conversation"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Conversations keep what the ids of a provider's answers stand for; *conversation.Conversations
// are such.
type Conversations interface {
	Keep(ctx context.Context, of conversation.Owner, id string, t conversation.Turn) error
	Find(ctx context.Context, of conversation.Owner, id string) (conversation.Turn, error)
	Drop(ctx context.Context, of conversation.Owner, id string) error
}

// keepWait bounds what a client waits for the store.
const keepWait = 5 * time.Second

// A keeping is what has to be known of a request whose answer a later one may continue.
type keeping struct {
	of   conversation.Owner
	form format.Keeper
	said []byte // Asked.Said of the whole conversation
}

// owner is whose conversations a request may continue. Where the guard asks for no token, those
// are the same whose credential is the same.
func (g *Guard) owner(who string, h http.Header) conversation.Owner {
	of := conversation.Owner{Principal: who}
	if g.o.Auth == nil && g.o.Key.IsZero() && g.o.AWS == nil {
		for _, name := range credentials {
			for _, v := range h.Values(name) {
				of.Credential += name + ": " + v + "\n"
			}
		}
	}
	return of
}

// whole completes x.body where the request continues an answer that is kept. forward is what
// goes to the provider: the request as it came, unless the provider does not know this answer.
// The error is one of package intake: there is no room for it now.
func (g *Guard) whole(ctx context.Context, x *exchange, room *intake.Room, asked *format.Asked, h http.Header) (forward []byte, err error) {
	forward = x.body
	form, keeps := x.f.(format.Keeper)
	if !keeps || g.o.Conversations == nil || !asked.Keeps && asked.Previous == "" {
		return forward, nil
	}
	k := &keeping{of: g.owner(x.principal, h), form: form, said: asked.Said}
	if asked.Keeps {
		x.keeping = k
	}
	if asked.Previous == "" {
		return forward, nil
	}
	ctx, cancel := context.WithTimeout(ctx, keepWait)
	defer cancel()
	turn, err := g.o.Conversations.Find(ctx, k.of, asked.Previous)
	if err != nil {
		x.keeping = nil // what follows from a part that is not known is not known either
		x.unseen = "the answer that the request continues is not kept"
		if !errors.Is(err, conversation.ErrNotFound) {
			x.unseen = "the store of conversations failed"
			g.o.Log.Warn("the conversation that a request continues could not be read", "evidence", x.id, "error", err)
		}
		g.counters.conversation("not-found")
		return forward, nil
	}
	n := int64(len(turn.Items) + len(x.body))
	if err := room.Take(intake.BodyCost * n); err != nil {
		return nil, err
	}
	x.body = form.AppendContinued(make([]byte, 0, n), format.Parse(x.body), turn.Items)
	k.said = format.Parse(x.body).Get(form.List()).Raw()
	if turn.Own {
		forward = x.body
	}
	g.counters.conversation("found")
	return forward, nil
}

// keep stores the conversation up to an answer, whose body is root, before the client gets the
// id of the answer. own: the guard has put it into the place of the provider's.
func (x *exchange) keep(g *Guard, root strictjson.Value, own bool) {
	k := x.keeping
	switch {
	case k == nil || !root.Exists():
		return
	case len(k.said) > conversation.MaxTurn:
		g.counters.conversation("too-long")
		return
	}
	items, id := k.form.AppendTurn(nil, k.said, root, own)
	if id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepWait) // a client that has gone may come back
	defer cancel()
	switch err := g.o.Conversations.Keep(ctx, k.of, id, conversation.Turn{Items: items, Own: own}); {
	case err == nil:
		g.counters.conversation("kept")
	case errors.Is(err, conversation.ErrTooLong):
		g.counters.conversation("too-long")
	default:
		g.counters.conversation("failed")
		g.o.Log.Warn("a conversation could not be kept: calls in answers that continue it cannot be decided", "evidence", x.id, "error", err)
	}
}

// keepEnd is keep for a stream, of which last is the last event.
func (x *exchange) keepEnd(g *Guard, last eventstream.Event, own bool) {
	if x.keeping != nil {
		x.keep(g, x.keeping.form.Ended(last), own)
	}
}

// keepTail is keep for events that the guard has written.
func (x *exchange) keepTail(g *Guard, events []byte) {
	if x.keeping == nil {
		return
	}
	split := x.f.Split(len(events)+1, false)
	split.Feed(events)
	var last eventstream.Event
	for e, ok, err := split.Next(); ok && err == nil; e, ok, err = split.Next() {
		last = e
	}
	x.keepEnd(g, last, true)
}

// drop forgets a conversation whose answer a client has had the provider delete, by a route
// that the operator has named.
func (g *Guard) drop(found *route, t target, r *http.Request) {
	id, is := strings.CutPrefix(t.path, "/responses/")
	if g.o.Conversations == nil || !is || found.root != rootV1 || r.Method != http.MethodDelete {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), keepWait)
	defer cancel()
	if err := g.o.Conversations.Drop(ctx, g.owner(principal(r), r.Header), id); err != nil {
		g.o.Log.Warn("the guard's copy of a conversation could not be deleted", "error", err)
	}
}
