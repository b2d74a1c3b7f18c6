// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// From are the sources of an installation: a store, nil if not found, and a state directory.
func From(s *storage.Store, dir *state.Dir) Sources {
	src := Sources{
		Journal: func(id ledger.ID) (*audit.JournalRow, error) { return audit.Journaled(dir, id) },
		Flagged: func(id ledger.ID) []audit.Flagged { return audit.FlaggedAbout(dir, id) },
		Guard:   filepath.Join(dir.Path(), "guard"),
		Now:     time.Now,
	}
	var pins []surface.PinStore
	if files, err := install.PinFiles(); err == nil {
		pins = append(pins, files)
	}
	if s != nil {
		src.Log, src.Queue, src.Blocks, src.Approvals = s.Ledger(), hold.New(s, hold.Options{}),
			hold.NewBlocks(s.Blocks(), hold.BlockOptions{}), hold.NewApprovals(s.Approvals(), hold.ApprovalOptions{})
		src.Captured = func(ctx context.Context, id string) bool {
			_, err := s.GetCapture(ctx, id, time.Now())
			return err == nil
		}
		pins = append(pins, s)
	}
	src.Pin = func(ctx context.Context, server, tool string) (Pin, bool) { return pinOf(ctx, pins, server, tool) }
	return src
}

// pinOf looks for the pin of a tool.
func pinOf(ctx context.Context, stores []surface.PinStore, server, tool string) (Pin, bool) {
	for _, store := range stores {
		pins := surface.NewPins(store, nil)
		found, err := pins.Find(ctx, server)
		if err != nil {
			continue
		}
		for _, identity := range found {
			pin, err := pins.Get(ctx, identity)
			if err != nil {
				continue
			}
			if it := pin.Item(surface.Key{Kind: surface.Tool, Name: tool}); it != nil && tool != "" {
				return Pin{State: string(it.State()), By: it.By, At: it.At, Name: terminal.ShellWord(pin.Name())}, true
			}
			waiting := "pinned"
			for i := range pin.Items {
				if pin.Items[i].State() == surface.Pending {
					waiting = "pending"
				}
			}
			return Pin{State: waiting, Name: terminal.ShellWord(pin.Name())}, true
		}
	}
	return Pin{}, false
}

// Find explains what an id or index names in an installation. A record that waits for its place in
// the log gets it first, where this process may do that.
func Find(d install.Database, flag, ref string) (x *Explanation, err error) {
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	with := func(ctx context.Context, s *storage.Store) error {
		src := From(s, dir)
		src.Flag = flag
		src.Looked = looked(ctx, s, d, dir)
		x, err = Of(ctx, src, ref)
		return err
	}
	err = d.WithIntegrated(with)
	if errors.Is(err, install.ErrNoStore) {
		err = with(context.Background(), nil)
	}
	return x, err
}

// looked names the places, for an id that is in none of them.
func looked(ctx context.Context, s *storage.Store, d install.Database, dir *state.Dir) (list []string) {
	where := terminal.Inline(string(d))
	switch {
	case d == "":
		where = terminal.Inline(filepath.Join(dir.Path(), "pellucid.db"))
	case storage.IsPostgres(string(d)):
		where = "the Postgres database" // its URL may hold a password
	}
	if s == nil {
		list = append(list, "database: there is none at "+where)
	} else {
		list = append(list, "database: "+where)
		list = append(list, logLooked(ctx, s.Ledger()), "queue, blocked sources and approvals: in the same database")
	}
	return append(list, "journal of wrap: "+terminal.Inline(filepath.Join(dir.Path(), "decisions.jsonl"))+" and its older files")
}

func logLooked(ctx context.Context, l *storage.Ledger) string {
	head, err := l.Head(ctx)
	if err != nil {
		return "ledger: there is none in it"
	}
	text := "ledger: " + terminal.Plural(int(head.Size), "record")
	if n, err := l.Waiting(ctx, 1000); err == nil && n > 0 {
		text += ", and " + terminal.Plural(n, "record") + " that wait for their place"
	}
	return text
}
