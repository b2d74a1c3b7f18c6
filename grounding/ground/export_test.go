// SPDX-License-Identifier: Apache-2.0

package ground

// OutputSchema is outputSchema.
func OutputSchema() []byte { return outputSchema }

// ParseEvent reports why parseEvent refuses body, or what its canonical hash is.
func ParseEvent(body []byte) (hash string, err error) {
	n, r := parseEvent(body)
	if r != nil {
		return "", r
	}
	return n.hash.String(), nil
}
