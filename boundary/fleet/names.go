// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Where all servers are one, a name is PREFIX_NAME. A prefix has no underscore, so
// that the first one ends it, and a name says whose it is without a table.
//
// The interfaces of models take 1 to 64 of A-Z a-z 0-9 _ - for the name of a tool. A
// name that is too long, has other characters, or looks as if it had been cut already
// has its end replaced by the digest of server and name. Which name stands for which
// does not depend on what other servers there are.

const (
	maxName    = 64 // bytes of a prefixed name
	maxPrefix  = 40 // bytes of a prefix, which leaves room for some of the name
	digestSize = 8  // hexadecimal digits
	maxNames   = 10_000
)

// prefixOf is the prefix of the server's names, without the underscore behind it.
func prefixOf(s *Server) string {
	prefix := strings.NewReplacer("_", "-", ".", "-").Replace(cmp.Or(s.Prefix, s.Name))
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix-digestSize-1] + "-" + shortDigest(prefix)
	}
	return prefix
}

func shortDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:digestSize/2])
}

// outer is the name that stands for a server's own. plain means that the own name
// can be read off it.
func outer(server, prefix, name string) (out string, plain bool) {
	out = prefix + "_" + strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && isNameByte(byte(r)) && r != '.' {
			return r
		}
		return '_'
	}, name)
	if out == prefix+"_"+name && len(out) <= maxName && !cut(out) {
		return out, true
	}
	end := "_" + shortDigest(server+"\x00"+name)
	return out[:min(len(out), maxName-len(end))] + end, false
}

// NameOf returns the name that stands for a server's own where all servers are one, and whether that is
// PREFIX_NAME.
func NameOf(server, prefix, name string) (shown string, plain bool) {
	return outer(server, prefixOf(&Server{Name: server, Prefix: prefix}), name)
}

// cut reports whether a name ends as one does whose end was replaced.
func cut(s string) bool {
	if len(s) <= digestSize || s[len(s)-digestSize-1] != '_' {
		return false
	}
	for _, c := range []byte(s[len(s)-digestSize:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// names are those of one kind that a server has listed and that cannot be read off
// the prefixed name.
type names map[string]string

// add notes the name that stands for a server's own and returns it. It returns "" if
// that name stands for another one already, or there are too many.
func (n names) add(server, prefix, name string) string {
	out, plain := outer(server, prefix, name)
	switch have, there := n[out]; {
	case plain, there && have == name:
		return out
	case there || len(n) >= maxNames:
		return ""
	}
	n[strings.Clone(out)] = strings.Clone(name)
	return out
}

// inner is the server's own name; known is false if only a listing could tell.
func (n names) inner(prefix, out string) (name string, known bool) {
	rest, ok := strings.CutPrefix(out, prefix+"_")
	if !ok {
		return "", false
	}
	if !cut(out) {
		return rest, true
	}
	name, known = n[out]
	return name, known
}
