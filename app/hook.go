// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/hook"
	"github.com/pellucid-mcp/pellucid/boundary/hook/socket"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// HookOptions say how events of hosts are answered.
type HookOptions struct {
	Config     string // the configuration; by default that of the user
	References rules.Options
	Database   string // where the store is, unless the configuration names one
	Log        func(*rules.Rules) *slog.Logger
}

// A Hook is the boundary for the output of the tools of one agent's host. It opens only the parts that its rules ask for.
type Hook struct {
	boundary

	host      *hook.Host
	options   hook.Options
	inspector *gateway.Inspector
	config    string
	files     rules.Files
}

// OpenHook opens the parts that the configuration asks for. Their only server is the host.
func OpenHook(name string, o HookOptions) (_ *Hook, err error) {
	host, found := hook.HostOf(name)
	if !found {
		return nil, fmt.Errorf("hook: %s has no hooks", finding.Quote(name))
	}
	h := &Hook{host: host, config: o.configFile(), files: rules.Files{}}
	r, elsewhere, err := rules.LoadOne(h.config, o.References.Into(h.files), rules.One{Name: host.Name, Command: []string{host.Name}})
	if err != nil {
		return nil, err
	}
	h.log = o.Log(r)
	if len(elsewhere) > 0 {
		h.log.Warn("the configuration has mistakes that do not concern this host: pellucid doctor lists them", "first", elsewhere[0].String())
	}
	h.rules.Store(r)
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	h.files.Add(dir.File(local.CurrentKey))
	n, err := h.needsOf(r, install.Database(cmp.Or(r.Store.Path, r.Store.URL.Reveal(), o.Database)))
	if err != nil {
		return nil, err
	}
	if err := h.openFor(r, n); err != nil {
		return nil, err
	}
	treatment := h.treatment(r, r.Servers[0], h.log)
	if h.inspector, err = gateway.NewInspector(treatment); err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	h.options = hook.Options{Boundary: h.inspector, Key: treatment.Key}
	return h, nil
}

func (o HookOptions) configFile() string { return cmp.Or(o.Config, install.ConfigFile()) }

// errTime means that an event was not decided in time.
var errTime = errors.New("it took too long")

// Answer returns the answer to an event of the host. If the event cannot be decided, the log and the record say so, and
// the host goes on.
func (h *Hook) Answer(ctx context.Context, event []byte) []byte {
	ctx, stop := context.WithTimeout(ctx, socket.DecideWait) // it ends the questions to classifiers
	defer stop()
	answered := make(chan []byte, 1)
	go func() {
		answer, err := h.host.Answer(ctx, h.options, event)
		if err != nil {
			answer = h.passUnchecked(err)
		}
		answered <- answer
	}()
	select {
	case answer := <-answered:
		return answer
	case <-time.After(socket.DecideWait + time.Second):
		return h.passUnchecked(errTime)
	}
}

func (h *Hook) passUnchecked(err error) []byte {
	h.log.Warn("an event of the host was not decided: the output of its tool passed as it was", "server", h.host.Name, "error", err)
	h.inspector.RecordUninspected()
	return hook.Unchecked(err.Error())
}

// Close lets go of everything.
func (h *Hook) Close() {
	h.closeJudges(time.Second)
	h.close()
}

// Hooks answer events of every host, for clients that come and go. They see a changed configuration, and a changed key, at
// the next event.
type Hooks struct {
	options HookOptions

	mu   sync.RWMutex // is held for reading while an event is decided
	open map[string]*Hook
}

// maxHookMemory bounds what all events that are under way may need.
const maxHookMemory = 256 << 20

// ServeHooks answers the events at a socket of this user, as socket.Server does.
func ServeHooks(ctx context.Context, name string, o HookOptions) error {
	workDir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("hook: %w", err)
	}
	folder, err := socket.Enter()
	if err != nil {
		return err
	}
	h := &Hooks{options: o, open: map[string]*Hook{}}
	memory := intake.NewBudget(maxHookMemory)
	s, err := socket.Listen(folder, name, socket.Options{
		Answer:  h.Answer,
		Reserve: func(ctx context.Context, n int64) (func(), error) { return memory.Wait(ctx, "", intake.BodyCost*n) },
		Idle:    10 * time.Minute,
	})
	if err == nil {
		err = os.Chdir(workDir) // where variables with relative paths count
	}
	if err != nil {
		return err
	}
	defer h.Close()
	resident.DropStartup()
	return s.Serve(ctx)
}

// Answer returns the answer to an event of the host of that name. It is nil if the configuration cannot be used: pellucid
// hook tells the user.
func (s *Hooks) Answer(ctx context.Context, name string, event []byte) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if h := s.open[name]; h == nil || h.isStale(s.options) {
		s.mu.RUnlock()
		s.reopen(name)
		s.mu.RLock()
	}
	if h := s.open[name]; h != nil {
		return h.Answer(ctx, event)
	}
	return nil
}

// isStale reports whether a file has changed since it was read.
func (h *Hook) isStale(o HookOptions) bool { return h.config != o.configFile() || h.files.Changed() }

func (s *Hooks) reopen(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.open[name]
	switch {
	case h != nil && !h.isStale(s.options): // by another event
		return
	case h != nil:
		h.Close()
		delete(s.open, name)
	}
	if h, err := OpenHook(name, s.options); err == nil {
		s.open[name] = h
	}
}

// Close lets go of everything.
func (s *Hooks) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.open {
		h.Close()
	}
}
