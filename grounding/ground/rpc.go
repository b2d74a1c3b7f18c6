// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxMessage is the longest MCP message that is read, in bytes.
const maxMessage = 1 << 20

// messageLimits are those of an MCP message.
var messageLimits = strictjson.Limits{Bytes: maxMessage, Depth: 64, Values: 1 << 16}

// modern reports whether a revision is without sessions; revisions are dates.
func modern(version string) bool { return version >= mcpmsg.Modern }

// An rpcError is an error of JSON-RPC whose text is constant.
type rpcError struct {
	code int64
	text string
}

var (
	errParse            = rpcError{wire.CodeParse, "the message is not strict JSON"}
	errInvalid          = rpcError{wire.CodeInvalid, "the message is not an acceptable request"}
	errMethod           = rpcError{wire.CodeNoMethod, "there is no such method"}
	errParams           = rpcError{wire.CodeParams, "the parameters are not those of the method"}
	errInternal         = rpcError{wire.CodeInternal, "internal error"}
	errHeaders          = rpcError{wire.CodeHeaderMismatch, "the headers do not agree with the message"}
	errCapability       = rpcError{wire.CodeMissingCapability, "a capability of the client is missing"}
	errVersion          = rpcError{wire.CodeUnsupportedVersion, "the protocol version is not supported"}
	errNoResource       = rpcError{wire.CodeParams, "there is no such resource"}
	errNoResourceLegacy = rpcError{wire.CodeNoResource, errNoResource.text}
	errUnavailable      = rpcError{wire.CodeUnavailable, string(Unavailable)}
	errTooLong          = rpcError{wire.CodeGroundTooLong, "the message is too long"}
	errTooMany          = rpcError{wire.CodeGroundBusy, "too many requests under way"}
	errTooSlow          = rpcError{wire.CodeTooSlow, "the message did not arrive in time"}
	errRefused          = rpcError{wire.CodeRefused, "the request was refused"}
)

var rpcErrors = []rpcError{
	errParse, errInvalid, errMethod, errParams, errInternal, errHeaders, errCapability, errVersion,
	errNoResource, errNoResourceLegacy, errUnavailable, errTooLong, errTooMany, errTooSlow, errRefused,
}

func (e rpcError) wire() *jsonrpc.Error { return &jsonrpc.Error{Code: e.code, Message: e.text} }

// object is the error object, with data if there is any.
func (e rpcError) object(data []byte) []byte {
	b, err := json.Marshal(jsonrpc.Error{Code: e.code, Message: e.text, Data: data})
	if err != nil {
		panic(err) // constants, and data that was checked
	}
	return b
}

// constant is the error that is sent in the place of one with that code and text,
// which go-sdk may have written and may have put a part of the request into.
func constant(code int64, text string) rpcError {
	of := rpcError{errRefused.code, errRefused.text}
	for _, e := range rpcErrors {
		if e.code == code && (e.text == text || of.code != code) {
			of = e
		}
	}
	return of
}

// versionData is what errVersion has to carry: the revisions that there are, and
// the one that was asked for, if it can be one.
func versionData(data []byte) []byte {
	var d struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil
	}
	if !frame.IsLabel(d.Requested) || len(d.Requested) > len(mcpmsg.Modern) {
		d.Requested = frame.Other
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings
	}
	return b
}

// plainError is the error response that is sent in the place of raw, a response of
// go-sdk; ok is false where raw is none. Only codes and our own texts survive.
func plainError(raw []byte) (response []byte, ok bool) {
	m, err := wire.Decode(raw, strictjson.Limits{})
	if err != nil || m.Kind != wire.ErrorResponse {
		return nil, false
	}
	code, _ := m.Error.Get("code").Int64()
	e := constant(code, m.Error.Get("message").Text())
	var data []byte
	if e == errVersion {
		data = versionData(m.Error.Get("data").Raw())
	}
	return wire.NewError(m.ID, e.object(data)).Append(nil), true
}

// isResult reports whether raw begins as go-sdk begins the result for id.
func isResult(raw []byte, id wire.ID) bool {
	head := append(id.Append([]byte(`{"jsonrpc":"2.0","id":`)), `,"result":`...)
	return bytes.HasPrefix(raw, head)
}

// methods are those that are answered; go-sdk knows others, which nothing here needs.
var methods = map[string]wire.Kind{
	mcpmsg.Initialize: wire.Request, mcpmsg.Ping: wire.Request, mcpmsg.Discover: wire.Request,
	mcpmsg.ListTools: wire.Request, mcpmsg.CallTool: wire.Request,
	mcpmsg.ListResources: wire.Request, mcpmsg.ListTemplates: wire.Request, mcpmsg.ReadResource: wire.Request,
	mcpmsg.Initialized: wire.Notification, mcpmsg.Cancelled: wire.Notification,
}

// A disposition says what becomes of a message.
type disposition uint8

const (
	pass   disposition = iota
	drop               // it needs no answer, and does nothing
	reject             // by an error response
)

// dispose says what becomes of m, or of what is no message by err, a
// *wire.Violation, before go-sdk sees it. This server asks nothing, so that a
// response is nobody's.
func dispose(m *wire.Message, err error) (disposition, wire.ID, rpcError) {
	var v *wire.Violation
	if errors.As(err, &v) {
		e := errInvalid
		if v.Code == wire.CodeParse {
			e = errParse
		}
		if v.Kind == wire.Request || v.Kind == 0 {
			return reject, v.ID, e
		}
		return drop, v.ID, e
	}
	switch {
	case m.Kind == wire.Request && !isPlainID(m.ID):
		return reject, m.ID, errInvalid
	case m.Kind == methods[m.Method]:
		return pass, m.ID, rpcError{}
	case m.Kind == wire.Request:
		return reject, m.ID, errMethod
	}
	return drop, m.ID, rpcError{}
}

// isPlainID reports whether go-sdk, which reads a number as a float64, answers under the same id.
func isPlainID(id wire.ID) bool {
	raw := string(id.Append(nil))
	n, err := strconv.ParseInt(raw, 10, 64)
	return raw[0] == '"' || err == nil && strconv.FormatInt(n, 10) == raw && n >= -1<<53 && n <= 1<<53
}
