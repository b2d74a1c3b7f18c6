// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	maxMethodBytes = 256
	maxBatch       = 256
)

// A Violation is input that is not an acceptable message. Its Error is made of
// constants and numbers only, so it may go to a peer or into a log as it is.
type Violation struct {
	Code   int    // CodeParse or CodeInvalid
	Reason string // constant
	Kind   Kind   // what the message set out to be; 0 if that cannot be said
	ID     ID     // the id, where it could be read
	Offset int64  // bytes from the start of the message

	// Excerpt is the beginning of the input, escaped and cut, for the operator
	// alone. Not in Error.
	Excerpt string
	Told    bool // the log already has this Violation or one like it
}

// reasonTooLong is the Reason of what is longer than the limits allow.
const reasonTooLong = "message too long"

const reasonNoRoom = "too much is under way to read the message"

// Is lets errors.Is find ErrTooLong.
func (v *Violation) Is(target error) bool { return target == ErrTooLong && v.Reason == reasonTooLong }

func (v *Violation) Error() string {
	return fmt.Sprintf("wire: %s (%d) at byte %d", v.Reason, v.Code, v.Offset)
}

// violationOf is the Violation that an error of Decode is.
func violationOf(err error) *Violation {
	v, _ := errors.AsType[*Violation](err)
	return v
}

// Decode parses one message. The error is a *Violation: JSON-RPC code (-32700 or -32600), constant reason,
// and the ID where it could be read, so that the peer can be answered. The Message aliases b.
func Decode(b []byte, lim strictjson.Limits) (*Message, error) {
	watch()
	doc, v := parse(b, lim)
	if v != nil {
		return nil, v
	}
	m, v := shape(doc.Value().Root())
	if v != nil {
		doc.Release()
		v.Excerpt = excerpt(b)
		return nil, v
	}
	m.doc = doc
	return m, nil
}

// decodeBatch is Decode for revision 2025-03-26, where a JSON array carries
// several messages: it yields each element as a Message or a *Violation of its
// own. The messages share one Doc.
func decodeBatch(b []byte, lim strictjson.Limits) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		doc, v := parse(b, lim)
		if v == nil && doc.Value().Root().Kind() == '[' {
			switch n := doc.Value().Root().Len(); {
			case n == 0:
				v = &Violation{Code: CodeInvalid, Reason: "empty batch"}
			case n > maxBatch:
				v = &Violation{Code: CodeInvalid, Reason: "batch of more than 256 messages"}
			default:
				for e := range doc.Value().Root().Elements() {
					if m, v := shape(e); !yieldOne(yield, b, m, v) {
						return
					}
				}
				return
			}
		}
		if v != nil {
			yieldOne(yield, b, nil, v)
			return
		}
		m, v := shape(doc.Value().Root())
		yieldOne(yield, b, m, v)
	}
}

func yieldOne(yield func(*Message, error) bool, b []byte, m *Message, v *Violation) bool {
	if v != nil {
		v.Excerpt = excerpt(b)
		return yield(nil, v)
	}
	return yield(m, nil)
}

// docs are the indexes of messages, between two messages. Forgetting, one holds on to no bytes.
var docs = reuse.Pool[strictjson.Doc]{Forget: func(d *strictjson.Doc) {
	_ = d.Reset(nil, strictjson.Limits{}) // fails: there is no text
}}

// excerpt is finding.Quote over the head of b.
func excerpt(b []byte) string { return finding.Quote(string(b[:min(len(b), 128)])) }

func parse(b []byte, lim strictjson.Limits) (*reuse.Held[strictjson.Doc], *Violation) {
	doc := docs.Get()
	decoded.Add(1)
	err := doc.Value().Reset(b, lim)
	if err == nil {
		return doc, nil
	}
	doc.Release()
	v := &Violation{Code: CodeParse, Reason: "not strict JSON", Excerpt: excerpt(b)}
	var se *strictjson.SyntaxError
	if errors.As(err, &se) {
		v.Reason, v.Offset = se.Code.String(), int64(se.Offset)
	}
	// Bytes that could not be parsed may still be the answer to a request that waits.
	var s envelopeScan
	s.feed(b)
	v.ID, v.Kind = s.envelope()
	return nil, v
}

