// SPDX-License-Identifier: Apache-2.0

package ground

import "net/http"

// OutputSchema is outputSchema.
func OutputSchema() []byte { return outputSchema }

// FeedHandler is feedHandler, without the authentication around it.
func (a *Adapter) FeedHandler() http.Handler { return a.feedHandler() }

// ParseEvent reports why parseEvent refuses body, or what its canonical hash is.
func ParseEvent(body []byte) (hash string, err error) {
	n, r := parseEvent(body)
	if r != nil {
		return "", r
	}
	return n.hash.String(), nil
}

// FeedStall is feedStall.
const FeedStall = feedStall
