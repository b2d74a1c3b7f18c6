// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Rule is what the operator wants of one tool.
type Rule struct {
	Denied  bool    // not listed, and not called
	Profile Profile // DefaultProfile: the server's
	// ControlTokens is what becomes of control tokens; ProfileTokens: what the server's has.
	ControlTokens scrub.TokenAction
	Frame         frame.Kind    // KindFence, KindMeta, or KindLLM, which needs LLM
	LLM           *LLM          // of KindLLM: what boundary/rules compiles `frame: llm` to
	Framing                     // of a tool AnyType and StructuredText only
	MaxChars      int           // 0: as the server's
	Timeout       time.Duration // 0: as the server's
	Validation

	// Unprivileged: its results are delivered even if Config.RequireEvidence asks for a
	// record and there can be none. What a server says of its tools does not count.
	Unprivileged bool

	// Hold lists findings for which a result is held for review instead of being
	// delivered without them, and Except where not.
	Hold   []finding.Code
	Except []Exception

	Capture Capture // which texts of its calls are kept for a reviewer
}

// own is what applies to what is no tool's.
func (c *Config) own() Rule {
	own := Rule{Profile: Faithful, ControlTokens: c.ControlTokens, Frame: c.Frame, LLM: c.LLM, Framing: c.Framing, MaxChars: c.MaxChars, Timeout: c.Timeout, Validation: c.Validation}
	if c.Profile != DefaultProfile {
		own.Profile = c.Profile
	}
	return own
}

// rule is what applies to the results of a tool, "" for what is no tool's.
func (c *Config) rule(tool string) Rule {
	if c.Tools == nil || tool == "" {
		return c.own()
	}
	return c.complete(c.Tools(tool))
}

// complete is a rule with what it leaves to the server; r may be nil.
func (c *Config) complete(r *Rule) Rule {
	own := c.own()
	if r == nil {
		return own
	}
	out := *r
	if out.Frame == frame.KindLLM && !out.LLM.valid() {
		out.Frame = frame.KindFence // never less than that
	}
	if out.Profile == DefaultProfile {
		out.Profile = own.Profile
	}
	if out.ControlTokens == scrub.ProfileTokens {
		out.ControlTokens = own.ControlTokens
	}
	if out.MaxChars == 0 {
		out.MaxChars = own.MaxChars
	}
	if out.Timeout == 0 {
		out.Timeout = own.Timeout
	}
	return out
}

func (r Rule) check() error {
	switch {
	case r.Profile > Faithful:
		return errors.New("gateway: configuration: unknown profile")
	case r.ControlTokens > scrub.KeepTokens:
		return errors.New("gateway: configuration: unknown action for control tokens")
	case r.Frame > frame.KindLLM:
		return errors.New("gateway: configuration: unknown kind of frame")
	case r.Frame == frame.KindLLM && !r.LLM.valid():
		return errors.New("gateway: configuration: no envelope for the answers of a language model")
	case r.Timeout < 0 || r.MaxChars < 0:
		return errors.New("gateway: configuration: negative limit")
	case !r.Validation.valid():
		return errors.New("gateway: configuration: unknown mode of validation")
	}
	return nil
}

// scrubbers are the compiled profiles for texts of one ceiling. strict is faithful with
// scrub.Policy.Strict.
type scrubbers struct{ mcp, faithful, strict *scrub.Scrubber }

// scrubberCache keeps those of every ceiling, and of all that is done with control tokens, that the
// rules use. It is safe for concurrent use.
type scrubberCache struct {
	tokens *scrub.TokenTable

	mu   sync.Mutex
	made map[scrubbing]scrubbers
}

type scrubbing struct {
	chars  int // of a text
	tokens scrub.TokenAction
}

// of returns those for texts of at most chars code points.
func (c *scrubberCache) of(chars int, tokens scrub.TokenAction) (scrubbers, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := scrubbing{chars, tokens}
	if s, made := c.made[key]; made {
		return s, nil
	}
	var err error
	compile := func(p scrub.Profile, strict bool) *scrub.Scrubber {
		s, fault := scrub.Compile(scrub.Policy{Profile: p, Strict: strict, MaxChars: chars, Tokens: c.tokens, ControlTokens: tokens})
		err = errors.Join(err, fault)
		return s
	}
	s := scrubbers{mcp: compile(scrub.MCP, false), faithful: compile(scrub.Faithful, false), strict: compile(scrub.Faithful, true)}
	if err != nil {
		return s, fmt.Errorf("gateway: configuration: %w", err)
	}
	if c.made == nil {
		c.made = map[scrubbing]scrubbers{}
	}
	c.made[key] = s
	return s, nil
}

// again is what treats a text that with has treated before: tokens that are defused stay as they
// are, and what has become one since is removed.
func (c *scrubberCache) again(with *scrub.Scrubber) *scrub.Scrubber {
	if !with.DefusesTokens() {
		return with
	}
	s, err := c.of(with.Policy().MaxChars, scrub.RemoveTokens)
	switch {
	case err != nil:
		return with // never: it differs from with in that alone
	case with.Policy().Profile == scrub.MCP:
		return s.mcp
	case with.Policy().Strict:
		return s.strict
	}
	return s.faithful
}

// allowed leaves denied tools out of a list.
func (in *inspection) allowed(root strictjson.Value) {
	if in.cfg.Tools == nil || in.p.method != mcpmsg.ListTools || in.p.msg.Kind != wire.Response {
		return
	}
	for t := range root.Get("tools").Elements() {
		if in.cfg.rule(t.Get("name").Text()).Denied {
			in.w.edits.Remove(t)
			in.w.edited = true
			in.w.addFinding(finding.Denied, 1, nil)
		}
	}
}
