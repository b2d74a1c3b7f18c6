// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/sha256"
	"encoding/hex"
)

// What a client reads in the place of a call. Constant but for the evidence id:
// nothing of it was written by whoever wanted the call.
const (
	wordsHijack = "[Pellucid] A tool call was withheld: content in this conversation that is not the user's had caused it. " +
		"It was not executed. Evidence: "
	wordsWaiting = "[Pellucid] A tool call was withheld until a person has decided about it: it depends on content that is not the user's. " +
		"It was not executed. Evidence: "
	wordsUndecided = "[Pellucid] A tool call was withheld: what caused it could not be determined. It was not executed. Evidence: "
)

// refusalText is what is said of an outcome.
func (x *exchange) refusalText(o *decision) string {
	switch {
	case o.act == waiting:
		return wordsWaiting + x.id
	case o.reason == reasonRun && o.response != "hold":
		return wordsHijack + x.id
	}
	return wordsUndecided + x.id
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
