// SPDX-License-Identifier: Apache-2.0

// Package guard is a proxy in front of a model's provider that holds a privileged tool call until a counterfactual run has said where it comes from.
//
// It speaks OpenAI's chat completions and responses, Anthropic's messages and Google's
// generateContent. Text passes through as it comes. An answer that proposes a privileged call while
// untrusted text is in the context is held from the call on; the same context is
// asked again with pieces withheld; and then the answer goes on as it was, is
// replaced by the one that the model gives without the text that took control, or
// ends with a constant message and an evidence id. What was held, and why, goes to
// the Sink before the client hears of it.
//
// docs/spec/guard.md says what is inspected and what is not.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Options are what a Guard is made of. Upstream has to be set; zero members stand
// for the values named.
type Options struct {
	// Flag is " --db X", which the commands in log lines need to find the store; "" where they find it without.
	Flag string
	// Upstream is the provider: https://api.openai.com/v1. What clients ask for under
	// /v1 is asked for under its path; without one, under /v1. What they ask for under
	// /model is asked for under its path and /model. It is https unless its host is this
	// machine.
	Upstream string
	// Key signs every request to the upstream, in the place of the client's credentials,
	// which are then for this guard: see Auth. The zero Key: the client's go there.
	Key llm.Key
	// AWS signs every request to the upstream instead, for Amazon Bedrock; nil: no.
	// A signature of a client fits the address of this guard, and is never passed on.
	AWS *sigv4.Signer
	// Auth says who may ask; nil: whoever can connect.
	Auth  auth.Authenticator
	Scope string // that Auth has to find; "": whoever is known

	// Pass names routes that are forwarded although nothing inspects their answers, beside
	// those that the package knows, such as "GET /v1/files/*?limit&after". A * stands for
	// one segment.
	Pass []string
	// Headers names further headers of a request that go out with its probes: those by which
	// a gateway on the way knows whose request it is. A * at the end stands for any characters.
	Headers []string

	// Audit holds nothing: what would have been done is recorded.
	Audit bool
	// Fail says what happens to what was not decided. Its zero value holds privileged
	// calls.
	Fail counterfactual.Undecided
	// Buffer holds every answer whole, so that each can be replaced by a repaired one.
	Buffer bool

	// Policy says which calls are privileged; nil: counterfactual.GuessPrivileges.
	Policy *counterfactual.Privileges
	// Frame verifies the fences of a gateway of the same installation, so that segments
	// have a known origin; nil: none has. It is asked for each request, since keys are rotated.
	Frame func() frame.Key
	// SharedHosts are further hosts of many owners: see counterfactual.ParseOptions.
	SharedHosts []string
	// UntrustedTool says of which tools the descriptions are third-party text; nil: of none.
	UntrustedTool func(name string) bool
	// Trust is how far a source is trusted, in thousandths; nil: not at all.
	Trust func(counterfactual.Source) int
	// Capsules group the segments of some sources; the first with a pattern that matches counts.
	Capsules []Capsule
	// AttenuateBelow is the trust, in thousandths, below which a repaired answer is made with a
	// segment shown as quoted data; 0: none is.
	AttenuateBelow int
	// Verdicts says what each verdict does; what it does not name does delegation.Default.
	Verdicts delegation.Policy
	Planner  Planner
	// Rules are the operator's about the values of calls; nil: there are none. A call that they
	// name is looked at whatever it is, and whether the context holds third-party text or not.
	Rules delegation.Rules
	// Task says what counts as the user's words; "": TaskDeclared.
	Task Task
	// DangerouslyIgnoreReaders lets calls that are not privileged reach any address.
	DangerouslyIgnoreReaders bool
	Rates                    counterfactual.Rates
	Strategy                 counterfactual.Strategy
	Severity                 counterfactual.Bands
	Refine                   bool // look for the span within each segment found

	// Calls, Millis and Concurrency bound a decision: 12, 60,000, 4.
	Calls, Concurrency int
	Millis             int64
	// TokenFactor times what the held answer has cost is what a decision may cost, 5;
	// and MinTokens in any case, 20,000: a short context is cheap to ask again.
	TokenFactor, MinTokens int64

	MaxRequest int // bytes; 32 MiB
	maxAnswer  int // bytes of an answer that is held; 8 MiB
	MaxActive  int // requests under way; 256. Others get 503, or 429: see MaxBodies.
	// MaxBodies bounds the bodies and answers of all inspected requests under way, in bytes; 128 MiB.
	// It is twice MaxRequest at least. Of this and of MaxActive nobody that Auth knows
	// has more than is left for others, which is half for one alone.
	MaxBodies int64
	maxAudits int           // runs of Audit under way; 4. Others are counted as not inspected.
	idle      time.Duration // without a byte from the upstream; 5 min
	// Patience is for the body of a request, beside a second for each 16 KiB; 30 s.
	Patience time.Duration
	Beat     time.Duration // between signs of life while a stream is held; 5 s

	Hooks Hooks
	Log   *slog.Logger // nil: nothing is logged

	// Transport carries everything; nil: connections to Upstream and nowhere else. It is for
	// tests and simulations.
	Transport http.RoundTripper
	// dangerouslyPlainHTTP lets Upstream be http for any host.
	dangerouslyPlainHTTP bool
}

// A Guard is an http.Handler. Close ends what it does behind its answers.
type Guard struct {
	o        Options
	upstream upstream
	headers  []string // Options.Headers, in small letters
	carrier  http.RoundTripper
	own      *http.Transport
	clients  map[format.Name]*llm.Endpoint
	policy   *counterfactual.Privileges
	active   *intake.Budget // places
	bodies   *intake.Reader
	audits   chan struct{}
	behind   context.Context
	end      context.CancelFunc
	routes   []route
	handler  http.Handler
	counters *counters
	plans    plans
	ahead    sync.WaitGroup // plans that are asked for before a call needs them
	places   chan struct{}  // for these

}

