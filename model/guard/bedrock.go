// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"strings"
)

// anyModel stands, in a route, for the id of a model or the ARN of something that answers
// like one. It is no segment of a path.
const anyModel = "{model}"

// maxModelID is the longest id that Amazon Bedrock has, in bytes.
const maxModelID = 2048

// modelID is the id that s, a segment of a path, names, and how Amazon's clients spell it
// there. A colon and a slash may be escaped, and nothing else.
func modelID(s string) (id, spelled string, ok bool) {
	id = strings.NewReplacer("%3A", ":", "%3a", ":", "%2F", "/", "%2f", "/").Replace(s)
	if len(id) > maxModelID || !all(strings.Split(id, "/"), isSegment) {
		return "", "", false
	}
	return id, strings.NewReplacer(":", "%3A", "/", "%2F").Replace(id), true
}

// wordsUnsigned is for a client whose signature no one but this guard could use.
const wordsUnsigned = "the request is signed for this guard and not for Amazon Bedrock; " +
	"give the guard keys of its own (guard.aws), or the client an API key of Amazon Bedrock"

// unsigned reports whether what a client sends by way of credentials is a signature of its
// own, which fits nothing but the address of this guard, and the guard has none to put into
// its place.
func (g *Guard) unsigned(h http.Header) bool {
	return g.o.AWS == nil && g.o.Key.IsZero() && strings.HasPrefix(h.Get("Authorization"), "AWS4-")
}

// stored reports whether the path names a prompt that the provider keeps, in the place of a
// model: the context begins with it.
func (x *exchange) stored() bool { return strings.Contains(x.model, ":prompt/") }
