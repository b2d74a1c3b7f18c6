// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A passage is one message of the server on its way to the client.
type passage struct {
	msg    *wire.Message
	method string  // its own, or that of the request it answers
	id     wire.ID // by which the client knows it; zero for notifications
	// cancels is the id by which the client knows the request that a
	// cancellation speaks of; zero leaves the params as they are.
	cancels wire.ID
	token   string     // raw progressToken as the client knows it; empty leaves it as it is
	watched *watched   // of the call that it answers; nil if it answers none
	judged  *judged    // what classifiers have to do with it; nil: nothing
	store   *storeTime // of the call that it answers; nil if it answers none
	// restored says what was restored in the request that it answers.
	restored restoring
	// revision of the protocol in which it was sent; "": to be guessed from its form.
	revision        string
	lastPage        bool              // of a list, although the server sent a cursor
	clientAbilities *mcpmsg.Abilities // as the request that it answers names them, if it does

	// Of a tool's result.
	tool     string           // label of the tool concerned; empty if none is
	name     string           // of that tool, as the server listed it; for its rule only
	hints    toolHints        // of that tool
	schema   *validate.Schema // that the server declared for its results; nil if none
	output   []byte           // schema's source
	narrow   bool             // schema's source is (narrowSchema)
	checked  validate.Result  // by schema, where that was asked before
	tools    []taskTool       // by which its task was created, where those are several
	unsure   validate.Reason  // why it is not known which schema judges it; "": that is known, or there is none
	call     hold.Digest      // of the question that it answers; zero: nothing of it can be released
	uri      string           // of the resource that was read
	question *hold.Question   // what is kept of it; nil: nothing
	facts    *policy.Facts    // of the call, as rules read them
	released string           // item of the queue that a person has released, or ""
	ctx      context.Context  // see the method context
}

// context returns a context that ends when the client stops waiting for the message.
func (p *passage) context() context.Context {
	if p.ctx == nil {
		return context.Background()
	}
	return p.ctx
}

// inspector is the choke point of a session. It is safe for concurrent use: what belongs
// to one message is an inspection, so that no message waits while the decision about
// another is recorded.
type inspector struct {
	cfg    Config
	lookup func(int64) (raw []byte, known bool) // the client's spelling of the id of a call
	scrub  scrubberCache
	keep   *scrub.Scrubber // of definitions
	strict *scrub.Scrubber // of names, whatever becomes of control tokens in texts
	ids    ids
	seen   unapproved // what was left out of what the server says of itself
	quiet  quiet      // of what classifiers say
	late   *lateRecord
}

func newInspector(cfg Config, lookup func(int64) ([]byte, bool)) (*inspector, error) {
	in := &inspector{cfg: cfg, lookup: lookup, ids: newIDs(cfg.rand), quiet: quiet{log: cfg.Log}}
	in.scrub.tokens = cfg.Tokens
	s, err := in.scrub.of(cfg.MaxChars, cfg.ControlTokens)
	if err != nil {
		return nil, err
	}
	in.keep = s.faithful
	if s, err = in.scrub.of(cfg.MaxChars, scrub.RemoveTokens); err != nil {
		return nil, err
	}
	in.strict = s.faithful
	return in, nil
}

// inspection is one message on its way through the choke point. It is reused.
type inspection struct {
	*inspector
	p    passage
	row  *mcpmsg.Row
	rule Rule
	d    Decision
	w    walker

	marked bool // it gets provenance, and a record in any case

	admitted strictjson.Doc     // what is left of what a server says of itself
	mended   strictjson.Doc     // what is left once its form is right
	again    strictjson.Doc     // what is about to be delivered
	counts   []policy.Count     // for a policy
	suspect  suspect            // the classifier that withholds the message
	item     ID                 // of the queue that holds it
	room     *intake.Room       // of the message, unless it is short
	digest   func() hold.Digest // of the result as it was received; nil: it was not asked for

	unreleasable bool // the result is withheld for what no reviewer can release
	leftContent  bool // structuredContent was left out of an error that a tool reports
}

// inspections is the pool of idle inspections, shared by all sessions.
var inspections = reuse.Pool[inspection]{Forget: (*inspection).forget}

// pass is the choke point: the one function through which every message of a
// server reaches the client. It returns what to deliver, or nil where nothing
// is, and has recorded the decision.
func (in *inspector) pass(p passage) *wire.Message {
	h := inspections.Get()
	defer h.Release()
	i := h.Value()
	i.inspector, i.p = in, p
	i.w.key, i.w.keep, i.w.strict, i.w.scrubs, i.w.lookup, i.w.passages = in.cfg.Key, in.keep, in.strict, &in.scrub, in.lookup, in.cfg.passages
	out := i.decide()
	i.passRoom(out)
	return out
}

