// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"strconv"
	"time"
)

// A Code says why there is no answer.
type Code string

// The codes.
const (
	// Not sent.
	CodeRequest     Code = "bad-request"  // the Request makes no sense, or cannot be written in this format
	CodeBudget      Code = "over-budget"  // a budget has not enough left; Error.Ceiling says of what
	CodeCircuitOpen Code = "circuit-open" // the endpoint has failed too often: not asked for a while
	CodeKey         Code = "no-key"       // what the key refers to could not be read

	// Not answered.
	CodeCanceled    Code = "canceled"    // by the caller's context, also by its deadline
	CodeAborted     Code = "aborted"     // by Request.Stream
	CodeTimeout     Code = "timeout"     // of this package, or 408 or 504
	CodeUnreachable Code = "unreachable" // no connection, or it broke before an answer
	CodeCertificate Code = "certificate" // the endpoint is not who it has to be

	// Answered by an error.
	CodeUnauthorized Code = "unauthorized"   // 401, 403
	CodeRateLimited  Code = "rate-limited"   // 429
	CodeQuota        Code = "quota"          // 402, or a 429 that time does not cure
	CodeRejected     Code = "rejected"       // 400, 404, 413, 422 and other 4xx
	CodeContext      Code = "context-length" // rejected: the request is too long for the model
	CodeFiltered     Code = "filtered"       // rejected: by the provider's content filter
	CodeServer       Code = "server-error"   // 5xx, or an error inside a stream

	// Answered by what is no answer.
	CodeRedirect    Code = "redirect"     // 3xx: not followed
	CodeContentType Code = "content-type" // not JSON, not an event stream, or compressed
	CodeTooLarge    Code = "too-large"
	CodeCut         Code = "cut"       // it ended before its end
	CodeMalformed   Code = "malformed" // it breaks the format, or contradicts itself
)

// An Error says why there is no answer. It holds nothing that the provider has
// said but numbers.
type Error struct {
	Code       Code
	Status     int           // of HTTP; 0 without an answer
	RetryAfter time.Duration // that the provider asks for; 0 if it does not
	Ceiling    Ceiling       // of CodeBudget
	Attempts   int           // made

	// err is the error of the caller's context, of Request.Stream, or of the code in
	// this module that refused; nil otherwise.
	err error
}

// Error is constant text and numbers, and Err's, which is not the provider's.
func (e *Error) Error() string {
	s := "llm: " + string(e.Code)
	if e.Ceiling != "" {
		s += " (" + string(e.Ceiling) + ")"
	}
	if e.Status != 0 {
		s += " (status " + strconv.Itoa(e.Status) + ")"
	}
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.err }

// Temporary reports whether the same request may be answered later.
func (e *Error) Temporary() bool {
	switch e.Code {
	case CodeTimeout, CodeUnreachable, CodeRateLimited, CodeServer, CodeCut, CodeCircuitOpen:
		return true
	}
	return false
}

// again reports whether a further attempt is worth its price. An open circuit is
// temporary, but outlasts every wait between attempts.
func (e *Error) again() bool { return e.Temporary() && e.Code != CodeCircuitOpen }

// broken reports whether the failure speaks against the endpoint: what the caller
// did wrong must not shut others out.
func (e *Error) broken() bool {
	switch e.Code {
	case CodeTimeout, CodeUnreachable, CodeCertificate, CodeServer, CodeRedirect,
		CodeContentType, CodeTooLarge, CodeCut, CodeMalformed:
		return true
	}
	return false
}

func failure(code Code) *Error { return &Error{Code: code} }
