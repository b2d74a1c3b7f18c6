// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pellucid-mcp/pellucid/model/delegation"
)

// What a client reads in the place of a call. Constant but for the evidence id:
// nothing of it was written by whoever wanted the call.
const (
	wordsHijack = "[Pellucid] A tool call was withheld: the user's request does not ask for it. " +
		"It was not executed. Evidence: "
	wordsWaiting = "[Pellucid] A tool call was withheld until a person has decided about it: it may not be what the user asked for. " +
		"It was not executed. Evidence: "
	wordsUndecided = "[Pellucid] A tool call was withheld: what caused it could not be determined. It was not executed. Evidence: "
)

// refusalText is what is said of an outcome.
func (x *exchange) refusalText(o *decision) string {
	switch {
	case o.act == waiting:
		return wordsWaiting + x.id
	case o.reason == reasonFound && o.response == delegation.Repair:
		return wordsHijack + x.id
	}
	return wordsUndecided + x.id
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
