// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Store keeps the record of a run that is under way, so that another process can
// go on with it.
type Store interface {
	// SaveRun replaces what is kept of the run of that id.
	SaveRun(ctx context.Context, id string, record []byte) error
	// LoadRun returns it; nil if there is nothing.
	LoadRun(ctx context.Context, id string) ([]byte, error)
}

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
	// Likelihood answers in the place of Client, for problems that have one; nil: Client does.
	Likelihood *Likelihood
	// Store keeps the record after every answer; nil: nobody does.
	Store Store
	// Observe is called after every question, by one goroutine of a run; it must not
	// block. nil: nobody looks.
	Observe func(Step)
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
	ID       string // names it in the Store and in Steps
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

// ErrStore means that a record could not be read or written. What was found out
// until then is in the Report.
var ErrStore = errors.New("run: the record could not be kept")

// Run runs the job to its end. Where the Store has a record of that id it goes on
// with it. The Report is never nil if the error is nil or ErrStore; that a ceiling
// or ctx has ended the run is no error, and stands in the Result.
func (r *Runner) Run(ctx context.Context, j Job) (*Report, error) {
	plan, err := r.plan(ctx, &j)
	if err != nil {
		return nil, err
	}
	if (plan.Problem().Likelihood == nil) != (r.o.Likelihood == nil) {
		return nil, errors.New("run: the problem is of another kind of oracle")
	}
	w := newWork(r, &j, plan)
	err = w.drive(ctx)
	return w.report(), err
}

// plan is a new one, or the one that the Store has the record of.
func (r *Runner) plan(ctx context.Context, j *Job) (*counterfactual.Plan, error) {
	if r.o.Store != nil {
		record, err := r.o.Store.LoadRun(ctx, j.ID)
		if err != nil {
			return nil, errors.Join(ErrStore, err)
		}
		if record != nil {
			plan, err := counterfactual.Resume(record)
			if err != nil {
				return nil, err
			}
			if plan.Problem().Assembly != j.Assembly.ID() {
				return nil, errors.New("run: the record is of another assembly")
			}
			return plan, nil
		}
	}
	return counterfactual.NewPlan(j.Problem)
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
	limits := llm.Limits{Calls: max(int64(b.Calls-spent.Calls), 0) * r.o.Likelihood.requests(), Tokens: llm.Unlimited, Cost: llm.Unlimited}
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
func (w *work) drive(ctx context.Context) error {
	deadline := w.since.Add(time.Duration(w.plan.Problem().Budget.Millis) * time.Millisecond)
	asking, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var failed error
	for {
		if failed == nil && asking.Err() == nil {
			w.begin(asking)
		}
		if w.out == 0 {
			w.ended(ctx, asking)
			if ctx.Err() != nil {
				return failed // what is kept is not ended: it can be gone on with
			}
			return errors.Join(failed, w.save(ctx))
		}
		select {
		case a := <-w.results:
			w.take(a)
			if failed == nil && ctx.Err() == nil {
				failed = w.save(ctx)
			}
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
	a.obs.Elapsed = time.Since(w.since).Milliseconds()
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

func (w *work) save(ctx context.Context) error {
	if w.r.o.Store == nil {
		return nil
	}
	record, err := w.plan.Result().Record()
	if err == nil {
		err = w.r.o.Store.SaveRun(ctx, w.job.ID, record)
	}
	if err != nil {
		return errors.Join(ErrStore, err)
	}
	return nil
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
