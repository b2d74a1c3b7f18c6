// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Key is a reference to a secret, which is read when a request is signed and
// kept nowhere. However it is printed, also inside another value, it shows the
// reference and never the secret. The zero Key means no key: for local endpoints.
type Key struct {
	ref  string
	read func() (string, error) // a function, because fmt prints even fields that are not exported
}

// NewKey is a key that read reveals. ref names it to people.
func NewKey(ref string, read func() (string, error)) Key { return Key{ref, read} }

// maxKey is the longest secret accepted, in bytes.
const maxKey = 8 << 10

// reveal reads the secret; "" for the zero Key.
func (k Key) reveal() (string, *Error) {
	if k.read == nil {
		return "", nil
	}
	s, err := k.read()
	if err != nil || s == "" || len(s) > maxKey {
		return "", failure(CodeKey)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return "", failure(CodeKey)
		}
	}
	return s, nil
}

// Secret reads the secret, for who signs requests elsewhere; "" for the zero Key and
// where it cannot be read.
func (k Key) Secret() string {
	s, _ := k.reveal()
	return s
}

// IsZero reports whether k is the zero Key.
func (k Key) IsZero() bool { return k.read == nil }

// String is the reference.
func (k Key) String() string {
	if k.read == nil {
		return "none"
	}
	return k.ref
}

// Format prints the reference, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, finding.Quote(k.String())) }

// MarshalText is the reference.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// LogValue is the reference.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }
