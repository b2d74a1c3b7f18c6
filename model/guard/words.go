// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
)

// What a client reads in the place of a call. Constant but for the evidence id:
// nothing of it was written by whoever wanted the call.
const (
	wordsHijack = "[Pellucid] A tool call was withheld: the user's request does not ask for it. " +
		"It was not executed. Evidence: "
	wordsWaiting = "[Pellucid] A tool call was withheld until a person has decided about it: it may not be what the user asked for. " +
		"It was not executed. Evidence: "
	wordsUnsure    = "[Pellucid] A tool call was withheld: it may not be what the user asked for. It was not executed. Evidence: "
	wordsUndecided = "[Pellucid] A tool call was withheld: what caused it could not be determined. It was not executed. Evidence: "
)

// wordsRepaired begin a repaired answer.
const wordsRepaired = "[Pellucid] Part of what a tool returned was withheld from the model: it led to a tool call that the request does not ask for. Evidence: "

// withNotice is a repaired answer that says so. An answer that is JSON for a program stays as it is.
func (x *exchange) withNotice(body []byte) []byte {
	root := format.Parse(body)
	text := strings.TrimSpace(read(x.f, body, nil).said.Text)
	if !root.Exists() || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		return body
	}
	return x.f.AppendNotice(make([]byte, 0, len(body)+256), root, wordsRepaired+x.id)
}

// refusalText is what is said of an outcome.
func (x *exchange) refusalText(o *decision) string {
	switch {
	case o.act == waiting:
		return wordsWaiting + x.id
	case o.reason == reasonFound && o.response == delegation.Repair:
		return wordsHijack + x.id
	case o.reason == reasonFound && o.response == delegation.Ask:
		return wordsUnsure + x.id
	}
	return wordsUndecided + x.id
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
