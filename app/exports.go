// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/record/outbound"
)

// exports are the senders of a gateway that are under way.
type exports struct {
	mu      sync.Mutex
	senders []*outbound.Sender
	names   []string
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// openExports starts to send the records of the log to those that the rules name.
func (b *Gateway) openExports(r *rules.Rules) error {
	list := r.Evidence.Exports
	if b.records == nil {
		if len(list) > 0 {
			b.log.Warn("nothing is exported: evidence is off, so there is no log")
		}
		return nil
	}
	var all []*outbound.Sender
	var names []string
	for i := range list {
		sink, err := list[i].Sink(os.Stdout)
		if err == nil {
			var s *outbound.Sender
			s, err = outbound.New(outbound.Options{Name: list[i].Name, Format: list[i].Format, Sink: sink, Store: b.store.Ledger(), FromBegin: list[i].FromBegin, Log: b.log})
			all, names = append(all, s), append(names, list[i].Name)
		}
		if err != nil {
			return fmt.Errorf("up: evidence.export: %w", err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	b.exports.mu.Lock()
	b.exports.senders, b.exports.names, b.exports.stop = all, names, stop
	b.exports.mu.Unlock()
	for _, s := range all {
		b.exports.done.Go(func() { s.Run(ctx) })
	}
	return nil
}

// tell says how far each export is; -1 stands for what another process knows.
func (e *exports) tell(tell func(name string, behind, dropped int64)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, s := range e.senders {
		f := s.Figures()
		if !f.Sends {
			f.Behind = -1
		}
		tell(e.names[i], f.Behind, f.Dropped)
	}
}

// closeExports ends them. What was not sent is sent by the next process.
func (b *Gateway) closeExports() {
	if b.exports.stop != nil {
		b.exports.stop()
		b.exports.done.Wait()
	}
}
