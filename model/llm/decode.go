// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// read is a response of what a format has read. What this package did not ask for is not
// left out in silence: the answer is refused.
func read(a *format.Answer) (Response, *Error) {
	if v := a.Failed(); v.Exists() {
		return Response{}, spoken(v)
	}
	if a.Odd != 0 || !a.Own() {
		return Response{}, failure(CodeMalformed)
	}
	r := Response{
		Text: a.Text(format.PartText, ""), Refusal: a.Text(format.PartRefusal, ""), Reasoning: a.Text(format.PartReasoning, ""),
		Stop: a.Stop, Usage: a.Usage, ID: a.ID, Model: a.Model, Fingerprint: a.Fingerprint,
	}
	for _, c := range a.Calls() {
		call := ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
		if c.Kind != format.CallFunction {
			call.Problem = ProblemKind
		}
		r.Calls = append(r.Calls, call)
	}
	return r, nil
}

// spoken is the error of an answer that has a status of success.
func spoken(v strictjson.Value) *Error {
	if c := explained(v); c != "" {
		return failure(c)
	}
	return failure(CodeServer)
}

// A pieces is a streamed answer that comes in.
type pieces struct {
	stream format.Stream
	emit   func(Delta) error
}

// event takes in an event. done: it was the last.
func (s *pieces) event(e eventstream.Event) (done bool, err *Error) {
	parts, odd := s.stream.Event(e)
	for i := range parts {
		p := &parts[i]
		d := Delta{Text: p.Text, Index: p.Index}
		switch p.Kind {
		case format.PartError:
			return false, spoken(p.Value)
		case format.PartServed:
			return false, failure(CodeMalformed)
		case format.PartEnd:
			done = true
			continue
		case format.PartText:
			d.Kind = DeltaText
		case format.PartReasoning:
			d.Kind = DeltaReasoning
		case format.PartRefusal:
			d.Kind = DeltaRefusal
		case format.PartArguments:
			d.Kind = DeltaArguments
		case format.PartCall:
			d.Kind, d.Call = DeltaCall, ToolCall{ID: p.Call.ID, Name: p.Call.Name}
		default:
			continue
		}
		if odd != 0 {
			break
		}
		if err := s.emit(d); err != nil {
			return false, &Error{Code: CodeAborted, err: err}
		}
	}
	if odd != 0 {
		return false, failure(CodeMalformed)
	}
	return done, nil
}

const maxName = 256 // bytes of a tool's name or a call's id

// checkCalls marks what is wrong with the calls of an answer to r.
func checkCalls(calls []ToolCall, r *Request) {
	known := make(map[string]bool, len(r.Tools))
	for i := range r.Tools {
		known[r.Tools[i].Name] = true
	}
	ids := make(map[string]bool, len(calls))
	for i := range calls {
		c := &calls[i]
		if len(c.Arguments) == 0 {
			c.Arguments = []byte("{}") // as several servers spell a call without any
		}
		if c.Problem == "" {
			c.Problem = c.problem(known, ids)
		}
		ids[c.ID] = true
	}
}

func (c *ToolCall) problem(known, ids map[string]bool) Problem {
	switch {
	case c.Name == "" || len(c.Name) > maxName:
		return ProblemName
	case !known[c.Name]:
		return ProblemUnknown
	case c.ID == "" || len(c.ID) > maxName:
		return ProblemID
	case ids[c.ID]:
		return ProblemTwice
	}
	var d strictjson.Doc
	if d.Reset(c.Arguments, strictjson.Limits{}) != nil {
		return ProblemArguments
	}
	if d.Root().Kind() != '{' {
		return ProblemNoObject
	}
	return ""
}

// settle makes a response of one kind whoever answered: calls are checked, and the
// reason to stop is one that agrees with what is there.
func (r *Response) settle(req *Request) *Error {
	if len(r.Calls) > format.MaxCalls {
		return failure(CodeMalformed)
	}
	checkCalls(r.Calls, req)
	switch {
	case len(r.Calls) > 0 && r.Stop == format.StopEnd:
		r.Stop = format.StopCalls
	case len(r.Calls) == 0 && r.Stop == format.StopCalls:
		r.Stop = format.StopOther
	case r.Refusal != "" && r.Stop == format.StopEnd:
		r.Stop = format.StopRefusal
	case r.Stop == "":
		r.Stop = format.StopOther
	}
	return nil
}

// said maps the words by which providers explain an error to codes. Nothing but
// these words is looked at, and none of them is passed on.
var said = map[string]Code{
	"insufficient_quota":       CodeQuota,
	"billing_error":            CodeQuota,
	"context_length_exceeded":  CodeContext,
	"content_filter":           CodeFiltered,
	"content_policy_violation": CodeFiltered,
	"invalid_api_key":          CodeUnauthorized,
	"authentication_error":     CodeUnauthorized,
	"permission_error":         CodeUnauthorized,
	"invalid_request_error":    CodeRejected,
	"not_found_error":          CodeRejected,
	"request_too_large":        CodeContext,
	"rate_limit_error":         CodeRateLimited,
	"rate_limit_exceeded":      CodeRateLimited,
	"timeout_error":            CodeTimeout,
	"overloaded_error":         CodeServer,
	"api_error":                CodeServer,
	"server_error":             CodeServer,

	"INVALID_ARGUMENT":   CodeRejected,
	"NOT_FOUND":          CodeRejected,
	"UNAUTHENTICATED":    CodeUnauthorized,
	"PERMISSION_DENIED":  CodeUnauthorized,
	"RESOURCE_EXHAUSTED": CodeRateLimited,
	"DEADLINE_EXCEEDED":  CodeTimeout,
	"UNAVAILABLE":        CodeServer,
	"INTERNAL":           CodeServer,
}

// explained is the code of an error object as the formats have it; "" if it
// says nothing known. The more exact code comes before the type.
func explained(v strictjson.Value) Code {
	e := v.Get("error")
	for _, m := range []strictjson.Value{e.Get("code"), e.Get("type"), e.Get("status"), v.Get("code")} {
		if m.Kind() == '"' {
			if c := said[m.Text()]; c != "" {
				return c
			}
		}
	}
	return ""
}

// ofStatus is the error that a status of HTTP and the bytes beneath it stand for.
func ofStatus(status int, answer []byte) *Error {
	e := &Error{Status: status}
	why := Code("")
	if v := format.Parse(bytes.TrimSpace(answer)); v.Exists() {
		why = explained(v)
	}
	switch {
	case status < 400 || status > 599:
		e.Code = CodeMalformed
		if status >= 300 && status < 400 {
			e.Code = CodeRedirect
		}
	case status == 401 || status == 403:
		e.Code = CodeUnauthorized
		if why == CodeFiltered || why == CodeQuota {
			e.Code = why
		}
	case status == 402:
		e.Code = CodeQuota
	case status == 408 || status == 504:
		e.Code = CodeTimeout
	case status == 413:
		e.Code = CodeContext
	case status == 429:
		e.Code = CodeRateLimited
		if why == CodeQuota {
			e.Code = CodeQuota
		}
	case status >= 500:
		e.Code = CodeServer
	default:
		e.Code = CodeRejected
		if why == CodeContext || why == CodeFiltered || why == CodeQuota {
			e.Code = why
		}
	}
	return e
}