// forget forgets the message and whose it was.
func (in *inspection) forget() {
	w := &in.w
	w.reset()
	w.key, w.keep, w.strict, w.text, w.scrubs, w.llm, w.lookup, w.passages, w.res.Clean = frame.Key{}, nil, nil, nil, nil, nil, nil, nil, scrub.Clean{}
	w.strictly = false
	in.inspector, in.p, in.row, in.rule, in.d, in.suspect, in.digest, in.marked, in.item, in.room, in.leftContent, in.unreleasable = nil, passage{}, nil, Rule{}, Decision{}, suspect{}, nil, false, ID{}, nil, false, false
}

// decide returns what to deliver in the place of the message, and records why.
func (in *inspection) decide() *wire.Message {
	if in.p.msg.Local {
		// Our own constant text about a server that could not be asked.
		return in.deliverable(in.p.msg.Error)
	}
	part, came, kind := partOf(in.p.msg)
	in.row, in.rule = mcpmsg.Lookup(part, in.p.method), in.cfg.ruleOf(&in.p)
	if part == mcpmsg.Result && in.p.method == mcpmsg.CallTool && isCreatedTask(came) {
		in.row = mcpmsg.CreatedTask()
	}
	in.marked = in.row.Mark == mcpmsg.Always || in.p.endsTask(came) || in.p.restored.tokens > 0
	if err := in.begin(kind); err != nil {
		in.cfg.Log.Error("a message of the server could not be inspected: it is withheld", "error", err)
		return in.instead(nil)
	}
	if !in.reserveRoom(in.p.msg.Room(), len(came.Raw())) {
		return in.withhold(finding.NoRoom)
	}
	marked, late := in.marked, in.mayRecordLate(len(came.Raw()))
	var received *earlyDigest
	if marked && in.w.helped && (!late || in.p.judged != nil) {
		received = early(reuse.String(came.Raw()))
		defer received.end() // before the bytes serve another message
	}
	root, code := in.examine(came)
	if code != ok {
		return in.withhold(code)
	}
	in.retakeTurn(len(came.Raw()))
	in.p.schema = in.promised()
	signals := in.signals(root)
	if marked || in.w.edited {
		signals = append(signals, signal{frame.MetaKey, in.provenance()})
	}
	if kind == "error" {
		signals = nil // an error has no place for them
	}
	in.finish(root, signals)
	in.logCut()
	if !in.w.rewritten {
		in.w.releasePlain() // what is delivered can have their memory
	}
	out := in.deliverable(root)
	body := out.Body()
	if code := in.validateDelivered(body); code != ok {
		out.Release()
		return in.withhold(code)
	}
	in.w.release()
	if !marked && !in.w.edited {
		in.p.judged.unrecorded(&in.d, came)
		return out
	}
	in.d.Verdict = Passed
	if in.w.edited {
		in.d.Verdict = Changed
	}
	if late {
		in.captureTexts(came.Raw(), body)
		in.recordLate(came.Raw(), received, out)
		return out
	}
	in.d.Received, in.d.Delivered = received.of(reuse.String(came.Raw())), digestOf(body)
	in.room.EndTurn()
	if err := in.conclude(); err != nil && in.mustRecord() {
		out.Release()
		return in.unrecorded()
	}
	in.captureTexts(came.Raw(), body)
	in.tellClassified()
	in.p.judged.isShown(&in.d)
	return out
}

// examine asks every step that may withhold the message, in the order of the house: what
// was approved, the protocol's schema and the tool's, the walk, the rules, what is blocked, the classifiers and
// the policy. It returns what is left of it, and why it is withheld, or ok.
func (in *inspection) examine(came strictjson.Value) (strictjson.Value, finding.Code) {
	root, cut, code := in.admit(came)
	if cut > 0 {
		in.w.leftOut(finding.Unapproved, cut)
	}
	if code == ok && in.ofDeniedTask() {
		code = finding.Denied
	}
	if code == ok {
		root, code = in.formed(root)
	}
	if code == ok {
		root, code = in.validateReceived(root)
	}
	if code == ok {
		code = in.walk(root)
	}
	if code == ok && in.p.released == "" {
		code = in.holds()
	}
	in.room.EndTurn() // stores and classifiers may take their time
	if code == ok {
		code = in.blocked()
	}
	if code == ok {
		code = in.classified()
	}
	if code == ok {
		code = in.decides(root)
	}
	return root, code
}

func partOf(m *wire.Message) (mcpmsg.Part, strictjson.Value, string) {
	switch m.Kind {
	case wire.Response:
		return mcpmsg.Result, m.Result, "result"
	case wire.ErrorResponse:
		return mcpmsg.Error, m.Error, "error"
	case wire.Request:
		return mcpmsg.Params, m.Params, "request"
	}
	return mcpmsg.Params, m.Params, "notification"
}

// begin draws the evidence id and prepares the walk.
func (in *inspection) begin(kind string) error {
	id, err := in.ids.next()
	if err != nil {
		return fmt.Errorf("gateway: no randomness for an evidence id: %w", err)
	}
	s, err := in.scrub.of(in.rule.MaxChars, in.rule.ControlTokens)
	if err != nil {
		return err
	}
	w, rule := &in.w, &in.rule
	w.evidence, w.digests = id, in.marked
	w.kind, w.framing = rule.Frame, rule.Framing
	w.frames = w.kind != frame.KindMeta && in.row.Frames()
	w.text = s.mcp
	if rule.Profile == Faithful || in.row.Definitions {
		w.text = s.faithful
	}
	w.normalises = w.text == s.mcp
	w.origin = frame.Origin{Server: in.cfg.Name, Tool: in.p.tool}
	if in.row.Method == mcpmsg.ReadResource || in.row.Method == mcpmsg.GetPrompt {
		w.origin.Tool = in.row.Method
	}
	if w.kind == frame.KindLLM {
		w.llm, w.origin.Model = rule.LLM, rule.LLM.model(in.p.msg.Result)
	}
	method := in.row.Method
	if method == "" {
		method = frame.Other
	}
	in.d = Decision{
		ID: id, Time: in.cfg.now(), Server: in.cfg.Name, Tool: in.p.tool, Method: method, Kind: kind, Principal: in.cfg.Principal,
		Profile: w.text.Policy().Profile.String(), SanitationVersion: scrub.Version, UnicodeVersion: scrub.UnicodeVersion,
		Released: in.p.released,
		Restored: in.p.restored.tokens, Asked: in.p.restored.came, Sent: in.p.restored.went,
	}
	return nil
}

// walk treats every string of the message. It returns why the whole message
// must be refused, or ok.
func (in *inspection) walk(root strictjson.Value) finding.Code {
	if !root.Exists() {
		return ok
	}
	in.w.grown.size, in.w.grown.wanted = len(root.Raw()), in.cfg.Blocks != nil
	if code := in.w.object(in.row.Shape, root); code != ok {
		return code
	}
	if in.w.tooMany() {
		return finding.TooMany
	}
	if in.w.settle(); in.w.refused != ok {
		return in.w.refused
	}
	in.withholdCapabilities(root)
	in.endList(root)
	in.restructure(root)
	in.explainError(root)
	if in.p.msg.Kind == wire.Response {
		if code := checkResultType(root.Get("resultType")); code != ok {
			return code
		}
	}
	return in.checkInputRequests(root.Get("inputRequests"), in.p.clientAbilities)
}

func checkResultType(v strictjson.Value) finding.Code {
	if !v.Exists() {
		return ok
	}
	for _, known := range mcpmsg.ResultTypes {
		if v.Text() == known {
			return ok
		}
	}
	return finding.Misshapen
}

// checkInputRequests refuses what the server may not ask of the client inside a result, or inside a
// notification about a task. can is nil where the abilities of the client are not known.
func (in *inspector) checkInputRequests(v strictjson.Value, can *mcpmsg.Abilities) finding.Code {
	for _, request := range v.Members() {
		switch method := request.Get("method").Text(); {
		case !in.cfg.passages.Method(method):
			return finding.Denied
		case can != nil && isQuestion(method) && !can.Accepts(method, request.Get("params")):
			in.cfg.Log.Warn("server asks in a result for what the client has not declared as a capability", "method", method)
			return finding.Denied
		case method == mcpmsg.Elicit, method == mcpmsg.ListRoots:
		case method == mcpmsg.Sample && in.cfg.DangerouslyAllowSampling:
		case method == mcpmsg.Sample:
			in.cfg.Log.Warn("server asks for sampling in a result, which the configuration does not allow", "allow_with", "dangerously_allow_sampling")
			return finding.Denied
		default:
			return finding.Misshapen
		}
	}
	return ok
}
