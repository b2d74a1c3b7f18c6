// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	maxIDBytes = 256
	maxInteger = 1 << 53 // the last integer that every JSON reader holds exactly
)

// ID is a JSON-RPC id in its one canonical JSON spelling (`12` or `"abc"`); the zero ID means no id. Comparable.
type ID struct{ raw string }

// IntID returns the ID n. It panics beyond ±2^53, which no peer could echo.
func IntID(n int64) ID {
	if n > maxInteger || n < -maxInteger {
		panic("wire: id beyond 2^53")
	}
	return ID{strconv.FormatInt(n, 10)}
}

// StringID returns the ID "s"; s must be valid UTF-8.
func StringID(s string) ID { return ID{string(strictjson.AppendQuote(nil, s))} }

// IsZero reports whether id is the zero ID, which means no id.
func (id ID) IsZero() bool { return id.raw == "" }

// Append appends the ID's JSON spelling, null for the zero ID.
func (id ID) Append(dst []byte) []byte {
	if id.raw == "" {
		return append(dst, "null"...)
	}
	return append(dst, id.raw...)
}

// Int returns the integer that the ID is.
func (id ID) Int() (n int64, ok bool) {
	if id.raw == "" || id.raw[0] == '"' {
		return 0, false
	}
	n, err := strconv.ParseInt(id.raw, 10, 64)
	return n, err == nil
}

// IDOf reads an id, that of a message or one in its params. Spellings other than the
// canonical one of an integer (-0, 1e2, 1.0) are refused: a peer may read them as another id.
func IDOf(v strictjson.Value) (ID, bool) {
	switch v.Kind() {
	case '"':
		s := v.Text()
		if len(s) > maxIDBytes {
			return ID{}, false
		}
		return StringID(s), true
	case '0':
		n, ok := v.Int64()
		if !ok || n > maxInteger || n < -maxInteger {
			return ID{}, false
		}
		id := IntID(n)
		if id.raw == string(v.Raw()) {
			return id, true
		}
	}
	return ID{}, false
}
