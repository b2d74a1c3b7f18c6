// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/egress"
)

// Options say which model is asked, and within which bounds. Format, BaseURL and
// Model have to be set.
type Options struct {
	Format format.Name
	// BaseURL is what the format's path is appended to: https://api.openai.com/v1,
	// https://api.anthropic.com/v1, http://127.0.0.1:11434/v1. It is https unless its
	// host is this machine; it holds no user, query or fragment.
	BaseURL string
	Model   string
	Key     Key // the zero Key for endpoints that want none

	Timeout     time.Duration // of one attempt; 0 = 2 min. Bound the whole by the context.
	Idle        time.Duration // without a byte of an answer that has begun; 0 = 30 s
	MaxRequest  int           // bytes; 0 = 16 MiB, at most 32 MiB
	MaxAnswer   int           // bytes, of a stream altogether; 0 = 8 MiB, at most 32 MiB
	Retries     int           // further attempts; 0 = 3, negative = none
	Backoff     time.Duration // before the second attempt, doubled each time; 0 = 500 ms
	MaxWait     time.Duration // before any attempt; 0 = 30 s. Who asks for more is not asked again.
	Concurrency int           // attempts at the same time; 0 = 4
	BreakAfter  int           // failures in a row open the circuit; 0 = 5, negative = never
	BreakFor    time.Duration // how long it stays open; 0 = 30 s

	Budgets []*Budget     // charged by every request
	Observe func(Attempt) // called after every attempt, by the goroutine of Complete

	// Members that some models refuse or want.
	NoTemperature       bool // leave temperature out
	MaxCompletionTokens bool // format.Chat: max_completion_tokens instead of max_tokens

	// Transport carries the exchanges; nil = a connection to BaseURL.
	Transport http.RoundTripper
	// Sign makes a carrier that signs the whole of a request before it carries it; nil = the key alone signs.
	Sign func(http.RoundTripper) http.RoundTripper

	// DangerouslyPlainHTTP lets BaseURL be http for any host: keys and conversations
	// are readable on the way, and answers can be changed.
	DangerouslyPlainHTTP bool
	// DangerouslyRoots replaces the system's certificate authorities.
	DangerouslyRoots *x509.CertPool
}

// An Endpoint is a Client of one model at one address.
type Endpoint struct {
	o       Options
	format  format.Format
	base    string // URL, without a slash at its end
	slots   chan struct{}
	breaker circuitbreaker.CircuitBreaker[any] // nil = none
	carrier http.RoundTripper
	own     *http.Transport // carrier, if it is ours to close
}

// New checks o. Whoever is done with the Endpoint closes it.
func New(o Options) (*Endpoint, error) {
	f := format.Of(o.Format)
	if f == nil {
		return nil, errors.New("llm: an unknown wire format")
	}
	if o.Model == "" {
		return nil, errors.New("llm: no model")
	}
	base, plain, err := egress.Base(o.BaseURL, o.DangerouslyPlainHTTP)
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	o.setDefaults()
	e := &Endpoint{o: o, format: f, base: base, slots: make(chan struct{}, o.Concurrency)}
	if o.BreakAfter > 0 {
		e.breaker = circuitbreaker.NewBuilder[any]().WithFailureThreshold(uint(o.BreakAfter)).
			WithSuccessThreshold(1).WithDelay(o.BreakFor).Build()
	}
	if e.carrier = o.Transport; o.Transport == nil {
		e.own = egress.Transport(egress.Options{LoopbackOnly: plain && !o.DangerouslyPlainHTTP, Idle: o.Concurrency, Roots: o.DangerouslyRoots})
		e.carrier = e.own
	}
	if o.Sign != nil {
		e.carrier = o.Sign(e.carrier)
	}
	return e, nil
}

// maxBytes is the longest request or answer that is taken.
const maxBytes = 32 << 20

func (o *Options) setDefaults() {
	def(&o.Timeout, 2*time.Minute)
	def(&o.Idle, 30*time.Second)
	def(&o.MaxRequest, 16<<20)
	def(&o.MaxAnswer, 8<<20)
	def(&o.Backoff, 500*time.Millisecond)
	def(&o.MaxWait, 30*time.Second)
	def(&o.Concurrency, 4)
	def(&o.BreakFor, 30*time.Second)
	o.MaxRequest, o.MaxAnswer = min(o.MaxRequest, maxBytes), min(o.MaxAnswer, maxBytes)
	o.Backoff = min(o.Backoff, o.MaxWait)
	switch {
	case o.Retries == 0:
		o.Retries = 3
	case o.Retries < 0:
		o.Retries = 0
	}
	if o.BreakAfter == 0 {
		o.BreakAfter = 5
	}
}

func def[T int | time.Duration](v *T, usual T) {
	if *v <= 0 {
		*v = usual
	}
}

// Close closes connections that are idle. Requests under way are not ended.
func (e *Endpoint) Close() {
	if e.own != nil {
		e.own.CloseIdleConnections()
	}
}
