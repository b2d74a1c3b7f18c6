// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/app/backtest"
	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// Bounds of backtests. A busy machine takes 50 µs for a record.
const (
	maxTried    = 100_000 // of the newest records; the command has no such bound
	trialTime   = time.Minute
	maxTrials   = 64 // that are kept, of all persons
	trialsOfOne = 4  // of a person
	atOnce      = 1  // that runs; the others wait, so that the gateway keeps its processors
)

// A trial is a backtest. It goes on when the page that began it is answered.
type trial struct {
	name  string
	who   Person // without a session: the outcome is for the same person with the same rights
	typed marked.Text
	ctx   context.Context
	end   context.CancelFunc

	mu         sync.Mutex
	done, size int64
	over       *triedView // nil: it runs or waits
}

// shown is what the page shows of it.
func (t *trial) shown() *triedView {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil {
		return t.over
	}
	return &triedView{Runs: true, Typed: t.typed, Done: count(t.done), Size: count(t.size), State: pathTo("policy/backtest/" + t.name), Here: pathTo("policy", "trial", t.name)}
}

// trials are the backtests of this process.
type trials struct {
	mu   sync.Mutex
	list []*trial // the oldest first
	room chan struct{}
	gone sync.WaitGroup
	shut bool
}

// of returns the backtest of that name; nil: the person has none of that name.
func (ts *trials) of(name string, who Person) *trial {
	who.session = ""
	ts.mu.Lock()
	defer ts.mu.Unlock()
	i := slices.IndexFunc(ts.list, func(t *trial) bool { return t.name == name && reflect.DeepEqual(t.who, who) })
	if i < 0 {
		return nil
	}
	return ts.list[i]
}

// begin runs do for a person. The oldest backtests end and are forgotten where there are too many.
func (ts *trials) begin(who Person, typed marked.Text, size int64, do func(context.Context, *trial) *triedView) *trial {
	ctx, end := context.WithTimeout(context.Background(), trialTime)
	who.session = ""
	t := &trial{name: hold.NewID(), who: who, typed: typed, ctx: ctx, end: end, size: size}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.room == nil {
		ts.room = make(chan struct{}, atOnce)
	}
	own := 0
	for i := len(ts.list) - 1; i >= 0; i-- {
		old := ts.list[i]
		if old.who.ID == who.ID {
			own++
		}
		if old.who.ID == who.ID && own >= trialsOfOne || i <= len(ts.list)-maxTrials {
			old.end()
			ts.list = slices.Delete(ts.list, i, i+1)
		}
	}
	ts.list = append(ts.list, t)
	if ts.shut {
		end()
	}
	ts.gone.Go(func() {
		defer end()
		v := &triedView{Failed: true, Problem: marked.Of("the time of a backtest is over")}
		select {
		case ts.room <- struct{}{}:
			v = do(ctx, t)
			<-ts.room
		case <-ctx.Done():
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		v.Typed = typed
		t.over = v
	})
	return t
}

// close ends all backtests and waits for them.
func (ts *trials) close() {
	ts.mu.Lock()
	ts.shut = true
	for _, t := range ts.list {
		t.end()
	}
	ts.mu.Unlock()
	ts.gone.Wait()
}

// backtest begins to try the rules of a form, and leads to the page that shows what comes of it. It changes nothing else.
func (c *Console) backtest(q *request) answer {
	if c.opt.Ledger == nil {
		return missing("Policy", "There is no ledger, so there is nothing to try rules on.", "A gateway keeps one unless evidence is off.", "")
	}
	if err := q.ParseForm(); err != nil {
		return failed(err)
	}
	typed := q.PostForm.Get("rules")
	shown := marked.Of(typed)
	try, err := rules.ParseTrial([]byte(typed))
	if err != nil {
		return c.policyWith(q, &triedView{Typed: shown, Failed: true, Problem: marked.Of(err.Error())})
	}
	head, err := c.opt.Ledger.Head(q.Context())
	if err != nil {
		return failed(err)
	}
	o := backtest.Options{Trial: try, Size: head.Size, From: max(0, head.Size-maxTried), Examples: 3, Servers: q.who.Decides}
	if c.opt.Captures != nil && c.opt.Sealer != nil {
		o.Captures = func(ctx context.Context, id string) (*captures.Capture, error) {
			return captures.Read(ctx, c.opt.Captures, c.opt.Sealer, id, "", q.now)
		}
	}
	t := c.trials.begin(q.who, shown, o.Size-o.From, func(ctx context.Context, t *trial) *triedView { return c.tryRules(ctx, t, o) })
	return seeOther(pathTo("policy", "trial", t.name))
}

// tryRules is the outcome of a backtest.
func (c *Console) tryRules(ctx context.Context, t *trial, o backtest.Options) *triedView {
	o.Progress = func(done, _ int64) {
		t.mu.Lock()
		t.done = done - o.From
		t.mu.Unlock()
	}
	r, err := backtest.Run(ctx, c.opt.Ledger, o)
	if err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			c.opt.Log.Error("console: a backtest has failed", "error", err)
		}
		return &triedView{Failed: true, Problem: marked.Of(err.Error())}
	}
	v := &triedView{}
	v.fill(r)
	if o.From > 0 {
		v.Cut = "Only the newest " + count(maxTried) + " records were read. pellucid policy backtest reads all of them."
	}
	return v
}

// A trialProgress is how far a backtest is, for the script of the page.
type trialProgress struct {
	Done string `json:"done"`
	Over bool   `json:"over"`
}

// trialState says how far a backtest is.
func (c *Console) trialState(q *request) answer {
	t := c.trials.of(q.PathValue("trial"), q.who)
	if t == nil {
		return state{status: http.StatusNotFound, title: "Not found", says: "This backtest is not kept any more.", to: pathTo("policy"), toWord: "To the policy"}
	}
	v := t.shown()
	return data{trialProgress{string(v.Done), !v.Runs}}
}
