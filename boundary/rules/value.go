// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/valueref"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Value is a string of the configuration that may be a secret: it stands in the
// file, or a reference to it does. All that prints it shows the reference.
type Value struct {
	ref  string // env:NAME, file:PATH, mcp_json; "" for what stands in the file itself
	text string
}

// Literal is the Value of a text that every reader of the configuration may see.
func Literal(text string) Value { return Value{text: text} }

// Reveal is the string itself, for the one who has to use it.
func (v Value) Reveal() string { return v.text }

// Behind is the string with prefix before it. It is as secret as the string.
func (v Value) Behind(prefix string) Value { return Value{ref: v.ref, text: prefix + v.text} }

// String is the reference of a secret, and otherwise the string.
func (v Value) String() string {
	if v.ref != "" {
		return v.ref
	}
	return v.text
}

// GoString hides a secret.
func (v Value) GoString() string { return "rules.Value(" + finding.Quote(v.String()) + ")" }

// MarshalText hides a secret.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// fromClient is the reference of what stands in a client's own file.
const fromClient = "mcp_json"

// isReference reports whether s stands for a value that stands elsewhere.
func isReference(s string) bool {
	return strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:")
}

const maxText = 4096 // bytes of a string of the file

// Resolve returns what a reference stands for, env:NAME or file:PATH: one line,
// without its line end. The error holds nothing of it.
func (o Options) Resolve(ref string) (string, error) {
	o = o.orSystem()
	return o.resolve(ref)
}

// Reference is the Value of a reference, which prints as it.
func (o Options) Reference(ref string) (Value, error) {
	text, err := o.Resolve(ref)
	if err != nil {
		return Value{}, err
	}
	return Value{ref: ref, text: text}, nil
}

func (o *Options) resolve(ref string) (string, error) { return o.source().Resolve(ref) }

// read reads a file that the configuration names. The error says no more of it
// than its quoted name.
func (o *Options) read(name string, most int) ([]byte, error) { return o.source().Read(name, most) }

func (o *Options) source() valueref.Source {
	return valueref.Source{Getenv: o.Getenv, ReadFile: func(name string) ([]byte, error) { return o.ReadFile(o.locate(name)) }}
}

// locate makes a path of the file absolute: "~/" is the user's directory, what is
// relative begins in the directory of the file.
func (o *Options) locate(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && o.home != "" {
		return filepath.Join(o.home, rest)
	}
	if filepath.IsAbs(name) || o.Dir == "" {
		return filepath.Clean(name)
	}
	return filepath.Join(o.Dir, name)
}

// orSystem fills in what Parse is not given.
func (o Options) orSystem() Options {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	if o.ReadFile == nil {
		o.ReadFile = valueref.ReadRegular
	}
	if o.home == "" {
		o.home, _ = os.UserHomeDir()
	}
	read := o.ReadFile
	o.ReadFile = func(name string) ([]byte, error) {
		if o.opened != nil {
			o.opened(name)
		}
		return read(name)
	}
	return o
}

// value reads a string that may be a reference.
func (c *compiler) value(p place) Value {
	s := c.text(p, maxText)
	if !isReference(s) {
		return Value{text: s}
	}
	text, err := c.opt.resolve(s)
	if err != nil {
		c.report(p, "%v", err)
		return Value{}
	}
	return Value{ref: s, text: text}
}

// secretValue reads the value of what is called name. One that may be a secret has
// to be a reference.
func (c *compiler) secretValue(name string, p place) Value {
	v := c.value(p)
	switch {
	case v.text == "" || v.ref != "":
	case secretName(name):
		c.report(p, "by its name this is a secret, and has to be a reference: env:NAME or file:PATH")
	case secretText(v.text):
		c.report(p, "this looks like a secret, and has to be a reference: env:NAME or file:PATH")
	default:
		return v
	}
	if v.ref == "" {
		return Value{}
	}
	return v
}

// Words of which a secret's name is made, and those behind them by which it is
// something else.
var (
	secretWords = wordSet("token tokens key keys apikey secret secrets password passwd passphrase pass pwd pat " +
		"credential credentials authorization auth cookie jwt bearer signature")
	harmlessWords = wordSet("path file dir directory url uri endpoint host limit limits max min mode type kind " +
		"name id sock socket ttl expiry expires timeout enabled disabled count size length method scheme version region")
	secretEnds = []string{"token", "apikey", "secret", "password", "passwd"}
)

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// secretName reports whether what is called name is a secret: GITHUB_TOKEN,
// X-Api-Key, tavilyApiKey; not TOKEN_LIMIT or KEY_FILE.
func secretName(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !('a' <= r && r <= 'z') })
	if len(words) == 0 || harmlessWords[words[len(words)-1]] {
		return false
	}
	for _, w := range words {
		if secretWords[w] {
			return true
		}
		for _, end := range secretEnds {
			if strings.HasSuffix(w, end) {
				return true
			}
		}
	}
	return false
}

// secretStarts begin secrets of kinds that are easily told.
var secretStarts = strings.Fields("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- sk- sk_live_ sk_test_ rk_live_ xoxb- xoxp- xapp- " +
	"AKIA ASIA AIza ya29. npm_ pypi- hf_ pplx- tvly- lin_api_ sbp_ dop_v1_ shpat_ SG. figd_ ntn_ secret_ eyJ")

// secretText reports whether s has the form of a secret.
func secretText(s string) bool {
	const shortest = 20
	if strings.HasPrefix(s, "-----BEGIN") {
		return true
	}
	for _, scheme := range []string{"Bearer ", "Basic ", "Token "} {
		if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return true
		}
	}
	if len(s) < shortest || strings.ContainsAny(s, " /\\") {
		return false
	}
	for _, start := range secretStarts {
		if strings.HasPrefix(s, start) {
			return true
		}
	}
	return false
}
