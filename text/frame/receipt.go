// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// metaTag is what the key of every receipt begins with, but for its slash.
var metaTag = newTag(strings.TrimSuffix(MetaPrefix, "/"))

// IsReceipt reports whether a reader may take the key of a member for one of ours:
// it begins with dev.pellucid, or with what looks like it, and a slash follows, as
// in dev.pellucid/x, dev.pellucid.x/y and keys in other scripts.
func IsReceipt(key string) bool {
	if key == "" || !opensReceipt(key) {
		return false
	}
	var b ucd.Buffer
	return metaTag.begins(&b, key) && hasSlash(&b, key)
}

// opensReceipt rules out most keys by their first character.
func opensReceipt(key string) bool {
	if c := key[0]; c < utf8.RuneSelf {
		return c|0x20 == 'd' || c <= ' ' || c == 0x7F || strings.IndexByte(`-_/\`, c) >= 0
	}
	p, _ := ucd.Peek(key, 0)
	r, _, _ := ucd.Decode(key)
	return p&(ucd.Hidden|ucd.Mark|ucd.NFKCActive|ucd.NFCActive|ucd.Confusable) != 0 || ucd.Prototype(r) != ""
}

// hasSlash reports whether a reader sees a slash in s.
func hasSlash(b *ucd.Buffer, s string) bool {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			if s[i] == '/' || s[i] == '\\' {
				return true
			}
			i++
			continue
		}
		_, w := ucd.Peek(s, i)
		for _, r := range readings(b, s[i:i+w]) {
			if strings.Contains(r, "/") {
				return true
			}
		}
		i += w
	}
	return false
}
