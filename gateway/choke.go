package gateway

import (
	"fmt"
	"sync"

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/hold"
	"github.com/pellucid-mcp/pellucid/internal/mcpmsg"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
	"github.com/pellucid-mcp/pellucid/internal/wire"
	"github.com/pellucid-mcp/pellucid/scrub"
	"github.com/pellucid-mcp/pellucid/validate"
)

// A passage is one message of the server on its way to the client.
type passage struct {
	msg    *wire.Message
	method string  // its own, or that of the request it answers
	id     wire.ID // by which the client knows it; zero for notifications
	// cancels is the id by which the client knows the request that a
	// cancellation speaks of; zero leaves the params as they are.
	cancels  wire.ID
	token    string           // raw progressToken as the client knows it; empty leaves it as it is
	tool     string           // label of the tool concerned; empty if none is
	name     string           // of that tool, as the server listed it; for its rule only
	schema   *validate.Schema // that the server declared for its results; nil if none
	call     hold.Digest      // of the question that it answers
	output   []byte           // schema's source
	hints    toolHints        // of that tool
	released string           // item of the queue that a person has released, or ""
	watched  *watched         // of the call that it answers; nil if it answers none
	narrow   bool             // schema's source is (narrowSchema)
	judged   *judged          // what classifiers have to do with it; nil: nothing
}

// inspector is the choke point and what it needs.
type inspector struct {
	cfg    Config
	scrub  compiled
	prof   *profile
	mu     sync.Mutex // of all below: a released result passes while the server speaks
	ids    ids
	w      walker
	again  strictjson.Doc // what is about to be delivered
	counts []Count        // for a policy
	texts  []hold.Digest  // for Blocks

	suspect suspect // the classifier that withholds the message
	seer    seer    // for classifiers; has a lock of its own
	quiet   *quiet  // of what classifiers say; likewise

	admitted strictjson.Doc // what is left of what a server says of itself
	seen     *unapproved    // what of it was left out; has a lock of its own
}

func newInspector(cfg Config, p *profile, lookup func(int64) ([]byte, bool)) (*inspector, error) {
	in := &inspector{cfg: cfg, scrub: compiled{}, prof: p, ids: newIDs(cfg.Rand), seen: new(unapproved), quiet: &quiet{log: cfg.Log}}
	s, err := in.scrub.scrubbers(cfg.MaxChars)
	if err != nil {
		return nil, err
	}
	in.w = walker{key: cfg.Key, kind: cfg.Frame, keep: s.faithful, lookup: lookup}
	return in, nil
}

// pass is the choke point: the one function through which every message of a
// server reaches the client. It returns what to deliver, or nil where nothing
// is, and has recorded the decision.
func (in *inspector) pass(p passage) *wire.Outgoing {
	in.mu.Lock()
	defer in.mu.Unlock()
	if p.msg.Local {
		// Our own constant text about a server that could not be asked.
		in.w.reset()
		out, _ := in.envelope(p, p.msg.Error)
		return out
	}
	part, root, kind := partOf(p.msg)
	row := mcpmsg.Lookup(part, p.method)
	rule := in.cfg.rule(p.name)
	d, err := in.begin(p, row, rule, kind)
	if err != nil {
		in.cfg.Log.Error("message cannot be inspected", "error", err)
		return in.instead(p, nil)
	}
	d.Released = p.released
	in.suspect = suspect{}
	came := root
	var received earlyDigest
	if row.Mark == mcpmsg.Always {
		received.begin(came.Raw())
		defer received.wait() // before the octets serve another message
	}
	root, code := in.examine(p, row, rule, came, d)
	if code != ok {
		return in.withhold(p, d, code)
	}
	p.schema = in.promised(p)
	signals := in.signals(p, row, root, d)
	if row.Mark == mcpmsg.Always || in.w.edited {
		signals = append(signals, signal{frame.MetaKey, in.provenance(d, row)})
	}
	if kind == "error" {
		signals = nil // an error has no place for them
	}
	in.finish(p, row, root, signals)
	out, body := in.envelope(p, root)
	if code := in.delivered(p, rule.Validation, d, body); code != ok {
		wire.PutBuffer(out.Raw)
		return in.withhold(p, d, code)
	}
	in.w.release()
	if in.w.edited || row.Mark == mcpmsg.Always {
		d.Verdict = Passed
		if in.w.edited {
			d.Verdict = Changed
		}
		d.Received, d.Delivered = received.of(came.Raw()), digestOf(body)
		if err := in.record(d); err != nil && in.mustRecord(p) {
			wire.PutBuffer(out.Raw)
			return in.unrecorded(p)
		}
		in.verdicts(p, d)
		p.judged.isShown(d)
	}
	return out
}

