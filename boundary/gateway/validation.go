// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Validation says what becomes of structuredContent beside the outputSchema that
// the server has declared. Its zero value is the strict choice.
type Validation struct {
	Mode policy.Mode // Enforce, Audit or Off
	// Strict withholds under Enforce a result without the structuredContent that its tool
	// promises by its schema, as official clients refuse it. It is recorded either way.
	Strict bool
	// PassUnverifiable delivers what cannot be judged, because the schema cannot be
	// compiled or would cost too much; it is told in the record either way.
	PassUnverifiable bool
}

func (v Validation) valid() bool { return v.Mode <= policy.Off && v.Mode != policy.Shadow }

// validateReceived judges the answer of the server, of which root is to be delivered. It
// returns what is left of root, and why it must be withheld, or ok. An error that a tool
// reports is delivered without the structuredContent that would have to be withheld.
func (in *inspection) validateReceived(root strictjson.Value) (strictjson.Value, finding.Code) {
	code := in.judgeReceived()
	switch {
	case code == ok, in.d.Validation.Reason == twoResults, !reportsError(in.p.toolResult(root)):
		return root, code
	case in.rule.StructuredText && !in.rule.Strict: // which no schema was promised for
		in.w.addFinding(code, 1, nil)
		return root, ok
	}
	return in.withoutContent(root, code), ok
}

// reportsError reports whether the result of a tool says that its call failed.
func reportsError(result strictjson.Value) bool {
	failed, _ := result.Get("isError").Bool()
	return failed
}

// withoutContent leaves structuredContent out of an error that a tool reports.
func (in *inspection) withoutContent(root strictjson.Value, code finding.Code) strictjson.Value {
	content := in.p.toolResult(root).Get("structuredContent")
	if !content.Exists() {
		return root
	}
	var e strictjson.Edits
	e.Remove(content)
	if in.admitted.Reset(e.Apply(nil, root), strictjson.Limits{Bytes: 1 << 27, MendSurrogates: true}) != nil {
		return root // never: it was read before
	}
	in.leftContent = true
	in.noteLeftContent(code)
	return in.admitted.Root()
}

func (in *inspection) noteLeftContent(code finding.Code) {
	in.w.path = append(in.w.path[:0], step{name: "structuredContent"})
	in.w.leftOut(code, 1)
	in.w.path = in.w.path[:0]
}

func (in *inspection) judgeReceived() finding.Code {
	root := in.p.msg.Value()
	result := in.p.toolResult(root)
	if in.p.schema == nil && in.p.unsure == "" || in.rule.Mode == policy.Off || !result.Exists() {
		return ok
	}
	r := in.p.checked
	switch {
	case in.p.isTwoResults(root):
		r = validate.Result{Conformity: validate.Invalid, Reason: twoResults}
	case r.Conformity != 0:
	case in.p.schema != nil:
		r = in.p.judgeContent(result)
	case result.Get("structuredContent").Exists():
		r = validate.Result{Conformity: validate.Unverifiable, Reason: in.p.unsure}
	default:
		r.Conformity = validate.Absent
	}
	if in.p.released != "" && r.Conformity != validate.Invalid {
		return ok // a reviewer has let it through; what is invalid, no reviewer can
	}
	return in.validated(r)
}

// validated records the result of a validation and says whether it withholds.
func (in *inspection) validated(r validate.Result) finding.Code {
	if in.d.Validation.Conformity == 0 {
		in.d.Validation = r
	}
	code := ok
	switch r.Conformity {
	case validate.Invalid:
		code = finding.SchemaInvalid
	case validate.Absent:
		if result := in.p.toolResult(in.p.msg.Value()); in.p.schema == nil || reportsError(result) || !isAnswer(result) {
			return ok
		}
		code = finding.NotStructured
	case validate.Unverifiable:
		if code = finding.SchemaUnverifiable; in.rule.PassUnverifiable {
			in.w.skip(code)
			return ok
		}
	}
	if code == ok {
		return ok
	}
	in.cfg.Log.Warn("structuredContent does not fit the output schema of its tool", "tool", in.d.Tool, "verdict", r.Conformity.String(),
		"reason", string(r.Reason), "keyword", r.Keyword, "place", r.Pointer, "evidence", in.d.ID.String())
	if in.rule.Mode == policy.Audit || code == finding.NotStructured && !in.rule.Strict {
		in.w.addFinding(code, 1, nil)
		return ok
	}
	return code
}

// validateDelivered judges once more what was changed: a text without what was found in it
// may be one that the schema refuses, and the client would be told a lie.
func (in *inspection) validateDelivered(body []byte) finding.Code {
	if in.p.schema == nil || in.d.Validation.Conformity != validate.Valid || !in.w.edited {
		return ok
	}
	if err := in.again.Reset(body, strictjson.Limits{}); err != nil {
		return finding.SchemaBroken
	}
	r := in.p.schema.Tool(in.p.context(), in.p.toolResult(in.again.Root()))
	if r.Conformity == validate.Valid {
		return ok
	}
	in.d.Validation = r
	if in.rule.Mode == policy.Audit {
		in.w.addFinding(finding.SchemaBroken, 1, nil)
		return ok
	}
	return finding.SchemaBroken
}
