// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"slices"
	"unicode/utf16"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// appendCanonical appends the form of RFC 8785, with one difference: a number
// that JCS refuses, since it would fold it into another, keeps its spelling. Real
// servers write the limits of 64-bit integers into their schemas. Members of v
// itself for which skip is true are left out. spec: surface/2
func appendCanonical(dst []byte, v strictjson.Value, skip func(name string, val strictjson.Value) bool) []byte {
	switch v.Kind() {
	case '{':
		return appendObject(dst, v, skip)
	case '[':
		dst = append(dst, '[')
		for e := range v.Elements() {
			dst = append(appendCanonical(dst, e, nil), ',')
		}
		return closed(dst, ']')
	case '"':
		return strictjson.AppendQuote(dst, v.Text())
	case '0':
		return appendNumber(dst, v.Raw())
	}
	return append(dst, v.Raw()...)
}

// closed ends a list: over its last comma, if it has one.
func closed(dst []byte, end byte) []byte {
	if dst[len(dst)-1] == ',' {
		dst[len(dst)-1] = end
		return dst
	}
	return append(dst, end)
}

type member struct {
	name string
	val  strictjson.Value
}

func appendObject(dst []byte, v strictjson.Value, skip func(string, strictjson.Value) bool) []byte {
	members := make([]member, 0, v.Len())
	ascii := true
	for name, val := range v.Members() {
		m := member{name.Text(), val}
		if skip != nil && skip(m.name, val) {
			continue
		}
		ascii = ascii && isASCII(m.name)
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b member) int {
		if ascii {
			return cmpString(a.name, b.name)
		}
		return slices.Compare(utf16.Encode([]rune(a.name)), utf16.Encode([]rune(b.name)))
	})
	dst = append(dst, '{')
	for _, m := range members {
		dst = append(strictjson.AppendQuote(dst, m.name), ':')
		dst = append(appendCanonical(dst, m.val, nil), ',')
	}
	return closed(dst, '}')
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func appendNumber(dst, raw []byte) []byte {
	const safeDigits = 15
	if len(raw) <= safeDigits && raw[0] != '-' && bytes.IndexFunc(raw, func(r rune) bool { return r < '0' || r > '9' }) < 0 {
		return append(dst, raw...)
	}
	if out, err := strictjson.Canonical(dst, raw, strictjson.Limits{}); err == nil {
		return out
	}
	return append(dst, raw...)
}

// isBookkeeping reports whether a member of a result is between client and server
// and depends on who asks and when: it is part of no item, as long as it is what
// it should be and so can say nothing else. spec: surface/2.2
func isBookkeeping(name string, v strictjson.Value) bool {
	switch name {
	case "nextCursor":
		return v.Kind() == '"' || v.Kind() == 'n' || v.Kind() == '0'
	case "ttlMs":
		return v.Kind() == '0'
	case "cacheScope":
		return v.Text() == "public" || v.Text() == "private"
	case "resultType":
		return slices.Contains(mcpmsg.ResultTypes, v.Text())
	case "protocolVersion":
		return isRevision(v)
	case "supportedVersions":
		if v.Kind() != '[' {
			return false
		}
		for e := range v.Elements() {
			if !isRevision(e) {
				return false
			}
		}
		return true
	}
	return false
}

// isRevision reports whether v is a date, as the protocol's versions are.
func isRevision(v strictjson.Value) bool {
	s := v.Text()
	if len(s) != len("2024-11-05") {
		return false
	}
	for i := range len(s) {
		if dash := i == 4 || i == 7; dash != (s[i] == '-') || !dash && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}
