// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/format"
)

// An AuditQueue keeps what is to be run behind an answer, until a worker of this
// process or of another one calls [Guard.RunAudit] with it.
type AuditQueue interface {
	Put(ctx context.Context, id string, work []byte) error
}

// auditWork is what a worker has to know of an exchange. It holds the conversation, and
// no credentials.
type auditWork struct {
	Format    string
	Body      []byte
	Model     string
	Principal string
	Task      string
	Path      string              // at which probes are asked
	KeyIn     string              // header in which the provider expects a key
	Header    map[string][]string // that says which version of an interface is spoken
	Said      counterfactual.Answer
	Input     int64
	Output    int64
	Strange   bool
	Fetched   bool
}

const auditPutWait = 5 * time.Second

// auditLater runs a decision behind the answer's back, or has it run.
func (g *Guard) auditLater(x *exchange, a *answer) {
	if g.o.Audits != nil {
		g.putAudit(x, a)
		return
	}
	select {
	case g.audits <- struct{}{}:
	default:
		g.counters.exchanged("audit-skipped")
		return
	}
	go func() {
		defer func() { <-g.audits }()
		if g.behind.Err() == nil {
			g.decide(g.behind, x, a, true, true)
		}
	}()
}

func (g *Guard) putAudit(x *exchange, a *answer) {
	w := auditWork{Format: string(x.f.Name()), Body: x.body, Model: x.model, Principal: x.principal, Task: x.task, Path: x.path, KeyIn: x.keyIn, Header: map[string][]string{},
		Said: a.said, Input: a.input, Output: a.output, Strange: a.strange, Fetched: a.fetched}
	for name, values := range x.header {
		if strings.HasPrefix(name, "Anthropic-") {
			w.Header[name] = values
		}
	}
	b, err := json.Marshal(w)
	if err == nil {
		ctx, stop := context.WithTimeout(g.behind, auditPutWait)
		defer stop()
		err = g.o.Audits.Put(ctx, x.id, b)
	}
	if err != nil {
		g.counters.exchanged("audit-skipped")
		g.o.Log.Error("an audit could not be queued", "evidence", x.id)
	}
}

var errAudit = errors.New("guard: no audit can be read there")

// RunAudit makes the decision that was put into the queue under id, and has it recorded
// like any other of Audit. Where ctx ends it returns its error and records nothing: with
// the same store, which keeps the records of runs, another call goes on from there.
func (g *Guard) RunAudit(ctx context.Context, id string, work []byte, store run.Store) error {
	var w auditWork
	if json.Unmarshal(work, &w) != nil {
		return errAudit
	}
	for _, f := range format.All {
		if string(f.Name()) != w.Format {
			continue
		}
		x := &exchange{f: f, id: id, body: w.Body, model: w.Model, principal: w.Principal, task: w.Task, header: http.Header(w.Header)}
		x.path = cmp.Or(w.Path, g.upstream.usual(f, w.Model))
		if x.header == nil {
			x.header = http.Header{}
		}
		g.sign(x.header, w.KeyIn)
		d := &decider{g: g, x: x, canRepair: true, audit: true, store: store}
		d.decide(ctx, &answer{said: w.Said, input: w.Input, output: w.Output, strange: w.Strange, fetched: w.Fetched})
		if d.failed != nil {
			return d.failed
		}
		if d.out.reason != reasonTrusted && g.o.Hooks.Sink != nil && !d.out.recorded {
			return errors.New("guard: an audit was not recorded")
		}
		return nil
	}
	return errAudit
}
