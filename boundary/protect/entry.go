// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Why an entry is left alone. The texts are constant: they go to a terminal.
const (
	already      = "runs behind Pellucid already"
	whyShape     = "its entry is not an object of the expected form"
	whyNothing   = "it has neither a command nor a URL: the client or an extension starts it"
	whyBoth      = "it has a command and a URL"
	whyLogin     = "the client logs in to it by itself (OAuth), which a program in between cannot"
	whyURL       = "its URL is not one of http or https that wrap takes"
	whyUser      = "its URL holds a name or a password, which wrap takes as a header only"
	whySocket    = "its transport is neither a command nor HTTP"
	whyEnvFile   = "it has an envFile, whose variables would not reach it: write them as env"
	whyVariable  = "a variable or header of it has a name that cannot be passed on"
	whyEnvHeader = "it has a URL, headers and env"
)

// An entry is one server of a file, with the splices that put it behind Pellucid.
type entry struct {
	t      *text
	v      strictjson.Value
	binary string
	label  string
	edits  []splice
	advice string // for a person, of an entry that is rewritten
}

// mayLogIn is advice: a file does not say whether a server asks for a login.
const mayLogIn = "if the client has to log in to it (OAuth), leave it alone: --skip"

// rewrite collects the splices, or returns why there are none.
func (e *entry) rewrite() string {
	if e.v.Kind() != '{' {
		return whyShape
	}
	command, address := e.v.Get("command"), e.url()
	switch {
	case command.Exists() && address.Exists():
		return whyBoth
	case e.v.Get("envFile").Exists():
		return whyEnvFile
	case command.Kind() == '{': // older Zed: {"path", "args", "env"}
		return e.command(command, "path")
	case command.Exists():
		return e.command(e.v, "command")
	case address.Exists():
		return e.remote(address)
	}
	return whyNothing
}

// urlNames are the members that clients name a URL by.
var urlNames = []string{"url", "serverUrl", "httpUrl"}

func (e *entry) url() strictjson.Value {
	for _, name := range urlNames {
		if v := e.v.Get(name); v.Exists() {
			return v
		}
	}
	return strictjson.Value{}
}

// command puts the program that member of obj names behind ours.
func (e *entry) command(obj strictjson.Value, member string) string {
	program, args, env := obj.Get(member), obj.Get("args"), obj.Get("env")
	if program.Kind() != '"' || program.Text() == "" || !isList(args) {
		return whyShape
	}
	if (program.Text() == e.binary || isOurs(program.Text())) && firstText(args) == "wrap" {
		return already
	}
	front := []string{"wrap", "--name", e.label}
	switch env.Kind() {
	case '{':
		for name, value := range env.Members() {
			if !isVariable(name.Text()) || value.Kind() == '{' || value.Kind() == '[' {
				return whyVariable
			}
			front = append(front, "--env", name.Text())
		}
	case 0, 'n':
	default:
		return whyShape
	}
	// The directory is told to wrap as well, since it is a part of the server's identity.
	if dir := e.v.Get("cwd"); dir.Kind() == '"' && filepath.IsAbs(dir.Text()) && !strings.Contains(dir.Text(), "${") {
		front = append(front, "--cwd", dir.Text())
	}
	front = append(front, "--", program.Text())
	e.replace(program, quote(e.binary))
	e.prepend(obj, program, args, front)
	return ""
}

// remote puts the server at address behind ours. Headers become variables of the
// entry: only names change, so that every value stays where it stands.
func (e *entry) remote(address strictjson.Value) string {
	headers, env := e.v.Get("headers"), e.v.Get("env")
	switch {
	case address.Kind() != '"' || e.v.Get("args").Exists():
		return whyShape
	case headers.Exists() && headers.Kind() != '{' || env.Exists() && env.Kind() != '{':
		return whyShape
	case headers.Exists() && env.Exists():
		return whyEnvHeader
	}
	for _, name := range []string{"oauth", "auth", "authorization", "headersHelper", "authProvider", "authProviderType"} {
		if e.v.Get(name).Exists() {
			return whyLogin
		}
	}
	kind, why := e.kind()
	if why != "" {
		return why
	}
	secret, why := checkURL(address.Text())
	if why != "" {
		return why
	}
	if kind.Exists() {
		e.replace(kind, `"stdio"`)
	}
	if headers.Len() == 0 && !secret {
		e.advice = mayLogIn
	}
	front := []string{"wrap", "--name", e.label, "--url", address.Text()}
	var moved string // a member for env
	if secret {
		front[4] = "env:" + urlVariable
		moved = quote(urlVariable) + ": " + string(e.t.raw(address))
	}
	if strings.EqualFold(kind.Text(), kindSSE) {
		front = append(front, "--transport", kindSSE)
	}
	taken := map[string]bool{}
	for name, value := range headers.Members() {
		variable, ok := headerVariable(name.Text(), taken)
		if !ok || value.Kind() != '"' || value.Text() == "" {
			e.edits = nil
			return whyVariable
		}
		front = append(front, "--header", name.Text()+"=env:"+variable)
		e.replace(name, quote(variable))
	}
	e.environment(headers, env, &moved)
	name := e.nameOf(e.v, address)
	sep := "," + e.before(e.v, name)
	with := `"command": ` + quote(e.binary) + sep + `"args": ` + list(front, ", ")
	if moved != "" {
		with += sep + `"env": {` + moved + "}"
	}
	e.edits = append(e.edits, splice{name.Offset(), end(address), []byte(with)})
	return ""
}

