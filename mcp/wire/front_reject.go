// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// rejection is why an HTTP request gets no further. Its text is constant.
type rejection struct {
	status int
	code   int
	text   string
	allow  string // methods, of status 405
	data   []byte // raw JSON
	raw    []byte // the error object of a server, instead of all this
}

var (
	errAllow       = rejection{status: http.StatusMethodNotAllowed, code: CodeInvalid, text: "method not allowed", allow: "GET, POST, DELETE"}
	errAllowModern = rejection{status: http.StatusMethodNotAllowed, code: CodeInvalid, text: "method not allowed in this revision", allow: "POST"}
	errOver        = rejection{status: http.StatusMethodNotAllowed, code: CodeInvalid, text: "the stream has ended, and nothing of it is left to send", allow: "POST, DELETE"}
	errMedia       = rejection{status: http.StatusUnsupportedMediaType, code: CodeInvalid, text: "Content-Type is not application/json"}
	errCoding      = rejection{status: http.StatusUnsupportedMediaType, code: CodeInvalid, text: "Content-Encoding is not accepted"}
	errAccept      = rejection{status: http.StatusNotAcceptable, code: CodeInvalid, text: "Accept has to name application/json and text/event-stream"}
	errAcceptGet   = rejection{status: http.StatusNotAcceptable, code: CodeInvalid, text: "Accept has to name text/event-stream"}
	errTooLong     = rejection{status: http.StatusRequestEntityTooLarge, code: CodeInvalid, text: "body too long"}
	errTooSlow     = rejection{status: http.StatusRequestTimeout, code: CodeInvalid, text: "body did not come in time"}
	errFull        = rejection{status: http.StatusServiceUnavailable, code: codeOverloaded, text: "too much under way: try again later"}
	errGreedy      = rejection{status: http.StatusTooManyRequests, code: codeOverloaded, text: "too much of yours is under way: try again later"}
	errEnding      = rejection{status: http.StatusServiceUnavailable, code: codeOverloaded, text: "shutting down"}
	errNoServer    = rejection{status: http.StatusServiceUnavailable, code: codeOverloaded, text: "the server is not available"}
	errNotRead     = rejection{status: http.StatusServiceUnavailable, code: codeNotKept, text: "what is kept of the session cannot be read: try again"}
	errNotKept     = rejection{status: http.StatusServiceUnavailable, code: codeNotKept, text: "the session's state cannot be stored: try again"}
	errNotBegun    = rejection{status: http.StatusServiceUnavailable, code: codeNotKept, text: "the session cannot be stored, and so it did not begin: try again"}
	errLost        = rejection{status: http.StatusServiceUnavailable, code: codeLost, text: "the connection to the server ended before its answer came: it is not known whether the request was carried out"}
	errNoID        = rejection{status: http.StatusBadRequest, code: codeNoSession, text: "Mcp-Session-Id is missing"}
	errNoSession   = rejection{status: http.StatusNotFound, code: codeNoSession, text: "no such session"}
	errAgain       = rejection{status: http.StatusBadRequest, code: CodeInvalid, text: "initialize in a session"}
	errDuplicateID = rejection{status: http.StatusBadRequest, code: CodeInvalid, text: "a request with this id is already under way"}
	errEvent       = rejection{status: http.StatusBadRequest, code: CodeInvalid, text: "Last-Event-ID names no event that is kept"}
	errRepeated    = rejection{status: http.StatusBadRequest, code: CodeHeaderMismatch, text: "a header of MCP is there twice"}
	errNoVersion   = rejection{status: http.StatusBadRequest, code: CodeHeaderMismatch, text: "Mcp-Protocol-Version is missing"}
	errVersion     = rejection{status: http.StatusBadRequest, code: CodeHeaderMismatch, text: "Mcp-Protocol-Version and _meta differ"}
	errMethod      = rejection{status: http.StatusBadRequest, code: CodeHeaderMismatch, text: "Mcp-Method and the body's method differ"}
	errEncoded     = rejection{status: http.StatusBadRequest, code: CodeHeaderMismatch, text: "a header is not encoded as it says"}
	errMeta        = rejection{status: http.StatusBadRequest, code: CodeParams, text: "_meta names no protocol version"}
	errResponse    = rejection{status: http.StatusBadRequest, code: CodeInvalid, text: "a response, which this revision does not have"}
	errBatch       = rejection{status: http.StatusBadRequest, code: CodeInvalid, text: "a batch, which this revision does not have"}
	errBatchInit   = rejection{status: http.StatusBadRequest, code: CodeInvalid, text: "initialize in a batch"}
)

// unsupported says which revisions there are, and which one was asked for.
func unsupported(requested string) rejection {
	data := strictjson.AppendStrings([]byte(`{"supported":`), versions)
	if len(requested) <= 64 && validToken(requested) { // needs no escape
		data = append(append(append(data, `,"requested":"`...), requested...), '"')
	}
	return rejection{status: http.StatusBadRequest, code: CodeUnsupportedVersion, text: "unsupported protocol version", data: append(data, '}')}
}

func (x *exchange) reject(id ID, why rejection) {
	if x.began {
		x.rejectInStream(id, why)
		return
	}
	h := x.w.Header()
	if why.allow != "" {
		h.Set("Allow", why.allow)
	}
	if why.status == http.StatusServiceUnavailable || why.status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	x.whole(why.status, NewError(id, why.object()))
}

func (why *rejection) object() []byte {
	if why.raw != nil {
		return why.raw
	}
	raw := appendInt([]byte(`{"code":`), why.code)
	raw = strictjson.AppendQuote(append(raw, `,"message":`...), "pellucid: "+why.text)
	if why.data != nil {
		raw = append(append(raw, `,"data":`...), why.data...)
	}
	return append(raw, '}')
}
