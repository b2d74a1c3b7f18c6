// SPDX-License-Identifier: Apache-2.0

// Package gateway is the boundary between MCP clients and servers: every message walks through one choke point.
//
// What a client sends passes as it is, but for the ids of requests. What a
// server sends passes [inspector.pass], whatever it is and on whichever route
// it came: there is no other way to the client. The table in mcp/mcpmsg
// says how each string is treated; what is not edited keeps its bytes.
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Profile chooses how text is scrubbed.
type Profile uint8

// The profiles of a wrapped server.
const (
	DefaultProfile Profile = iota // of a Config: Faithful; of a Rule: the Config's
	MCP                           // scrub.MCP
	Faithful                      // scrub.Faithful
)

// Config says how one server is wrapped. Its zero value is strict, but Sink has to be set.
type Config struct {
	Name    string  // the operator's name of the server; shown if it is a label (frame.IsLabel)
	Profile Profile //
	// ControlTokens is what becomes of control tokens; ProfileTokens: what the profile has.
	ControlTokens scrub.TokenAction
	Frame         frame.Kind // KindFence, KindMeta for tools whose text a program parses, or KindLLM
	LLM           *LLM       // of KindLLM
	Framing                  // what more is framed than the texts of tools
	Key           frame.Key  // of the fences
	Sink          Sink       // gets one record for each decision
	Log           *slog.Logger
	Flag          string // " --db X", which the commands in log lines need to find the store; "" where they find it without

	// Observer is told of every session and request; nil: nobody is.
	Observer Observer

	rand io.Reader        // of evidence ids; nil = crypto/rand
	now  func() time.Time // of records; nil = time.Now

	// Timeout is how long the server may be silent about a request; a progress
	// notification starts it anew, up to six times as long in all. 0 = 10 minutes.
	Timeout  time.Duration
	inFlight int // requests under way in each direction; 0 = 1,024
	MaxChars int // ceiling of one text, in code points; 0 = 1,048,576

	// Repeat sends a request for an item again if the server did not carry it out since it had forgotten the
	// session: see [wire.Message.Recheck].
	Repeat bool

	// Finish says that a client which has closed its side still reads, as one that is a script does: the
	// session ends when all that it has asked for is answered or has taken too long. Else a client that has
	// closed its side gets what is answered within 2 s.
	Finish bool

	// Tokens are the control tokens that are removed or defused; nil means those of this version.
	Tokens *scrub.TokenTable

	Validation // of structuredContent

	// Hold keeps results that were withheld, for a person to decide on; nil: they
	// are lost. Principal is whose calls the results answer.
	Hold      *hold.Queue
	Principal string

	// Exceptions are what reviewers let through although a Rule says to hold it; nil: nothing.
	Exceptions *hold.Exceptions

	// Captures keeps texts of calls where a Rule asks for it; nil: none are kept.
	Captures *captures.Keeper

	// Blocks withhold what sources answer whose text has taken control of a model; nil:
	// there are none.
	Blocks *hold.Blocks

	// RequireEvidence withholds what the Sink cannot record of the results of tools, but
	// for those that a Rule says are Unprivileged.
	RequireEvidence bool

	// Tools returns the rule of a tool, by the name that the server gave it, or nil
	// where it has none of its own; that of all tools for "". It may be called at the same time.
	Tools func(name string) *Rule
	// Rules returns all that Tools can return; nil: what it returns for "". It may be called at the same time.
	Rules func() []*Rule
	// Tasks remembers which tools have created the tasks of all sessions, also those of other processes; nil: each session
	// remembers its own.
	Tasks Tasks
	// Schemas keeps compiled outputSchemas for several servers; nil: for this one.
	Schemas *validate.Cache

	// Admission says what the server may say of itself; nil: whatever it likes, as far
	// as its text can be made safe.
	Admission Admission

	// Policy decides about calls and their results after all that the Rules say; nil: nothing does.
	Policy policy.Policy

	// Counts are shared by the servers of a client's session. If it is nil, this server has its own.
	Counts *Counts

	// Classifiers judge what tools answer; nil: nothing does.
	Classifiers *Classifiers

	// Memory bounds what all messages under way may cost together, of every session that
	// has the same one: a message of n bytes takes 8 n of it, and waits 10 s for that. nil:
	// one of 512 MiB for the process.
	Memory   *intake.Budget
	patience time.Duration // for that; 0: 10 s

	// StorePatience is how long one call may wait for the store in all: it is asked each time that the
	// call waits. nil: 900 ms.
	StorePatience func() time.Duration

	// Union says that the client sees this server together with others at one address: of
	// capabilities and extensions less passes there.
	Union bool

	// DangerouslyAllowSampling lets the server put words before the client's
	// model. They are scrubbed and marked; nothing can make them harmless.
	DangerouslyAllowSampling bool

	passages *mcpmsg.Passages // nil: as Union says
}

// Reasons for which Run ends, beside those of its context.
var (
	// ErrUpstreamGone: the server closed the connection or it broke.
	ErrUpstreamGone = errors.New("gateway: server gone")
	// ErrUpstreamStuck: the server has taken no message and said nothing for the time that is Config.Timeout.
	ErrUpstreamStuck = errors.New("gateway: server takes no messages and says nothing")
	// ErrFrontBroken: the client can no longer be written to.
	ErrFrontBroken = errors.New("gateway: client gone")
)

// Bounds that are not configurable.
const (
	defaultTimeout  = 10 * time.Minute
	defaultInFlight = 1024
	longestFactor   = 6               // of Timeout: the longest life of a request
	drainWait       = 2 * time.Second // for answers, once the client has closed its side; see Config.Finish
)

// DefaultMemory is what messages under way may cost where nothing else is said, in bytes.
const DefaultMemory = 512 << 20

var processMemory = intake.NewBudget(DefaultMemory)

// Start relays between a client and one server until one of them is gone or ctx ends, and returns at once. Both
// Conns are closed and have ended when it calls ended, which it does once; the error is nil when the client closed
// the connection. ended must not block.
func Start(ctx context.Context, front, upstream wire.Conn, cfg Config, ended func(error)) {
	r, err := newRelay(front, upstream, cfg)
	if err != nil {
		front.Close()
		upstream.Close()
		ended(err)
		return
	}
	r.start(ctx, ended)
}

// Run is Start, and waits for the end.
func Run(ctx context.Context, front, upstream wire.Conn, cfg Config) error {
	over := make(chan error, 1)
	Start(ctx, front, upstream, cfg, func(err error) { over <- err })
	return <-over
}

func (c Config) orDefault() (Config, error) {
	if c.Sink == nil {
		return c, errors.New("gateway: configuration: no sink for decisions")
	}
	if err := c.rule("").check(); err != nil {
		return c, err
	}
	if c.inFlight < 0 {
		return c, errors.New("gateway: configuration: negative limit")
	}
	if !frame.IsLabel(c.Name) {
		c.Name = frame.Other
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.rand == nil {
		c.rand = rand.Reader
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.inFlight == 0 {
		c.inFlight = defaultInFlight
	}
	if c.Memory == nil {
		c.Memory = processMemory
	}
	if c.Counts == nil {
		c.Counts = new(Counts)
	}
	if c.Schemas == nil {
		c.Schemas = new(validate.Cache)
	}
	switch {
	case c.passages != nil:
	case c.Union:
		c.passages = mcpmsg.Union
	default:
		c.passages = mcpmsg.Alone
	}
	return c, nil
}