// examine asks everybody who may withhold the message, in the order of the house: what
// was approved, the schema, the walk, the rules, what is blocked, the classifiers and
// the policy. It returns what is left of it, and why it is withheld, or ok.
func (in *inspector) examine(p passage, row *mcpmsg.Row, rule Rule, came strictjson.Value, d *Decision) (strictjson.Value, finding.Code) {
	root, cut, code := in.admit(p, came)
	if cut > 0 {
		in.w.leftOut(finding.Unapproved, cut)
	}
	if code == ok && p.released == "" {
		code = in.received(p, rule.Validation, d)
	}
	if code == ok {
		code = in.walk(p, row, root)
	}
	if code == ok && p.released == "" {
		code = in.holds(p, rule)
	}
	if code == ok {
		code = in.blocked(p, row, d)
	}
	if code == ok {
		code = in.classified(p, rule, d)
	}
	if code == ok {
		code = in.decides(p, row, rule, root, d)
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
func (in *inspector) begin(p passage, row *mcpmsg.Row, rule Rule, kind string) (*Decision, error) {
	id, err := in.ids.next()
	if err != nil {
		return nil, fmt.Errorf("no randomness for its evidence id: %w", err)
	}
	s, err := in.scrub.scrubbers(rule.MaxChars)
	if err != nil {
		return nil, err
	}
	w := &in.w
	w.reset()
	w.evidence, w.digests = id, row.Mark == mcpmsg.Always
	w.kind, w.llm = rule.Frame, nil
	profile := rule.Profile
	if profile == Auto {
		profile = in.prof.current()
	}
	w.text = s.mcp
	if profile == Faithful || row.Definitions {
		w.text = s.faithful
	}
	w.origin = frame.Origin{Server: in.cfg.Name, Tool: p.tool}
	if w.kind == frame.KindLLM {
		w.llm, w.origin.Model = rule.LLM, rule.LLM.model(p.msg.Result)
	}
	method := row.Method
	if method == "" {
		method = frame.Other
	}
	return &Decision{
		ID: id, Time: in.cfg.Now(), Server: in.cfg.Name, Tool: p.tool, Method: method, Kind: kind, Principal: in.cfg.Principal,
		Profile: w.text.Policy().Profile.String(), SanitationVersion: scrub.Version, UnicodeVersion: scrub.UnicodeVersion,
	}, nil
}

// walk treats every string of the message. It returns why the whole message
// must be refused, or ok.
func (in *inspector) walk(p passage, row *mcpmsg.Row, root strictjson.Value) finding.Code {
	if !root.Exists() {
		return ok
	}
	if code := in.w.object(row.Shape, root); code != ok {
		return code
	}
	if p.msg.Kind != wire.Response {
		return ok
	}
	if code := checkResultType(root.Get("resultType")); code != ok {
		return code
	}
	return in.checkInputRequests(root.Get("inputRequests"))
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

// checkInputRequests refuses what the server may not ask of the client inside a result.
func (in *inspector) checkInputRequests(v strictjson.Value) finding.Code {
	for _, request := range v.Members() {
		switch method := request.Get("method").Text(); {
		case method == mcpmsg.Elicit, method == mcpmsg.ListRoots:
		case method == mcpmsg.Sample && in.cfg.DangerouslyAllowSampling:
		case method == mcpmsg.Sample:
			return finding.Denied
		default:
			return finding.Misshapen
		}
	}
	return ok
}

// finish makes the edits that are not about what was found.
func (in *inspector) finish(p passage, row *mcpmsg.Row, root strictjson.Value, signals []signal) {
	e := &in.w.edits
	in.allowed(p, root)
	in.announce(p, root)
	if !p.cancels.IsZero() {
		e.Replace(root.Get("requestId"), p.cancels.Append(nil))
	}
	if p.token != "" {
		e.Replace(root.Get("progressToken"), []byte(p.token))
	}
	switch {
	case !row.Instructions:
	case in.cfg.Frame == frame.KindFence:
		in.amend(root, "instructions", frame.Instructions)
	case in.cfg.Frame == frame.KindLLM:
		in.amend(root, "instructions", in.cfg.LLM.Envelope.Instructions())
	}
	if v := root.Get("structuredContent").Get("untrusted"); v.Kind() == 'f' && row.Mark == mcpmsg.Always {
		e.Replace(v, []byte("true"))
	}
	if len(signals) == 0 {
		return
	}
	if meta := root.Get("_meta"); meta.Kind() == '{' {
		for _, s := range signals {
			e.Append(meta, s.key, s.raw)
		}
		return
	}
	e.Append(root, "_meta", appendSignals(nil, signals))
}

// amend adds a sentence of ours to a definition, clean by now, of an object.
func (in *inspector) amend(object strictjson.Value, name, sentence string) {
	v := object.Get(name)
	if v.Kind() != '"' {
		in.w.edits.Append(object, name, strictjson.AppendQuote(nil, sentence))
		return
	}
	in.w.keep.Scrub(v.Text(), &in.w.res)
	in.w.edits.ReplaceText(v, in.w.res.Clean.String()+"\n\n"+sentence)
}

func (in *inspector) provenance(d *Decision, row *mcpmsg.Row) []byte {
	w := &in.w
	p := frame.Provenance{
		Origin: frame.Origin{Server: d.Server, Tool: d.Tool, Model: in.w.origin.Model}, Kind: in.w.kind,
		Profile: d.Profile, SanitationVersion: d.SanitationVersion, UnicodeVersion: d.UnicodeVersion,
		Evidence: d.ID.String(), Digest: w.delivered(), Inspected: w.inspected,
		Findings: w.found, NotInspected: w.notInspected,
	}
	if !isToolResult(row) {
		p.Kind, p.Model = frame.KindMeta, "" // nothing else is framed
	}
	for _, c := range w.foundMore {
		p.Findings = append(p.Findings, frame.Finding{Field: frame.Other, Code: c.Code, Count: c.N})
	}
	return p.AppendJSON(nil)
}

// envelope makes the message around root with its edits, and tells which of its
// octets those are.
func (in *inspector) envelope(p passage, root strictjson.Value) (out *wire.Outgoing, body []byte) {
	e := &in.w.edits
	dst := wire.GetBuffer(len(root.Raw()) + e.Len()*fenceRoom + 1024)
	switch p.msg.Kind {
	case wire.Response:
		dst = append(p.id.Append(append(dst, `{"jsonrpc":"2.0","id":`...)), `,"result":`...)
	case wire.ErrorResponse:
		dst = append(p.id.Append(append(dst, `{"jsonrpc":"2.0","id":`...)), `,"error":`...)
	default:
		dst = wire.AppendRequest(dst, p.id, p.msg.Method, nil)
		dst = dst[:len(dst)-1] // open again
		if root.Exists() {
			dst = append(dst, `,"params":`...)
		}
	}
	start := len(dst)
	switch {
	case !root.Exists():
	case e.Len() == 0:
		dst = append(dst, root.Raw()...)
	default:
		dst = e.Apply(dst, root)
	}
	body = dst[start:]
	dst = append(dst, '}')
	return &wire.Outgoing{Raw: dst, Kind: p.msg.Kind, ID: p.id, Method: p.msg.Method}, body
}

// withhold delivers a constant text in the place of the message.
func (in *inspector) withhold(p passage, d *Decision, code finding.Code) *wire.Outgoing {
	in.w.giveUp(code)
	p.watched.giveUp()
	_, root, _ := partOf(p.msg)
	d.Received = digestOf(root.Raw())
	in.cfg.Log.Warn("message withheld", "code", string(code), "method", d.Method, "kind", d.Kind, "evidence", d.ID.String())
	d.Verdict = Withheld
	if p.msg.Kind == wire.Request || p.msg.Kind == wire.Notification {
		d.Verdict = Dropped
		in.record(d)
		return nil
	}
	if p.method == mcpmsg.CallTool && p.msg.Kind == wire.Response {
		row := mcpmsg.Lookup(mcpmsg.Result, p.method)
		in.w.sum = in.w.sum[:0]
		note := in.provenance(d, row)
		text := placeholderWhole
		if in.review(p, d, code) {
			text = placeholderHeld // a person will find it in the queue
		}
		raw := toolPlaceholder(text, d.ID, p.msg.Result.Get("resultType").Exists(), frame.MetaKey, note)
		in.record(d)
		in.verdicts(p, d)
		return &wire.Outgoing{Raw: wire.AppendResult(nil, p.id, raw), Kind: wire.Response, ID: p.id}
	}
	in.record(d)
	in.verdicts(p, d)
	return in.instead(p, &d.ID)
}

// instead answers with a constant error what cannot be delivered at all.
func (in *inspector) instead(p passage, evidence *ID) *wire.Outgoing {
	if p.msg.Kind == wire.Request || p.msg.Kind == wire.Notification {
		return nil
	}
	return errWithheld.outgoing(p.id, evidence)
}
