// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Step is one question and what came of it: a line of the audit trail. It holds
// constants, digests and numbers.
type Step struct {
	Run       string
	Purpose   counterfactual.Purpose
	Variant   counterfactual.Kind
	Replicate int
	Failure   counterfactual.Failure
	Recurs    bool // any target
	Attempts  int  // made: retries cost as well
	Tokens    int64
	Cached    int64 // of these: read from the provider's cache
	Elapsed   int64 // milliseconds since the run began
	Request   string
	Response  string
	Drift     bool // this is not the model, or not the fingerprint, of the first answer
}

// Options are what a Runner is made of. Client has to be set.
type Options struct {
	Client llm.Client
	// Observe is called after every question, by one goroutine of a run; it must not
	// block. nil: nobody looks.
	Observe func(Step)
	// Stable leaves out of a record what differs between runs that come to the same: times, and what a provider
	// writes around an answer.
	Stable bool
	// maxKept bounds the bytes of answers that a run keeps for its repair; 0 = 32 MiB.
	maxKept int
}

// A Runner runs plans. It is safe for concurrent use.
type Runner struct{ o Options }

// New makes a Runner.
func New(o Options) *Runner {
	if o.maxKept <= 0 {
		o.maxKept = 32 << 20
	}
	return &Runner{o}
}

// A Job is one run.
type Job struct {
	ID       string // names it in Steps
	Assembly *counterfactual.Assembly
	Judge    *counterfactual.Judge
	Problem  counterfactual.Problem
	// Header goes out with every request, and Path is where it is asked: see llm.Request.
	Header http.Header
	Path   string
}

// A Report is what a run has come to.
type Report struct {
	Result *counterfactual.Result
	// Repaired is the body of the answer that Result.Repair names; nil if there is
	// none, or it was not kept.
	Repaired []byte
	// Spent is what was charged for the attempts, retries included; it never exceeds
	// the problem's budget unless a provider uses more than it was allowed.
	Spent llm.Spent
}

// Run runs the job to its end. That a ceiling or ctx has ended it is no error, and stands in the Result.
func (r *Runner) Run(ctx context.Context, j Job) (*Report, error) {
	plan, err := counterfactual.NewPlan(j.Problem)
	if err != nil {
		return nil, err
	}
	w := newWork(r, &j, plan)
	w.drive(ctx)
	return w.report(), nil
}

// work is one run under way. Everything but ask runs in one goroutine.
type work struct {
	r      *Runner
	job    *Job
	plan   *counterfactual.Plan
	budget *llm.Budget
	answer int64 // tokens of an answer, at most
	since  time.Time

	results chan reply
	out     int
	model   string            // of the first answer
	kept    map[string][]byte // answers by digest
	size    int
}

// A reply is what came of a probe.
type reply struct {
	probe    counterfactual.Probe
	obs      counterfactual.Observation
	body     []byte
	attempts int
	cached   int64
	stop     counterfactual.StopReason // a ceiling that was found only on the way
}

func newWork(r *Runner, j *Job, plan *counterfactual.Plan) *work {
	b, spent := plan.Problem().Budget, plan.Spent()
	limits := llm.Limits{Calls: max(int64(b.Calls-spent.Calls), 0), Tokens: llm.Unlimited}
	if b.Tokens > 0 {
		limits.Tokens = max(b.Tokens-spent.Tokens, 0)
	}
	return &work{
		r: r, job: j, plan: plan, budget: llm.NewBudget(limits), answer: b.AnswerTokens,
		since: time.Now().Add(-time.Duration(spent.Millis) * time.Millisecond), kept: map[string][]byte{},
		results: make(chan reply, b.Concurrency),
	}
}

// drive asks until the plan has no more questions.
func (w *work) drive(ctx context.Context) {
	deadline := w.since.Add(time.Duration(w.plan.Problem().Budget.Millis) * time.Millisecond)
	asking, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for {
		if asking.Err() == nil {
			w.begin(asking)
		}
		if w.out == 0 {
			w.ended(ctx, asking)
			return
		}
		select {
		case a := <-w.results:
			w.take(a)
		case <-asking.Done():
			w.ended(ctx, asking)
			w.take(<-w.results) // each ends with its context
		}
	}
}

// ended tells the plan why nothing more is asked, if it does not know.
func (w *work) ended(ctx, asking context.Context) {
	switch {
	case ctx.Err() != nil:
		w.plan.Stop(counterfactual.StopCanceled)
	case asking.Err() != nil && !w.plan.Done():
		w.plan.Stop(counterfactual.StopTime)
	}
}

// begin asks what the plan wants to know now. The first question of a run goes out
// alone if the plan has only one; the provider's cache of what all variants begin
// with is warm for the others then.
func (w *work) begin(ctx context.Context) {
	for _, p := range w.plan.Next(cap(w.results) - w.out) {
		w.out++
		go func() { w.results <- w.ask(ctx, p) }()
	}
}

// take gives an answer to the plan.
func (w *work) take(a reply) {
	w.out--
	if !w.r.o.Stable {
		a.obs.Elapsed = time.Since(w.since).Milliseconds()
	}
	drift := a.obs.Model != "" && w.model != "" && a.obs.Model != w.model
	if w.model == "" {
		w.model = a.obs.Model
	}
	if a.body != nil && w.size+len(a.body) <= w.r.o.maxKept {
		w.size += len(a.body)
		w.kept[a.obs.Response] = a.body
	}
	if a.stop != "" {
		w.plan.Stop(a.stop)
	}
	w.plan.Observe(a.obs)
	if w.r.o.Observe == nil {
		return
	}
	s := Step{
		Run: w.job.ID, Purpose: a.probe.Purpose, Variant: a.probe.Variant.Kind, Replicate: a.probe.Replicate, Failure: a.obs.Failure,
		Attempts: a.attempts, Tokens: a.obs.Tokens, Cached: a.cached, Elapsed: a.obs.Elapsed, Request: a.obs.Request, Response: a.obs.Response, Drift: drift,
	}
	for _, o := range a.obs.Recurrences {
		s.Recurs = s.Recurs || o.Recurs
	}
	w.r.o.Observe(s)
}

func (w *work) report() *Report {
	o := &Report{Result: w.plan.Result(), Spent: w.budget.Spent()}
	if o.Result.Repair != nil {
		o.Repaired = w.kept[o.Result.Repair.Response]
	}
	return o
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
