// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// lenient is what is forgiven to models: they cut strings in the middle of a surrogate
// pair. Everything else of strictjson holds.
var lenient = strictjson.Limits{MendSurrogates: true}

// Parse reads the object that a body or the data of an event is. It is absent if src is no
// strict JSON object. It keeps src.
func Parse(src []byte) strictjson.Value {
	var d strictjson.Doc
	if d.Reset(src, lenient) != nil || d.Root().Kind() != '{' {
		return strictjson.Value{}
	}
	return d.Root()
}

// fields reads typed members and notes what is wrong with them. Members that this package
// does not know are left alone: providers add some every month.
type fields struct{ odd Odd }

// text is the string member of that name; "" if it is null or absent.
func (f *fields) text(v strictjson.Value, name string) string {
	m := v.Get(name)
	switch m.Kind() {
	case 0, 'n':
		return ""
	case '"':
		return strings.Clone(m.Text())
	}
	f.odd |= OddShape
	return ""
}

// maxCount is more tokens than any answer has; sums of it do not overflow.
const maxCount = 1 << 40

// count is the member of that name, a number of things; 0 if it is null or absent.
func (f *fields) count(v strictjson.Value, name string) int64 {
	m := v.Get(name)
	if k := m.Kind(); k == 0 || k == 'n' {
		return 0
	}
	n, ok := m.Int64()
	if !ok || n < 0 || n > maxCount {
		f.odd |= OddShape
		return 0
	}
	return n
}

// object is the member of that name; absent if it is null or absent, or no object, which
// is noted as odd.
func (f *fields) object(v strictjson.Value, name string, odd Odd) strictjson.Value {
	return f.ofKind(v, name, '{', odd)
}

func (f *fields) array(v strictjson.Value, name string, odd Odd) strictjson.Value {
	return f.ofKind(v, name, '[', odd)
}

func (f *fields) ofKind(v strictjson.Value, name string, want strictjson.Kind, odd Odd) strictjson.Value {
	m := v.Get(name)
	switch m.Kind() {
	case want:
		return m
	case 0, 'n':
	default:
		if says(m) {
			f.odd |= odd
		} else {
			f.odd |= OddShape
		}
	}
	return strictjson.Value{}
}

// strays notes members of v that a reader which does not mind the case of letters takes
// for those of names.
func (f *fields) strays(v strictjson.Value, names ...string) {
	if _, found := v.Strays(names); found {
		f.odd |= OddCall
	}
}

// usage is u if no count in it was wrong, and it does not contradict itself.
func (f *fields) usage(u Usage) Usage {
	if f.odd != 0 || u.Cached+u.CacheWrite > u.Input || u.Reasoning > u.Output {
		return Usage{}
	}
	u.Known = true
	return u
}

// says reports whether a member holds anything.
func says(v strictjson.Value) bool {
	switch v.Kind() {
	case 0, 'n':
		return false
	case '"':
		return len(v.Raw()) > 2
	case '[', '{':
		return v.Len() > 0
	}
	return true
}
