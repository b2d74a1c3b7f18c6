// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// lenient is what is forgiven to providers: models cut strings in the middle of a
// surrogate pair. Everything else of strictjson holds.
var lenient = strictjson.Limits{MendSurrogates: true}

// fields reads typed members; it remembers that one had another type. Members that
// this package does not know are no business of its: providers add some every month.
type fields struct{ bad bool }

// text is the string member of that name; "" if it is null or absent.
func (f *fields) text(v strictjson.Value, name string) string {
	m := v.Get(name)
	switch m.Kind() {
	case 0, 'n':
		return ""
	case '"':
		return strings.Clone(m.Text())
	}
	f.bad = true
	return ""
}

// count is the member of that name, a number of things; 0 if it is null or absent.
func (f *fields) count(v strictjson.Value, name string) int64 {
	m := v.Get(name)
	if k := m.Kind(); k == 0 || k == 'n' {
		return 0
	}
	n, ok := m.Int64()
	if !ok || n < 0 || n > maxCount {
		f.bad = true
		return 0
	}
	return n
}

// maxCount is more tokens than any answer has; sums of it do not overflow.
const maxCount = 1 << 40

// object is the member of that name; absent if it is null or absent.
func (f *fields) object(v strictjson.Value, name string) strictjson.Value {
	return f.ofKind(v, name, '{')
}

func (f *fields) array(v strictjson.Value, name string) strictjson.Value {
	return f.ofKind(v, name, '[')
}

func (f *fields) ofKind(v strictjson.Value, name string, want strictjson.Kind) strictjson.Value {
	m := v.Get(name)
	switch m.Kind() {
	case want:
		return m
	case 0, 'n':
	default:
		f.bad = true
	}
	return strictjson.Value{}
}

// usage is u if nothing in it was wrong, and it does not contradict itself.
func (f *fields) usage(u Usage) Usage {
	if f.bad || u.Cached+u.CacheWrite > u.Input || u.Reasoning > u.Output {
		return Usage{}
	}
	u.Known = true
	return u
}

const (
	maxName  = 256 // bytes of a tool's name or a call's id
	maxCalls = 128 // in one answer
)

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
			c.Arguments = c.arguments() // as several servers spell a call without any
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
	if len(r.Calls) > maxCalls {
		return failure(CodeMalformed)
	}
	checkCalls(r.Calls, req)
	switch {
	case len(r.Calls) > 0 && r.Stop == StopEnd:
		r.Stop = StopCalls
	case len(r.Calls) == 0 && r.Stop == StopCalls:
		r.Stop = StopOther
	case r.Refusal != "" && r.Stop == StopEnd:
		r.Stop = StopRefusal
	case r.Stop == "":
		r.Stop = StopOther
	}
	return nil
}

// parse reads one JSON object.
func parse(src []byte) (strictjson.Value, *Error) {
	var d strictjson.Doc
	if d.Reset(src, lenient) != nil || d.Root().Kind() != '{' {
		return strictjson.Value{}, failure(CodeMalformed)
	}
	return d.Root(), nil
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
}

// explained is the code of an error object as all three formats have it; "" if it
// says nothing known. The more exact code comes before the type.
func explained(v strictjson.Value) Code {
	e := v.Get("error")
	for _, name := range []string{"code", "type"} {
		if m := e.Get(name); m.Kind() == '"' {
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
	if v, bad := parse(bytes.TrimSpace(answer)); bad == nil {
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
