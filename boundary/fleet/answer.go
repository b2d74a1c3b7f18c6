// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"strconv"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The texts of this package's errors: constants, so that no third party has a say.
const (
	textAbsent    = "pellucid: the server is not available at present"
	textRejected  = "pellucid: the server is rejected, its operator knows why"
	textBusy      = "pellucid: too many requests wait for the server"
	textFull      = "pellucid: too many processes of servers are at work: ask again later"
	textLost      = "pellucid: the server ended before it answered"
	textNoTool    = "pellucid: no such tool"
	textNoPrompt  = "pellucid: no such prompt"
	textNoURI     = "pellucid: no such resource"
	textNoTask    = "pellucid: no such task"
	textNoRef     = "pellucid: nothing of that name to complete"
	textNoMethod  = "pellucid: method not found"
	textCursor    = "pellucid: the cursor is not one of ours"
	textMismatch  = "pellucid: a header and the body differ"
	textDuplicate = "pellucid: a request with this id is already under way"
	textOrder     = "pellucid: initialize comes first, and once"
	textLevel     = "pellucid: no such level"
	textShared    = "pellucid: a shared server cannot ask a client"
)

// errorObject is the error member of a message.
func errorObject(code int, text string) []byte {
	dst := strconv.AppendInt([]byte(`{"code":`), int64(code), 10)
	dst = strictjson.AppendQuote(append(dst, `,"message":`...), text)
	return append(dst, '}')
}

// refusal answers a request with an error.
func refusal(id, alias wire.ID, code int, text string) *wire.Message {
	m := wire.NewError(id, errorObject(code, text))
	m.Alias, m.Whole = alias, true
	return m
}

// constant decodes an error response of constant text. cause is for the operator.
func constant(id wire.ID, code int, text string, cause error) *wire.Message {
	m := own(wire.NewError(id, errorObject(code, text)))
	if m == nil {
		panic("fleet: own error response is not valid") // constants only
	}
	if cause == nil {
		cause = errors.New("fleet: " + text)
	}
	m.Local, m.Cause = true, cause
	return m
}
