// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A dialect is the names that a client has for the members of an entry.
type dialect struct {
	command, args, env, headers string
	urls                        []string
	// local is what type says of an entry that starts a command.
	local string
	// whole says that command is a list of the program and its arguments.
	whole bool
	// inherit names a list of variables that the client passes on from its own environment, or
	// from its keychain.
	inherit string
	// bearer names a variable that holds a token, and fromEnv an object of headers whose values
	// are names of variables.
	bearer, fromEnv string
	// nested names an object that holds the headers.
	nested string
	// loose says that the client passes over members that an entry of a command has no use for.
	loose bool
	// fills says that the client fills variables ($NAME) in headers, and not in env.
	fills bool
}

var (
	// common is the format of Claude Desktop, which most clients have taken over.
	common = &dialect{command: "command", args: "args", env: "env", headers: "headers", urls: []string{"url", "serverUrl", "httpUrl"}, local: "stdio"}
	// codex refuses members of a URL beside a command.
	codex = &dialect{command: "command", args: "args", env: "env", headers: "http_headers", urls: []string{"url"}, local: "stdio",
		inherit: "env_vars", bearer: "bearer_token_env_var", fromEnv: "env_http_headers"}
	goose = &dialect{command: "cmd", args: "args", env: "envs", headers: "headers", urls: []string{"uri", "url"}, local: "stdio",
		inherit: "env_keys", loose: true, fills: true}
	continueDev = &dialect{command: "command", args: "args", env: "env", headers: "headers", urls: []string{"url"}, local: "stdio",
		nested: "requestOptions", loose: true}
	// openCode refuses members that it does not know.
	openCode = &dialect{command: "command", env: "environment", headers: "headers", urls: []string{"url"}, local: "local", whole: true}
)

// dialectOf is the dialect of entries below at.
func dialectOf(syntax Syntax, at []string) *dialect {
	switch {
	case syntax == TOML:
		return codex
	case syntax == YAML && len(at) > 0 && at[0] == "extensions":
		return goose
	case syntax == YAML:
		return continueDev
	case len(at) == 1 && at[0] == "mcp":
		return openCode
	}
	return common
}

func (f Format) dialectOf(at []string) *dialect { return dialectOf(f.Syntax, at) }

// starts is the program of an entry and the list of its arguments. Where command is a list,
// the arguments are that list, with the program in it.
func (d *dialect) starts(v *node) (program, args *node) {
	c := v.get(d.command)
	switch {
	case d.whole:
		if len(c.list()) > 0 {
			return c.list()[0], c
		}
		return nil, c
	case c.is('{'): // older Zed: {"path", "args", "env"}
		return c.get("path"), c.get("args")
	}
	return c, v.get(d.args)
}

// words is the arguments as text; ok is false if one is not a string.
func (d *dialect) words(v *node) (words []string, ok bool) {
	_, args := d.starts(v)
	for _, a := range args.list() {
		if !a.is('"') {
			return nil, false
		}
		words = append(words, a.str())
	}
	if d.whole && len(words) > 0 {
		words = words[1:]
	}
	return words, true
}

// wrapWords returns the words of wrap, the verb first, if an entry starts this program, which is also at binary, to wrap a
// server.
func (d *dialect) wrapWords(v *node, binary string) []string {
	program, _ := d.starts(v)
	words, ok := d.words(v)
	if !program.is('"') || !ok {
		return nil
	}
	return build.WrapWords(append([]string{program.str()}, words...), binary)
}

// wrapFlags returns the arguments of an entry that are flags of wrap.
func (d *dialect) wrapFlags(v *node, binary string) []string {
	words := d.wrapWords(v, binary)
	if i := slices.Index(words, "--"); i >= 0 {
		words = words[:i]
	}
	return words
}

func (d *dialect) url(v *node) *node {
	for _, name := range d.urls {
		if u := v.get(name); u.exists() {
			return u
		}
	}
	return nil
}

// headersOf is the headers of an entry, and the object that holds them.
func (d *dialect) headersOf(v *node) (headers, holder *node) {
	if d.nested != "" {
		holder = v.get(d.nested)
		return holder.get(d.headers), holder
	}
	return v.get(d.headers), v
}

// common is an entry in the format that most clients have, in JSON.
func (d *dialect) common(v *node) json.RawMessage {
	if d == common || !v.is('{') {
		return v.value()
	}
	out := []byte{'{'}
	put := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(strictjson.AppendQuote(out, name), ':'), value...)
	}
	program, _ := d.starts(v)
	if program.exists() {
		words, ok := d.words(v)
		args, _ := json.Marshal(append([]string{}, words...))
		if !ok {
			args = []byte("null")
		}
		put("command", program.value())
		put("args", args)
	} else if u := d.url(v); u.exists() {
		put("url", u.value())
	}
	environ := v.get(d.env)
	if environ.exists() {
		put("env", d.inherited(v, environ))
	} else if v.get(d.inherit).exists() {
		put("env", d.inherited(v, nil))
	}
	if headers, _ := d.headersOf(v); headers.exists() || v.get(d.bearer).exists() || v.get(d.fromEnv).exists() {
		put("headers", d.allHeaders(v, headers))
	}
	for _, name := range []string{"cwd", "disabled", "enabled"} {
		if m := v.get(name); m.exists() {
			put(name, m.value())
		}
	}
	if kind := v.get("type").str(); strings.EqualFold(kind, kindSSE) {
		put("type", []byte(`"sse"`))
	}
	return append(out, '}')
}

// inherited is the variables of an entry, with those that the client passes on as references.
func (d *dialect) inherited(v, environ *node) []byte {
	all := &node{kind: '{'}
	all.members = append(all.members, environ.all()...)
	for _, name := range v.get(d.inherit).list() {
		if isVariable(name.str()) && all.get(name.str()) == nil {
			all.members = append(all.members, member{name: name.str(), value: &node{kind: '"', text: "${" + name.str() + ":-}"}})
		}
	}
	return all.value()
}

func (d *dialect) allHeaders(v, headers *node) []byte {
	all := &node{kind: '{'}
	all.members = append(all.members, headers.all()...)
	for _, m := range v.get(d.fromEnv).all() {
		all.members = append(all.members, member{name: m.name, value: &node{kind: '"', text: "${" + m.value.str() + ":-}"}})
	}
	if token := v.get(d.bearer).str(); token != "" {
		all.members = append(all.members, member{name: "Authorization", value: &node{kind: '"', text: "Bearer ${" + token + ":-}"}})
	}
	return all.value()
}
