// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/pellucid-mcp/pellucid/text/strictjson"

// AppendRequest appends a request, or a notification if id is zero. params is
// raw JSON; nil leaves the member out.
func AppendRequest(dst []byte, id ID, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if !id.IsZero() {
		dst = id.Append(append(dst, `,"id":`...))
	}
	dst = strictjson.AppendQuote(append(dst, `,"method":`...), method)
	if params != nil {
		dst = append(append(dst, `,"params":`...), params...)
	}
	return append(dst, '}')
}

// AppendResult appends the response to id. result is raw JSON.
func AppendResult(dst []byte, id ID, result []byte) []byte {
	dst = id.Append(append(dst, `{"jsonrpc":"2.0","id":`...))
	return append(append(append(dst, `,"result":`...), result...), '}')
}

// AppendError appends the error response to id (zero = null). rawError is the raw JSON error object.
func AppendError(dst []byte, id ID, rawError []byte) []byte {
	dst = id.Append(append(dst, `{"jsonrpc":"2.0","id":`...))
	return append(append(append(dst, `,"error":`...), rawError...), '}')
}
