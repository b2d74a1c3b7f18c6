// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"strings"
)

// wordsUnsigned is for a client whose signature no one but this guard could use.
const wordsUnsigned = "the request is signed for this guard and not for Amazon Bedrock; " +
	"give the guard keys of its own (guard.aws), or the client an API key of Amazon Bedrock"

// unsigned reports whether what a client sends by way of credentials is a signature of its
// own, which fits nothing but the address of this guard, and the guard has none to put into
// its place.
func (g *Guard) unsigned(h http.Header) bool {
	return g.o.AWS == nil && g.o.Key.IsZero() && strings.HasPrefix(h.Get("Authorization"), "AWS4-")
}

// refuseConverse tells a client of Converse or InvokeModel, in the form that Amazon's SDKs show, which paths of
// Amazon Bedrock to use.
func refuseConverse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
	w.WriteHeader(http.StatusNotFound)
	// A client that has gone does not read it.
	_, _ = w.Write([]byte(`{"message":"Pellucid: the guard does not read Converse and InvokeModel: use a client of OpenAI's with the base URL of the guard and /openai/v1, or of Anthropic's with /anthropic"}`))
}
