// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/hook"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// A Hook is the boundary for the output of the tools of one agent's host. It opens only the parts that its rules ask for.
type Hook struct {
	boundary

	host    *hook.Host
	options hook.Options
}

// OpenHook opens the parts that the rules ask for. Their only server is the host.
func OpenHook(r *rules.Rules, host *hook.Host, database install.Database, log *slog.Logger) (_ *Hook, err error) {
	h := &Hook{host: host}
	h.log = log
	h.rules.Store(r)
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	n, err := h.needsOf(r, database)
	if err != nil {
		return nil, err
	}
	if err := h.openFor(r, n); err != nil {
		return nil, err
	}
	treatment := h.treatment(r, r.Servers[0], log)
	inspector, err := gateway.NewInspector(treatment)
	if err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	h.options = hook.Options{Boundary: inspector, Key: treatment.Key}
	return h, nil
}

// Answer returns the answer to an event of the host. If the event cannot be decided, the log says so, and the host goes on.
func (h *Hook) Answer(ctx context.Context, event []byte) []byte {
	answer, err := h.host.Answer(ctx, h.options, event)
	if err != nil {
		h.log.Warn("an event of the host was not decided: the output of its tool passed as it was", "server", h.host.Name, "error", err)
		return hook.Unchecked(err.Error())
	}
	return answer
}

// Close lets go of everything.
func (h *Hook) Close() {
	h.closeJudges(time.Second)
	h.close()
}