// members of one envelope, as found.
type members struct {
	version, id, method, params, result, err strictjson.Value
}

// shape reads the members of the object at root, and checks that they make one of the four shapes.
func shape(root strictjson.Value) (*Message, *Violation) {
	if root.Kind() == '[' {
		return nil, &Violation{Code: CodeInvalid, Reason: "a batch, which this revision does not have"}
	}
	if root.Kind() != '{' {
		return nil, &Violation{Code: CodeInvalid, Reason: "not a JSON object"}
	}
	var ms members
	reason := ""
	for name, value := range root.Members() {
		if slot := ms.slot(name.Text()); slot != nil {
			*slot = value
		} else {
			// Case variants land here too.
			reason = "unknown member beside those of JSON-RPC"
		}
	}
	m := &Message{Params: ms.params, Result: ms.result, Error: ms.err, Kind: ms.kind()}
	idOK := true
	if ms.id.Exists() && ms.id.Kind() != 'n' {
		m.ID, idOK = IDOf(ms.id)
	}
	switch {
	case reason != "":
	case ms.version.Text() != "2.0":
		reason = "jsonrpc is not \"2.0\""
	case !idOK:
		reason = "id is neither a string of at most 4 KiB nor a number of at most 256 bytes"
	default:
		reason = ms.check(m)
	}
	if m.answers() {
		m.ID = m.ID.asRequestID()
	}
	if reason != "" {
		if !idOK {
			m.ID = ID{}
		}
		return nil, &Violation{Code: CodeInvalid, Reason: reason, Kind: m.Kind, ID: m.ID}
	}
	return m, nil
}

func (ms *members) slot(name string) *strictjson.Value {
	switch name {
	case "jsonrpc":
		return &ms.version
	case "id":
		return &ms.id
	case "method":
		return &ms.method
	case "params":
		return &ms.params
	case "result":
		return &ms.result
	case "error":
		return &ms.err
	}
	return nil
}

// kind says what the envelope sets out to be; mixed shapes are refused later.
func (ms *members) kind() Kind {
	switch {
	case ms.method.Exists() && ms.id.Exists():
		return Request
	case ms.method.Exists():
		return Notification
	case ms.err.Exists():
		return ErrorResponse
	case ms.result.Exists():
		return Response
	}
	return 0
}

// check completes m or returns the constant reason for which it is refused.
func (ms *members) check(m *Message) string {
	switch m.Kind {
	case Request, Notification:
		if ms.result.Exists() || ms.err.Exists() {
			return "both a request and a response"
		}
		if ms.id.Kind() == 'n' {
			return "null id on a request"
		}
		method := ms.method.Text()
		if !saneMethod(method) {
			return "method is not a short string of visible ASCII"
		}
		m.Method = strings.Clone(method) // outlives Release
		if ms.params.Exists() && ms.params.Kind() != '{' {
			return "params is not an object"
		}
	case Response, ErrorResponse:
		if ms.params.Exists() {
			return "params in a response"
		}
		if ms.result.Exists() && ms.err.Exists() {
			return "both a result and an error"
		}
		if m.Kind == ErrorResponse {
			return checkError(ms.err)
		}
		if m.ID.IsZero() {
			return "result without an id"
		}
		if ms.result.Kind() != '{' {
			return "result is not an object"
		}
	default:
		return "neither a request nor a response"
	}
	return ""
}

// checkError holds error to {code, message, data?}. Further members are third
// parties' and survive, but none that another reader could take for one of the three.
func checkError(e strictjson.Value) string {
	if e.Kind() != '{' {
		return "error is not an object"
	}
	if code := e.Get("code"); code.Kind() != '0' || bytes.ContainsAny(code.Raw(), ".eE") {
		return "error code is not an integer"
	}
	if e.Get("message").Kind() != '"' {
		return "error message is not a string"
	}
	if _, found := e.Strays(errorMembers); found {
		return "case variant of an error member"
	}
	return ""
}

var errorMembers = []string{"code", "message", "data"}

func saneMethod(s string) bool {
	if s == "" || len(s) > maxMethodBytes {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
