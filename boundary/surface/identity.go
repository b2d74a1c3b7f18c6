// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// commandIdentity identifies a server that is started, by what is started: the program
// and its arguments. dir counts where the command depends on it: if it is stated for
// the server (given), or if a word of the command is a path relative to it. The values
// of environment variables do not count, since they hold secrets that are replaced.
// Arguments may hold secrets too, so an identity is a digest. spec: surface/7.4
func commandIdentity(args []string, dir string, given bool) string {
	if !given && !slices.ContainsFunc(args, isRelative) {
		return identity("stdio", args...)
	}
	return identity("stdio", append(slices.Clone(args), "", dir)...)
}

// LocalIdentity is commandIdentity of a command of this machine. dir is "" where none is
// stated for it: a path of the command is then relative to the working directory.
func LocalIdentity(command []string, dir string) string {
	given := dir != ""
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return commandIdentity(command, dir, given)
}

// DefaultName is the name of a server whose name, command and URL say nothing.
const DefaultName = "server"

// NameOf names a server that the operator has given no name: by its program, or by the
// host of its URL. Several servers may have the same name.
func NameOf(command []string, address string) string {
	if len(command) > 0 {
		return command[0][strings.LastIndexAny(command[0], `/\`)+1:]
	}
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return DefaultName
}

// URLIdentity identifies a server that is reached at a URL.
func URLIdentity(url string) string { return identity("http", url) }

func identity(kind string, parts ...string) string {
	b, _ := json.Marshal(parts) // strings always marshal
	sum := sha256.Sum256(b)
	return kind + ":" + hex.EncodeToString(sum[:16])
}

// isRelative reports whether a word of a command is plainly a relative path. A word with
// a slash inside need not be one: it may name a package or a container image.
func isRelative(word string) bool {
	word = strings.ReplaceAll(word, `\`, "/")
	return word == "." || word == ".." || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../")
}
