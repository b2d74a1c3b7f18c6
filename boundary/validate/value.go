// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxPointer bounds the levels of a pointer.
const maxPointer = 16

// pointerTo returns the JSON pointer of a place in v. In the place of a name that is not in plain stands its number.
func pointerTo(v strictjson.Value, at []string, plain map[string]bool) string {
	var b strings.Builder
	for i, name := range at {
		if i == maxPointer {
			b.WriteString("/\u2026")
			break
		}
		b.WriteByte('/')
		switch v.Kind() {
		case '[':
			b.WriteString(name) // an index
			n, err := strconv.Atoi(name)
			if err != nil {
				return b.String()
			}
			k := 0
			for e := range v.Elements() {
				if k == n {
					v = e
					break
				}
				k++
			}
		default:
			k := 0
			for m, e := range v.Members() {
				if m.Text() == name {
					if plain[name] {
						b.WriteString(name)
					} else {
						fmt.Fprintf(&b, "#%d", k)
					}
					v = e
					break
				}
				k++
			}
		}
	}
	return b.String()
}

// Bounds of a number, since the library computes with it exactly: its bytes, and its exponent.
const (
	maxNumber   = 64
	maxExponent = 400
)

// decode returns v as the library takes it.
func decode(v strictjson.Value) (any, error) {
	switch v.Kind() {
	case '{':
		m := map[string]any{}
		for name, e := range v.Members() {
			x, err := decode(e)
			if err != nil {
				return nil, err
			}
			m[name.Text()] = x
		}
		return m, nil
	case '[':
		list := []any{}
		for e := range v.Elements() {
			x, err := decode(e)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		return list, nil
	case '"':
		return v.Text(), nil
	case 't', 'f':
		b, _ := v.Bool()
		return b, nil
	case '0':
		return decodeNumber(v.Raw())
	}
	return nil, nil
}

func decodeNumber(raw []byte) (any, error) {
	mantissa, exponent, has := bytes.Cut(bytes.ToLower(raw), []byte{'e'})
	if len(mantissa) > maxNumber {
		return nil, valueLimits
	}
	if has {
		n, err := strconv.Atoi(string(exponent))
		if err != nil || n > maxExponent || n < -maxExponent {
			return nil, valueLimits
		}
	}
	return json.Number(raw), nil
}
