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
	// PassUnverifiable delivers what cannot be judged, because the schema cannot be
	// compiled or would cost too much; it is told in the record either way.
	PassUnverifiable bool
}

func (v Validation) valid() bool { return v.Mode <= policy.Off && v.Mode != policy.Shadow }

// validateReceived judges what the server has answered. It returns why that must be
// withheld, or ok.
func (in *inspection) validateReceived() finding.Code {
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
		r = in.p.schema.Tool(result)
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
	if in.rule.Mode == policy.Audit {
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
	r := in.p.schema.Tool(in.p.toolResult(in.again.Root()))
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
