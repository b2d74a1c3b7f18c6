// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/valueref"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/jsonc"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxClientFile bounds a client's file, in bytes: some keep their history in it.
const maxClientFile = 32 << 20

// A clientEntry is what a client's file says of one server.
type clientEntry struct {
	command      []string
	env, headers map[string]string
	cwd, url     string
	transport    wire.Transport
}

// clientPaths is where clients keep their servers.
var clientPaths = [][]string{
	{"mcpServers"},      // Claude Desktop and Code, Cursor, Windsurf, Gemini CLI, Cline and others
	{"servers"},         // VS Code, mcp.json
	{"mcp", "servers"},  // VS Code, settings.json
	{"context_servers"}, // Zed, settings.json
}

// parseClient finds the entry of the server called name. Its error holds nothing
// of the file but quoted names.
func parseClient(src []byte, name string) (*clientEntry, error) {
	var doc strictjson.Doc
	if err := doc.Reset(jsonc.Plain(src), strictjson.Limits{Bytes: maxClientFile, MendSurrogates: true}); err != nil {
		return nil, err
	}
	found := false
	for _, path := range clientPaths {
		v := doc.Root()
		for _, p := range path {
			v = v.Get(p)
		}
		found = found || v.Kind() == '{'
		if e := v.Get(name); e.Kind() == '{' {
			return readEntry(e)
		}
	}
	if !found {
		return nil, errors.New("it has none of mcpServers, servers, mcp.servers and context_servers")
	}
	return nil, fmt.Errorf("it has no server called %s", finding.Quote(name))
}

// entryReader reads one entry. The first mistake is kept.
type entryReader struct{ err error }

func readEntry(v strictjson.Value) (*clientEntry, error) {
	var r entryReader
	e := &clientEntry{cwd: r.text(v, "cwd"), env: r.texts(v, "env"), headers: r.texts(v, "headers")}
	if command := v.Get("command"); command.Kind() == '{' { // older Zed: {path, args, env}
		e.env = r.texts(command, "env")
		e.command = r.command(command, "path")
	} else {
		e.command = r.command(v, "command")
	}
	e.transport = map[string]wire.Transport{"sse": wire.HTTPWithSSE, "http": wire.StreamableHTTP, "streamable-http": wire.StreamableHTTP, "streamableHttp": wire.StreamableHTTP}[v.Get("type").Text()]
	for _, member := range []string{"url", "serverUrl", "httpUrl"} {
		url := r.text(v, member)
		if url == "" {
			continue
		}
		if e.url != "" && e.url != url {
			r.fail("its entry has two URLs")
		}
		if e.url = url; member == "httpUrl" {
			e.transport = wire.StreamableHTTP
		}
	}
	switch {
	case v.Get("envFile").Exists():
		r.fail("its entry has an envFile, which is not read: give what is needed of it as env here")
	case len(e.command) > 0 && e.url != "":
		r.fail("its entry has a command and a URL")
	case len(e.command) == 0 && e.url == "":
		r.fail("its entry has neither a command nor a URL")
	case build.WrapWords(e.command, "") != nil: // its results would come framed twice
		r.fail("its entry runs behind pellucid wrap already: undo that with pellucid protect --undo")
	}
	return e, r.err
}

func (r *entryReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *entryReader) text(v strictjson.Value, name string) string {
	m := v.Get(name)
	if m.Exists() && m.Kind() != 'n' && m.Kind() != '"' {
		r.fail("%s of its entry is not a string", name)
		return ""
	}
	return r.plain(m, name)
}

func (r *entryReader) plain(v strictjson.Value, name string) string {
	s := strings.Clone(v.Text())
	if len(s) > maxText || strings.ContainsRune(s, 0) {
		r.fail("%s of its entry is too long, or holds a NUL", name)
		return ""
	}
	return s
}

// texts reads an object of strings; numbers and booleans count as they are spelled.
func (r *entryReader) texts(v strictjson.Value, name string) map[string]string {
	m := v.Get(name)
	if m.Exists() && m.Kind() != '{' && m.Kind() != 'n' {
		r.fail("%s of its entry is not an object", name)
	}
	out := map[string]string{}
	for key, val := range m.Members() {
		if len(out) == maxVariables {
			r.fail("%s of its entry has more than %d members", name, maxVariables)
			break
		}
		switch val.Kind() {
		case '"':
			out[strings.Clone(key.Text())] = r.plain(val, name)
		case '0', 't', 'f':
			out[strings.Clone(key.Text())] = string(val.Raw())
		default:
			r.fail("%s of its entry has a value that is not a string", name)
		}
	}
	return out
}

// command reads the program at name and its arguments.
func (r *entryReader) command(v strictjson.Value, name string) []string {
	program := r.text(v, name)
	if program == "" {
		return nil
	}
	out := []string{program}
	for arg := range v.Get("args").Elements() {
		if arg.Kind() != '"' || len(out) == maxArguments {
			r.fail("args of its entry are not at most %d strings", maxArguments)
			break
		}
		out = append(out, r.plain(arg, "args"))
	}
	return out
}

// expand replaces the variables that clients know: ${env:NAME}, ${NAME},
// ${NAME:-default}, ${userHome}, ${pathSeparator} and ${/}.
func (o *Options) expand(s string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", errors.New("a variable without an end")
		}
		value, err := o.variable(name)
		if err != nil {
			return "", err
		}
		if b.WriteString(value); b.Len() > valueref.MaxValue {
			return "", errors.New("variables make it too long")
		}
		s = after
	}
}

func (o *Options) variable(name string) (string, error) {
	switch name {
	case "userHome":
		return o.home, nil
	case "pathSeparator", "/":
		if runtime.GOOS == "windows" {
			return `\`, nil
		}
		return "/", nil
	}
	plain, usual, hasUsual := strings.Cut(strings.TrimPrefix(name, "env:"), ":-")
	if !isVariable(plain) {
		return "", fmt.Errorf("variable %s is one that only the client knows: set what it stands in here", finding.Quote(name))
	}
	if v, ok := o.Getenv(plain); ok && v != "" {
		return v, nil
	}
	if hasUsual {
		return usual, nil
	}
	return "", errors.New("variable " + finding.Quote(plain) + valueref.NotSet)
}

// isVariable: letters, digits and "_", the first no digit.
func isVariable(s string) bool {
	if s == "" || len(s) > 256 || '0' <= s[0] && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '_' {
			return false
		}
	}
	return true
}
