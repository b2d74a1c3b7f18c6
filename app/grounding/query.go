// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// Query asks an adapter on the store, and returns the response envelope.
func Query(ctx context.Context, dir *state.Dir, p Plan, r ground.Request) ([]byte, error) {
	g, err := openQuery(ctx, dir, p)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	answer, err := g.Ground(ctx, r)
	var problem ground.Problem
	switch {
	case !errors.As(err, &problem):
		return answer, err
	case problem == ground.Unavailable:
		return nil, exit.With(exit.Unreachable, err)
	case problem == ground.ProfileRefused, problem == ground.ScoresUnknown:
		return nil, exit.With(exit.Config, err)
	}
	return nil, exit.With(exit.Usage, err)
}

// openQuery makes an adapter that is only asked.
func openQuery(ctx context.Context, dir *state.Dir, p Plan) (_ *Adapter, err error) {
	g := &Adapter{}
	defer g.closeOn(&err)
	o, err := p.options() // before a store is made
	if err != nil {
		return nil, err
	}
	if g.store, err = openGroundStore(ctx, dir, p.DB, ShowDemo); err != nil {
		return nil, err
	}
	o.Store = g.store.attestations
	if err = g.make(o); err != nil {
		return nil, err
	}
	if err = g.store.loadDemo(ctx, g.Adapter, p.Notice); err != nil {
		return nil, err
	}
	return g, nil
}

// Export writes what a store holds behind a cursor as lines of the feed, the original
// bytes of third parties among them: limit lines at most, all where limit is 0.
func Export(ctx context.Context, dir *state.Dir, db string, after ground.Cursor, limit int, w io.Writer) error {
	s, err := openGroundStore(ctx, dir, db, refuseAbsent)
	if err != nil {
		return err
	}
	defer s.Close()
	var line []byte
	for entry, err := range ground.Entries(ctx, s.attestations, after, limit) {
		if err != nil {
			return exit.With(exit.Unreachable, err)
		}
		line = append(entry.AppendJSON(line[:0]), '\n')
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("ground: write: %w", err)
		}
	}
	return nil
}
