// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/mcpshape"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// protocolShape is the reason that the record gives for a verdict by the protocol's own
// schema, in the place of the tool's.
const protocolShape validate.Reason = "protocol-shape"

// maxNamed bounds the entries of one list that a log names.
const maxNamed = 16

// formed holds the message against the published schema of its revision. It returns the
// root that goes on, without the entries that are wrong and with the repairs, and why the
// whole must be withheld, or ok. spec: shape/2
func (in *inspection) formed(root strictjson.Value) (strictjson.Value, finding.Code) {
	if in.rule.Mode == policy.Off || !root.Exists() {
		return root, ok
	}
	r := in.p.shape(root)
	if r.Clean() {
		return root, ok
	}
	audit := in.rule.Mode == policy.Audit
	if !audit && in.p.faultOfError(root, r.Fault) {
		in.misshapen(r.Fault)
		root = in.withoutContent(root, finding.ShapeInvalid)
		r = in.p.shape(root)
	}
	if r.Fault != (mcpshape.Fault{}) {
		in.misshapen(r.Fault)
		if audit {
			in.w.addFindingAt(r.Fault.Place, finding.ShapeInvalid)
			return root, ok
		}
		return root, finding.ShapeInvalid
	}
	for _, f := range r.Repairs {
		in.w.addFindingAt(f.Place, finding.ShapeRepaired)
	}
	for i, e := range r.Entries {
		in.w.addFindingAt(e.Fault.Place, finding.ShapeInvalid)
		if i < maxNamed {
			in.leftOutEntry(e)
		}
	}
	if len(r.Entries) > 0 {
		in.misshapenEntry(r.Entries)
	}
	if audit {
		return root, ok
	}
	if n := len(r.Entries); n > 0 {
		in.w.withheld = addCount(in.w.withheld, finding.ShapeInvalid, n)
	}
	in.w.edited = true
	var e strictjson.Edits
	r.Mend(&e)
	if in.mended.Reset(e.Apply(nil, root), strictjson.Limits{Bytes: 1 << 27, MendSurrogates: true}) != nil {
		return root, finding.ShapeInvalid
	}
	return in.mended.Root(), ok
}

// shape judges root by the revision in which the message was sent.
func (p *passage) shape(root strictjson.Value) mcpshape.Report {
	part, _, _ := partOf(p.msg)
	return mcpshape.Check(mcpshape.Revision(p.revision, root), part, p.method, root)
}

// faultOfError reports whether f, the first fault of a message, is in the structuredContent of an
// error that a tool reports: the message is delivered without it.
func (p *passage) faultOfError(root strictjson.Value, f mcpshape.Fault) bool {
	return f.Place == "structuredContent" && reportsError(p.toolResult(root))
}

// misshapen records and tells the operator what is wrong with a message.
func (in *inspection) misshapen(f mcpshape.Fault) {
	in.d.Validation = validate.Result{Conformity: validate.Invalid, Reason: protocolShape, Keyword: f.Keyword, Pointer: f.Place}
	in.cfg.Log.Warn("a message of the server does not fit the protocol's schema", "method", in.d.Method, "tool", in.d.Tool,
		"keyword", f.Keyword, "place", f.Place, "evidence", in.d.ID.String())
}

// misshapenEntry records the first of the entries that are wrong.
func (in *inspection) misshapenEntry(list []mcpshape.Entry) {
	f := list[0].Fault
	in.d.Validation = validate.Result{Conformity: validate.Invalid, Reason: protocolShape, Keyword: f.Keyword, Pointer: f.Place}
	if n := len(list) - maxNamed; n > 0 {
		in.cfg.Log.Warn("further entries of the list do not fit the protocol's schema", "method", in.d.Method, "entries", n, "evidence", in.d.ID.String())
	}
}

// leftOutEntry tells the operator which entry is wrong.
func (in *inspection) leftOutEntry(e mcpshape.Entry) {
	name := ""
	for _, key := range [...]string{"name", "uri", "uriTemplate", "taskId", "src"} {
		if v := e.Value.Get(key); v.Kind() == '"' {
			name = v.Text()
			break
		}
	}
	text := "an entry of a list does not fit the protocol's schema: it is left out"
	if in.rule.Mode == policy.Audit {
		text = "an entry of a list does not fit the protocol's schema"
	}
	in.cfg.Log.Warn(text, "method", in.d.Method, "entry", finding.Quote(name),
		"keyword", e.Fault.Keyword, "place", e.Fault.Place, "evidence", in.d.ID.String())
}

// unfit reports whether an answer is to be withheld for its form or its declared schema
// in any case, so that no classifier needs to see it.
func (in *inspector) unfit(p *passage) bool {
	rule := in.cfg.ruleOf(p)
	if rule.Mode != policy.Enforce {
		return false
	}
	_, root, _ := partOf(p.msg)
	result := p.toolResult(root)
	if r := p.shape(root); r.Fault != (mcpshape.Fault{}) && !p.faultOfError(root, r.Fault) {
		return true
	}
	if p.schema == nil || !result.Exists() {
		return false
	}
	if p.checked.Conformity == 0 {
		p.checked = p.judgeContent(result)
	}
	return !reportsError(result) && p.checked.Conformity == validate.Invalid
}

// judgeContent judges structuredContent. In revisions where it may not be null, the repair leaves null out.
func (p *passage) judgeContent(result strictjson.Value) validate.Result {
	if p.revision != mcpmsg.Modern && result.Get("structuredContent").Kind() == 'n' {
		return validate.Result{Conformity: validate.Absent}
	}
	return p.schema.Tool(p.context(), result)
}
