package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/internal/mcpmsg"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
	"github.com/pellucid-mcp/pellucid/internal/wire"
	"github.com/pellucid-mcp/pellucid/scrub"
	"github.com/pellucid-mcp/pellucid/validate"
)

// A Rule is what the operator wants of one tool.
type Rule struct {
	Denied   bool          // not listed, and not called
	Profile  Profile       // Auto: as the server's
	Frame    frame.Kind    // KindFence, KindMeta, or KindLLM, which needs LLM
	LLM      *LLM          // of KindLLM: what internal/rules compiles `frame: llm` to
	MaxChars int           // 0: as the server's
	Timeout  time.Duration // 0: as the server's
	Validation

	// Unprivileged: its results are delivered even if Config.RequireEvidence asks for a
	// record and there can be none. What a server says of its tools does not count.
	Unprivileged bool

	// Hold lists findings for which a result is held for review instead of being
	// delivered without them, and Except where not.
	Hold   []finding.Code
	Except []Exception
}

// An LLM says how results are delivered that an external language model generated.
type LLM struct {
	Envelope *frame.LLM
	Source   string // label of the provider's service
	// Model is the label of the model. With "" or [frame.Other] it is the one that the
	// server's answer names, if that is a label.
	Model string
	// Search: the answers are what a search found, which no model has written.
	Search bool
}

// A Validation says what becomes of structuredContent beside the outputSchema that
// the server has declared. Its zero value is the strict choice.
type Validation struct {
	Mode Mode
	// PassUnverifiable delivers what cannot be judged, because the schema cannot be
	// compiled or would cost too much; it is told in the record either way.
	PassUnverifiable bool
}

// A Mode says whether a check acts.
type Mode uint8

const (
	Enforce Mode = iota // what fails is withheld
	Audit               // what fails is recorded, and delivered
	Off                 // nothing is checked
)

func (v Validation) valid() bool { return v.Mode <= Off }

// rule is what applies to the results of a tool, "" for what is no tool's.
func (c *Config) rule(tool string) Rule {
	own := Rule{Profile: c.Profile, Frame: c.Frame, LLM: c.LLM, MaxChars: c.MaxChars, Timeout: c.Timeout, Validation: c.Validation}
	if c.Tools == nil || tool == "" {
		return own
	}
	r := c.Tools(tool)
	if r == nil {
		return own
	}
	out := *r
	if out.Frame == frame.KindLLM && !out.LLM.valid() {
		out.Frame = frame.KindFence // never less than that
	}
	if out.Profile == Auto {
		out.Profile = own.Profile
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
	case r.Frame > frame.KindLLM:
		return errors.New("gateway: configuration: unknown kind of frame")
	case r.Frame == frame.KindLLM && !r.LLM.valid():
		return errors.New("gateway: configuration: no envelope for the answers of a language model")
	case r.Timeout < 0 || r.MaxChars < 0:
		return errors.New("gateway: configuration: negative limit")
	case !r.valid():
		return errors.New("gateway: configuration: unknown mode of validation")
	}
	return nil
}

// compiled keeps the scrubbers of every ceiling that the rules use.
type compiled map[int]scrubbers

// scrubbers returns those for texts of at most chars code points.
func (c compiled) scrubbers(chars int) (scrubbers, error) {
	if s, ok := c[chars]; ok {
		return s, nil
	}
	var s scrubbers
	var err error
	if s.mcp, err = scrub.Compile(scrub.Policy{Profile: scrub.MCP, MaxChars: chars}); err == nil {
		s.faithful, err = scrub.Compile(scrub.Policy{Profile: scrub.Faithful, MaxChars: chars})
	}
	if err != nil {
		return s, fmt.Errorf("gateway: configuration: %w", err)
	}
	c[chars] = s
	return s, nil
}

// received judges what the server has answered. code is why it must be withheld,
// or ok.
func (in *inspector) received(p passage, v Validation, d *Decision) finding.Code {
	if p.schema == nil || v.Mode == Off || p.msg.Kind != wire.Response || p.method != mcpmsg.CallTool {
		return ok
	}
	return in.judge(p.schema.Tool(p.msg.Result), v, d)
}

// judge records the result of a validation and says whether it withholds.
func (in *inspector) judge(r validate.Result, v Validation, d *Decision) finding.Code {
	d.Validation = r
	code := ok
	switch r.Verdict {
	case validate.Invalid:
		code = finding.SchemaInvalid
	case validate.Unverifiable:
		if code = finding.SchemaUnverifiable; v.PassUnverifiable {
			in.w.skip(code)
			return ok
		}
	}
	if code == ok {
		return ok
	}
	in.cfg.Log.Warn("structured content does not stand up to its schema", "tool", d.Tool, "verdict", r.Verdict.String(),
		"reason", string(r.Reason), "keyword", r.Keyword, "place", r.Pointer, "evidence", d.ID.String())
	if v.Mode == Audit {
		in.w.note(code, 1, nil)
		return ok
	}
	return code
}

// delivered judges once more what was changed: a text without what was found in it
// may be one that the schema refuses, and the client would be told a lie.
func (in *inspector) delivered(p passage, v Validation, d *Decision, body []byte) finding.Code {
	if d.Validation.Verdict != validate.Valid || !in.w.edited {
		return ok
	}
	if err := in.again.Reset(body, strictjson.Limits{}); err != nil {
		return finding.SchemaBroken
	}
	r := p.schema.Tool(in.again.Root())
	if r.Verdict == validate.Valid {
		return ok
	}
	d.Validation = r
	if v.Mode == Audit {
		in.w.note(finding.SchemaBroken, 1, nil)
		return ok
	}
	return finding.SchemaBroken
}

// allowed leaves denied tools out of a list.
func (in *inspector) allowed(p passage, root strictjson.Value) {
	if in.cfg.Tools == nil || p.method != mcpmsg.ListTools || p.msg.Kind != wire.Response {
		return
	}
	for t := range root.Get("tools").Elements() {
		if in.cfg.rule(t.Get("name").Text()).Denied {
			in.w.edits.Remove(t)
			in.w.edited = true
			in.w.note(finding.Denied, 1, nil)
		}
	}
}
