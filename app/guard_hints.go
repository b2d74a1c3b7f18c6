// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// hintsEvery is how often the guard reads the approved surfaces and the trust scores again.
const hintsEvery = time.Minute

// toolHints are what approved surfaces say of tools, by the names that models know them
// by: the tool's own, and those that /mcp and clients make of it.
type toolHints struct {
	known atomic.Pointer[map[string]counterfactual.Hint]
}

func (h *toolHints) of(tool string) counterfactual.Hint {
	if known := h.known.Load(); known != nil {
		return (*known)[tool]
	}
	return counterfactual.Hint{}
}

// follow reads the surfaces now, and again until ctx ends.
func (h *toolHints) follow(ctx context.Context, s *storage.Store, log *slog.Logger) {
	h.load(ctx, s, log)
	go func() {
		t := time.NewTicker(hintsEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				h.load(ctx, s, log)
			}
		}
	}()
}

// load reads the pins of the state directory and of the database. Where that fails, what
// was known before counts on.
func (h *toolHints) load(ctx context.Context, s *storage.Store, log *slog.Logger) {
	known := map[string]counterfactual.Hint{}
	files, err := install.PinFiles()
	if err == nil {
		err = errors.Join(addHints(ctx, known, surface.NewPins(files, nil)), addHints(ctx, known, surface.NewPins(s, nil)))
	}
	if err != nil {
		if ctx.Err() == nil {
			log.Warn("the approved tool definitions cannot be read: a tool's name alone decides whether its calls are privileged")
		}
		return
	}
	h.known.Store(&known)
}

func addHints(ctx context.Context, known map[string]counterfactual.Hint, pins *surface.Pins) error {
	servers, err := pins.List(ctx)
	if err != nil {
		return err
	}
	for _, server := range servers {
		pin, err := pins.Get(ctx, server)
		if errors.Is(err, surface.ErrNotPinned) {
			continue
		}
		if err != nil {
			return err
		}
		for i := range pin.Items {
			if it := &pin.Items[i]; it.Kind == surface.Tool && it.Approved != "" {
				addHint(known, pin.Server, it.Name, it.Approved)
			}
		}
	}
	return nil
}

// addHint enters one tool. Of several tools of one name all have to say that they read.
func addHint(known map[string]counterfactual.Hint, server, name, definition string) {
	var doc strictjson.Doc
	if doc.Reset([]byte(definition), strictjson.Limits{}) != nil {
		return
	}
	a := doc.Root().Get("annotations")
	reads := a.Get("readOnlyHint").Kind()
	hint := counterfactual.Hint{Reads: reads == 't', Acts: reads == 'f' || a.Get("destructiveHint").Kind() == 't' && reads != 't'}
	prefix := strings.NewReplacer("_", "-", ".", "-").Replace(server)
	for _, key := range []string{name, prefix + "_" + name, "mcp__" + server + "__" + name} {
		if old, ok := known[key]; ok {
			known[key] = counterfactual.Hint{Reads: old.Reads && hint.Reads, Acts: old.Acts || hint.Acts}
		} else {
			known[key] = hint
		}
	}
}
