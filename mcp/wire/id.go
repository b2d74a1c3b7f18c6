// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	maxIDBytes     = 4 << 10 // of a string
	maxNumberBytes = 256     // bytes of a number
	maxInteger     = 1 << 53 // the last integer that every JSON reader holds exactly
)

// ID is a JSON-RPC id, a string or a number, as its peer spells it; the zero ID means no id. Comparable.
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

// IDOf reads an id, that of a message or one in its params. It keeps its bytes, since its peer may know it only by
// them: 1 and 1.0 are two ids.
func IDOf(v strictjson.Value) (ID, bool) {
	most := map[strictjson.Kind]int{'"': maxIDBytes + 2, '0': maxNumberBytes}[v.Kind()]
	raw := v.Raw()
	if len(raw) == 0 || len(raw) > most {
		return ID{}, false
	}
	return ID{string(raw)}, true
}

// asRequestID returns the id of the request that a peer answers with id. Our own ids are integers; some servers return them
// as strings (`"1"`), or as other spellings of the number (`1.0`).
func (id ID) asRequestID() ID {
	var s string
	if json.Unmarshal([]byte(id.raw), &s) == nil {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 && n <= maxInteger {
			return IntID(n)
		}
		return id
	}
	n, err := strconv.ParseFloat(id.raw, 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) >= maxInteger {
		return id
	}
	return IntID(int64(n))
}