// New checks o.
func New(o Options) (*Guard, error) {
	root, plain, err := egress.Base(o.Upstream, o.dangerouslyPlainHTTP)
	if err != nil {
		return nil, fmt.Errorf("guard: upstream: %w", err)
	}
	up, err := upstreamOf(root)
	if err != nil {
		return nil, fmt.Errorf("guard: upstream: %w", err)
	}
	switch {
	case o.AWS != nil && !o.Key.IsZero():
		return nil, errors.New("guard: a key and keys for Amazon Bedrock exclude each other")
	case o.AWS != nil && o.AWS.Region == "":
		return nil, errors.New("guard: the region of Amazon Bedrock is not known: name it (guard.aws.region)")
	}
	if o.Calls < 0 || o.Millis < 0 || o.Concurrency < 0 || o.TokenFactor < 0 || o.MinTokens < 0 {
		return nil, errors.New("guard: a bound is negative")
	}
	o.setDefaults()
	g := &Guard{o: o, upstream: up, carrier: o.Transport, policy: o.Policy, counters: newCounters(),
		active: intake.NewBudget(int64(o.MaxActive)), audits: make(chan struct{}, o.maxAudits),
		places: make(chan struct{}, max(o.MaxActive/8, 4)),
		bodies: &intake.Reader{Memory: intake.NewBudget(intake.BodyCost * o.MaxBodies), Most: o.MaxRequest, Patience: o.Patience}}
	if g.policy == nil {
		g.policy = counterfactual.GuessPrivileges()
	}
	if g.carrier == nil {
		g.own = egress.Transport(egress.Options{LoopbackOnly: plain && !o.dangerouslyPlainHTTP, Idle: 64})
		g.carrier = g.own
	}
	if o.AWS != nil {
		g.carrier = o.AWS.Transport(g.carrier)
	}
	if err := g.endpoints(); err != nil {
		return nil, err
	}
	if g.routes, err = compileRoutes(o.Pass); err != nil {
		return nil, err
	}
	for _, h := range o.Headers {
		if name := strings.TrimSuffix(h, "*"); len(name) < 2 || !isSegment(name) || strings.ContainsAny(name, "~:@.") {
			return nil, fmt.Errorf("guard: header %+.64q: want the name of a header, or its beginning and a *", h)
		}
		g.headers = append(g.headers, strings.ToLower(h))
	}
	g.behind, g.end = context.WithCancel(context.Background())
	g.handler = g.serve()
	return g, nil
}

func (g *Guard) gate() gate {
	return gate{policy: g.policy, readers: !g.o.DangerouslyIgnoreReaders, rules: g.o.Rules}
}

// endpoints are the clients that probes go through. Their attempts are few: each
// retry is charged to the decision.
func (g *Guard) endpoints() error {
	g.clients = map[format.Name]*llm.Endpoint{}
	for _, f := range format.All {
		e, err := llm.New(llm.Options{
			Format: f.Name(), BaseURL: g.upstream.origin, Model: "of-the-request", Transport: g.carrier,
			Concurrency: 64, Retries: 2, MaxWait: 5 * time.Second, Timeout: time.Duration(g.o.Millis) * time.Millisecond,
			DangerouslyPlainHTTP: g.o.dangerouslyPlainHTTP,
		})
		if err != nil {
			return fmt.Errorf("guard: %w", err)
		}
		g.clients[f.Name()] = e
	}
	return nil
}

func (o *Options) setDefaults() {
	def(&o.Calls, 12)
	def(&o.Concurrency, 4)
	def(&o.Millis, 60_000)
	def(&o.TokenFactor, 5)
	def(&o.MinTokens, 20_000)
	def(&o.MaxRequest, 32<<20)
	def(&o.maxAnswer, 8<<20)
	def(&o.MaxActive, 256)
	def(&o.MaxBodies, 128<<20)
	o.MaxBodies = max(o.MaxBodies, 2*int64(o.MaxRequest+1))
	def(&o.maxAudits, 4)
	def(&o.idle, 5*time.Minute)
	def(&o.Patience, 30*time.Second)
	def(&o.Beat, 5*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func def[T int | int64 | time.Duration](v *T, usual T) {
	if *v <= 0 {
		*v = usual
	}
}

// ServeHTTP implements http.Handler. What is asked for is what RequestURI says, the
// request target as it came.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.handler.ServeHTTP(w, r) }

// Close ends runs of Audit that are under way and closes idle connections. It waits
// for nobody but those runs, and for them no longer than ctx.
func (g *Guard) Close(ctx context.Context) error {
	g.end()
	for range cap(g.audits) {
		select {
		case g.audits <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.ahead.Wait() // each ends with behind
	if g.own != nil {
		g.own.CloseIdleConnections()
	}
	return nil
}

func (g *Guard) runner(f format.Name) *run.Runner {
	return run.New(run.Options{Client: g.clients[f], Observe: g.step})
}

// step counts a probe and writes it into the log.
func (g *Guard) step(s run.Step) {
	g.counters.probe(&s)
	g.o.Log.Debug("probe", "evidence", s.Run, "purpose", s.Purpose, "variant", s.Variant, "replicate", s.Replicate,
		"recurs", s.Recurs, "failure", s.Failure, "attempts", s.Attempts, "tokens", s.Tokens, "cached", s.Cached, "ms", s.Elapsed,
		"request", s.Request, "response", s.Response, "drift", s.Drift)
}
