// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"slices"
	"sync"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An Observer watches the traffic of sessions, for metrics. It learns
// no text of a third party. Its methods may be called concurrently and must not block.
type Observer interface {
	// Session is told that a session with a server begins; ended is called once,
	// when it is over, and may be nil.
	Session(server string) (ended func(error))
	// Request is told of a request of the client; nil: nobody watches this one.
	Request(Request) Exchange
}

// A Request is what an Observer learns of a client's request.
type Request struct {
	Server string // label
	Method string // of the protocol, else frame.Other
	Bytes  int    // of its params
	// Version is the revision of the protocol that client and boundary speak, as the
	// request names it or the session has agreed on it; "" before that.
	Version string
}

// An Exchange watches one request up to its answer. Each method is called at most
// once and in this order; only Done is always called.
type Exchange interface {
	// Sent is told that the request goes to the server.
	Sent(tool string)
	// Answered is told that the server's answer has come, and how many bytes it has, before
	// it is looked at.
	Answered(size int)
	// Done is told that the client has its answer of size bytes, or will never get one.
	Done(o Outcome, size int)
}

// An Outcome says how a request ended.
type Outcome string

// The outcomes.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeToolError Outcome = "tool_error"  // the tool says that it failed
	OutcomeError     Outcome = "error"       // the server answered with an error
	OutcomeWithheld  Outcome = "withheld"    // a constant text was delivered in its place
	OutcomeRefused   Outcome = "refused"     // it never reached the server
	OutcomeBad       Outcome = "bad_answer"  // the answer was no acceptable message
	OutcomeTimeout   Outcome = "timeout"     // the server was silent for too long
	OutcomeGone      Outcome = "gone"        // the server, or the session, ended first
	OutcomeUnreached Outcome = "unreachable" // the server could not be asked
	OutcomeCancelled Outcome = "cancelled"   // by the client
)

// Tee returns a Sink that gives each decision to all sinks in their order, and
// fails if one of them does.
func Tee(sinks ...Sink) Sink { return tee(sinks) }

type tee []Sink

// Record implements Sink.
func (t tee) Record(d Decision) error {
	var err error
	for _, s := range t {
		err = errors.Join(err, s.Record(d))
	}
	return err
}

// watched is a call as an Observer sees it. Its methods do nothing where nobody watches.
type watched struct {
	exchange Exchange // nil: nobody watches
	withheld bool     // a constant text answers it; of the goroutine that delivers the answer

	mu   sync.Mutex // held while exchange is called, which must not block: its methods are called in their order
	over bool
}

// observeSession tells the Observer, if there is one, of the session.
func (r *relay) observeSession() (ended func(error)) {
	if r.cfg.Observer != nil {
		if ended = r.cfg.Observer.Session(r.cfg.Name); ended != nil {
			return ended
		}
	}
	return func(error) {}
}

// observe tells the Observer, if there is one, of the client's request m.
func (r *relay) observe(m *wire.Message, w *watched) {
	if r.cfg.Observer == nil {
		return
	}
	w.exchange = r.cfg.Observer.Request(Request{
		Server: r.cfg.Name, Method: methodLabel(m.Method), Bytes: len(m.Params.Raw()), Version: r.version(m.Params.Get("_meta")),
	})
}

// revisions are those that are spoken.
var revisions = wire.Versions()

// revision is the one of that name; "" if no revision has that name: text of a peer never becomes a label.
func revision(name string) string {
	if i := slices.Index(revisions, name); i >= 0 {
		return revisions[i]
	}
	return ""
}

// version is the revision of a request with that _meta.
func (r *relay) version(meta strictjson.Value) string {
	if v := revision(meta.Get(mcpmsg.KeyVersion).Text()); v != "" {
		return v
	}
	if agreed := r.agreed.Load(); agreed != nil {
		return *agreed
	}
	return ""
}

// revisionOf is the revision by which the answer to a call, or with nil a request of the server, is judged; "" if the session
// has not agreed on one.
func (r *relay) revisionOf(k *call) string {
	if k != nil && k.revision != "" {
		return k.revision
	}
	if agreed := r.agreed.Load(); agreed != nil && *agreed != mcpmsg.Modern {
		return *agreed
	}
	return ""
}

// sending notes that the request goes to the server now.
func (w *watched) sending(tool string) {
	if w.exchange == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.exchange.Sent(tool)
	}
}

// heardAnswer notes the server's answer.
func (w *watched) heardAnswer(m *wire.Message) {
	if w.exchange == nil {
		return
	}
	_, root, _ := partOf(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.exchange.Answered(len(root.Raw()))
	}
}

// giveUp notes that a constant text answers the call. w may be nil.
func (w *watched) giveUp() {
	if w != nil {
		w.withheld = true
	}
}

// done ends the watch; what comes after it is not heard of.
func (w *watched) done(o Outcome, size int) {
	if w.exchange == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over = true
		w.exchange.Done(o, size)
	}
}

// delivered ends the watch of a call that m answers, for which so many bytes went to the
// client.
func (w *watched) delivered(m *wire.Message, size int) {
	if w.exchange == nil {
		return
	}
	o := OutcomeOK
	switch {
	case m.Local:
		o = OutcomeUnreached
	case w.withheld:
		o = OutcomeWithheld
	case m.Kind == wire.ErrorResponse:
		o = OutcomeError
	case m.Result.Get("isError").Kind() == 't':
		o = OutcomeToolError
	}
	w.done(o, size)
}

// outcome is that of a call which a answers.
func (a answer) outcome() Outcome {
	switch a.code {
	case errTimeout.code:
		return OutcomeTimeout
	case errGone.code:
		return OutcomeGone
	case errBadAnswer.code:
		return OutcomeBad
	case errWithheld.code:
		return OutcomeWithheld
	case errUnsent.code:
		return OutcomeUnreached
	}
	return OutcomeRefused
}

// methods are those that a client asks by.
var methods = func() map[string]string {
	known := map[string]string{}
	add := func(list ...string) {
		for _, m := range list {
			known[m] = m
		}
	}
	add(mcpmsg.Ping, mcpmsg.SetLevel, mcpmsg.Subscribe, mcpmsg.Unsubscribe, mcpmsg.Listen)
	for _, row := range mcpmsg.Rows() {
		if row.Part == mcpmsg.Result {
			add(row.Method)
		}
	}
	return known
}()

// methodLabel is the method if the protocol has it, else frame.Other.
func methodLabel(method string) string {
	if known, ok := methods[method]; ok {
		return known
	}
	return frame.Other
}
