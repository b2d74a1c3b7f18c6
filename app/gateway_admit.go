// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/admit"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// verifying tells the operator how far a review is.
func (b *Gateway) verifying(server string, s surface.Step) {
	b.log.Info("a language model reviews a server", "server", server, "part", s.Chunk, "of", s.Chunks, "tokens", s.Tokens)
}

// removedOf is what the boundary takes out of a server's definitions.
func (b *Gateway) removedOf(name string) []surface.Removal {
	if s := b.admit.Server(name); s != nil {
		return s.Removals()
	}
	return nil
}

// verify is what the fleet asks before a session begins.
func (b *Gateway) verify(name string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		err := b.admit.Verify(ctx, name)
		if rejected, is := errors.AsType[*admit.RejectedError](err); is {
			return &fleet.RejectedError{Why: rejected.Why}
		}
		if err != nil && ctx.Err() == nil {
			return unchecked{err}
		}
		return err
	}
}

// unchecked says in an operator's words why a server could not be checked.
type unchecked struct{ error }

func (e unchecked) Unwrap() error { return e.error }

func (e unchecked) Error() string {
	refused, ok := errors.AsType[*surface.RefusedError](e.error)
	if !ok || refused.Reason != surface.NoAnswer {
		return strings.TrimPrefix(e.error.Error(), "admit: ")
	}
	return "the server did not answer " + cmp.Or(refused.Method, "a request") + ": " + surface.WhyUnreachable(e.error)
}

// checksAtOnce bounds the servers that are checked at the same time when the gateway
// starts; a session of a server that waits for its check does not wait for the checks of others.
const checksAtOnce = 4

// verifyAll checks every server that has not been, so that what is wrong is known
// before the first session.
func (b *Gateway) verifyAll(ctx context.Context) {
	room := make(chan struct{}, checksAtOnce)
	var work sync.WaitGroup
	defer work.Wait()
	for _, s := range b.rules.Load().Servers {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		work.Go(func() {
			defer func() { <-room }()
			err := b.fleet.Verify(ctx, s.Name)
			if err != nil && ctx.Err() == nil && !errors.As(err, new(*fleet.RejectedError)) && !errors.Is(err, fleet.ErrNoServer) {
				args := []any{"server", s.Name, "why", terminal.Printable(err.Error())}
				if lines := b.fleet.Said(s.Name); len(lines) > 0 {
					args = append(args, "standard_error", lines)
				}
				b.log.Warn("server could not be checked: clients get error 7601 until a check succeeds", args...)
			}
		})
	}
}

// A serverStatus is how one server does, for who runs the gateway.
type serverStatus struct {
	Name        string            `json:"name"`
	Pin         string            `json:"pin"` // as pellucid pins lists it
	State       fleet.State       `json:"state"`
	Since       time.Time         `json:"since"`
	Connections int               `json:"connections"`
	Failures    int               `json:"failures"`
	Why         string            `json:"why,omitzero"`     // escaped
	Removed     []surface.Removal `json:"removed,omitzero"` // of its definitions, before a model sees them
}

// states tells the metrics how every configured server does.
func (b *Gateway) states(tell func(server, state string)) {
	configured := b.rules.Load()
	for _, h := range b.fleet.Health() {
		if configured.Server(h.Name) != nil {
			tell(h.Name, string(h.State))
		}
	}
}

// servers tells how every server does that the asking principal may see.
func (b *Gateway) servers(w http.ResponseWriter, r *http.Request) {
	may := b.may(sessionOwner(r))
	out := struct {
		Servers []serverStatus `json:"servers"`
	}{[]serverStatus{}}
	configured := b.rules.Load()
	for _, h := range b.fleet.Health() {
		s := configured.Server(h.Name)
		if s != nil && may(h.Name) {
			out.Servers = append(out.Servers, serverStatus{h.Name, install.PinnedAs(s), h.State, h.Since.UTC(), h.Connections, h.Failures, h.Why, b.removedOf(h.Name)})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = terminal.WriteJSON(w, out)
}