// environment makes the entry's headers its env. moved goes into the object that
// there is; if there is none, it is left to the caller.
func (e *entry) environment(headers, env strictjson.Value, moved *string) {
	into := env
	if headers.Exists() {
		e.replace(e.nameOf(e.v, headers), `"env"`)
		into = headers
	}
	if !into.Exists() || *moved == "" {
		return
	}
	if into.Len() > 0 {
		*moved += ", "
	}
	e.edits = append(e.edits, splice{into.Offset() + 1, into.Offset() + 1, []byte(*moved)})
	*moved = ""
}

// kindSSE is how clients call the transport of 2024-11-05. Without a word they try
// streamable HTTP first and fall back to it, and so does wrap.
const kindSSE = "sse"

// kind returns the member that says which transport the entry has, and why it is
// none that can be wrapped.
func (e *entry) kind() (strictjson.Value, string) {
	for _, name := range []string{"type", "transport"} {
		v := e.v.Get(name)
		switch kind := strings.ToLower(v.Text()); {
		case !v.Exists():
		case kind == kindSSE || kind == "http" || kind == "streamable-http" || kind == "streamablehttp" || kind == "streamable_http":
			return v, ""
		default:
			return v, whySocket
		}
	}
	return strictjson.Value{}, ""
}

// urlVariable holds a URL that may have a secret in it.
const urlVariable = "PELLUCID_URL"

// checkURL reports whether a URL may have a secret in it, or is one of the client's
// variables, of which nobody here knows, and why wrap would not take it.
func checkURL(s string) (secret bool, why string) {
	if strings.HasPrefix(s, "${") {
		return true, ""
	}
	scheme, rest, _ := strings.Cut(s, "://")
	host := rest
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		host = rest[:i]
	}
	switch {
	case !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") || host == "" || strings.Contains(s, "#"):
		return false, whyURL
	case strings.Contains(host, "@"):
		return false, whyUser
	}
	return keyed(rest), ""
}

// keyed reports whether what stands behind a URL's scheme may hold a key: a query,
// or a part of the path that looks random, as some services have it.
func keyed(rest string) bool {
	for part := range strings.SplitSeq(rest, "/") {
		if strings.Contains(part, "?") || secretWord.MatchString(part) && hasDigit.MatchString(part) {
			return true
		}
	}
	return false
}

// headerVariable names the variable for a header.
func headerVariable(header string, taken map[string]bool) (string, bool) {
	var b strings.Builder
	b.WriteString("PELLUCID_HEADER_")
	for i := range len(header) {
		switch c := header[i]; {
		case 'a' <= c && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			b.WriteByte(c)
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
			b.WriteByte('_')
		default:
			return "", false
		}
	}
	name := b.String()
	for n := 2; taken[name]; n++ {
		name = b.String() + "_" + itoa(n)
	}
	taken[name] = true
	return name, header != "" && len(header) <= 256
}

// isVariable: letters, digits and "_", the first no digit.
func isVariable(s string) bool {
	if s == "" || len(s) > 256 || '0' <= s[0] && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if s[i] != '_' && (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}

// isOurs reports whether a command is this program, wherever it lies.
func isOurs(command string) bool {
	base := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	return strings.TrimSuffix(base, ".exe") == "pellucid"
}

func isList(v strictjson.Value) bool {
	for arg := range v.Elements() {
		if arg.Kind() != '"' {
			return false
		}
	}
	return !v.Exists() || v.Kind() == '['
}

func firstText(v strictjson.Value) string {
	for arg := range v.Elements() {
		return arg.Text()
	}
	return ""
}

// replace puts with in the place of v.
func (e *entry) replace(v strictjson.Value, with string) {
	e.edits = append(e.edits, splice{v.Offset(), end(v), []byte(with)})
}

// prepend puts words before those of args, which obj may not have yet.
func (e *entry) prepend(obj, program, args strictjson.Value, words []string) {
	switch {
	case !args.Exists():
		name := e.nameOf(obj, program)
		with := "," + e.before(obj, name) + `"args": ` + list(words, ", ")
		e.edits = append(e.edits, splice{end(program), end(program), []byte(with)})
	case args.Len() == 0:
		// A comment inside would be lost with the brackets, so only they count.
		at := args.Offset() + 1
		inside := list(words, ", ")
		e.edits = append(e.edits, splice{at, at, []byte(inside[1 : len(inside)-1])})
	default:
		at := args.Offset() + 1
		var first strictjson.Value
		for first = range args.Elements() {
			break
		}
		gap := string(e.t.src[at:first.Offset()])
		sep := ", "
		if strings.Trim(gap, " \t\r\n") != "" { // a comment: it stays before what it is about
			gap = ""
		} else if gap != "" {
			sep = "," + gap
		}
		inside := list(words, sep)
		with := gap + inside[1:len(inside)-1] + ","
		if at == first.Offset() {
			with += " "
		}
		e.edits = append(e.edits, splice{at, at, []byte(with)})
	}
}

// nameOf returns the name of the member of obj that has the value v.
func (e *entry) nameOf(obj, v strictjson.Value) strictjson.Value {
	for name, value := range obj.Members() {
		if value == v {
			return name
		}
	}
	return strictjson.Value{}
}

// before returns the white space in front of a member's name.
func (e *entry) before(obj, name strictjson.Value) string {
	from := name.Offset()
	for from > obj.Offset()+1 && strings.IndexByte(" \t\r\n", e.t.src[from-1]) >= 0 {
		from--
	}
	if from == name.Offset() {
		return " "
	}
	return string(e.t.src[from:name.Offset()])
}

func quote(s string) string { return string(strictjson.AppendQuote(nil, s)) }

// list is an array of strings with sep between them.
func list(words []string, sep string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, w := range words {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(quote(w))
	}
	b.WriteByte(']')
	return b.String()
}

func itoa(n int) string { return strconv.Itoa(n) }
