// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Why an entry is left alone. The texts are constant: they go to a terminal.
const (
	already      = "runs behind Pellucid already"
	whyFormer    = "flags of wrap that are gone became --set"
	whyUpdated   = whyFormer + ", which --undo leaves so"
	whyFlags     = "runs behind Pellucid already, with other flags of wrap, which stay: change them in its entry"
	whyDatabase  = "its --db holds a password, which --set does not take: put the URL into a variable of its env, and --set store=env:NAME in the place of --db"
	whyOurs      = "its env sets a variable that Pellucid itself reads (PELLUCID_…, HOME, XDG_…), such as where its state and its configuration lie"
	whyShape     = "its entry does not have the expected form"
	whyNothing   = "its entry has neither a command nor a URL"
	whyBoth      = "it has a command and a URL"
	whyLogin     = "the client logs in to it by itself (OAuth), which a program in between cannot"
	whyURL       = "its URL is not one of http or https that wrap takes"
	whyUser      = "its URL holds a name or a password, which wrap takes as a header only"
	whySocket    = "its transport is neither a command nor HTTP"
	whyEnvFile   = "it has an envFile, whose variables would not reach it: write them as env"
	whyVariable  = "a variable or header of it has a name that cannot be passed on"
	whyEnvHeader = "it has a URL, headers and env"
	whyFilled    = "a header of it has a variable that the client fills in"
	whyKey       = "it has an apiKey, which the client makes a header of"
	whyParts     = "its entry stands in several places of the file, or has anchors, aliases or tags"
	whyName      = "several servers of the file have its name"
	whyAsks      = "it answers 401: it wants a login or a key"
	whyMayAsk    = "its entry does not say whether it asks for a login (OAuth): pellucid protect --ask-remotes asks it"
)

// An entry is one server of a file, with the splices that put it behind Pellucid.
type entry struct {
	t       *text
	v       *node
	dialect *dialect
	options *Options
	name    string
	label   string // of name, for wrap
	before  bool   // an earlier run has put it behind Pellucid
	edits   []splice
	advice  string // for a person, of an entry that is rewritten
}

// Advice for a person: a file does not say whether a server asks for a login.
const (
	mayLogIn = "if it wants a login, run protect --undo, then protect --skip NAME"
	isHere   = "it is on this machine, so it was not asked; "
)

// rewrite collects the splices, or returns why there are none.
func (e *entry) rewrite() string {
	if !e.v.is('{') {
		return whyShape
	}
	d := e.dialect
	command, address := e.v.get(d.command), d.url(e.v)
	switch {
	case command.exists() && address.exists():
		return whyBoth
	case e.v.get("envFile").exists():
		return whyEnvFile
	case e.v.strange() || !e.v.known(): // what it has may stand elsewhere
		return whyParts
	case !command.exists() && !address.exists():
		return whyNothing
	case command.is('{') && d == common: // older Zed
		return e.command(command)
	case command.exists():
		return e.command(e.v)
	}
	return e.remote(address)
}

// front is the words that all wrapped entries begin with.
func (e *entry) front() []string {
	return append([]string{"wrap", "--name", e.label}, e.options.Flags.words()...)
}

// command puts the program of an entry behind ours. obj holds it: the entry, or an object in it.
func (e *entry) command(obj *node) string {
	d := e.dialect
	program, args := d.starts(e.v)
	if !program.is('"') || program.str() == "" || args.exists() && !args.is('[') || obj.holding(program) == nil && !d.whole {
		return whyShape
	}
	if _, ok := d.words(e.v); !ok {
		return whyShape
	}
	if words := d.wrapWords(e.v, e.options.Binary); words != nil {
		return e.reflag(args, len(words))
	}
	front := e.front()
	env := obj.get(d.env)
	if env.exists() && !env.is('{') && !env.is('n') {
		return whyShape
	}
	if e.setsOurVariables(env) {
		return whyOurs
	}
	for _, m := range env.all() {
		if !isVariable(m.name) || m.value.is('{') || m.value.is('[') {
			return whyVariable
		}
		front = append(front, "--env", m.name)
	}
	for _, name := range e.v.get(d.inherit).list() {
		if !name.is('"') || !isVariable(name.str()) {
			return whyVariable
		}
		front = append(front, "--env", name.str())
	}
	// The directory is told to wrap as well, since it is a part of the server's identity.
	if dir := e.v.get("cwd"); dir.is('"') && filepath.IsAbs(dir.str()) && !strings.Contains(dir.str(), "${") {
		front = append(front, "--cwd", dir.str())
	}
	if d.whole {
		return e.prepend(obj, program, args, append(append([]string{e.options.Binary}, front...), "--"))
	}
	front = append(front, "--", program.str())
	e.replace(program, quote(e.options.Binary))
	return e.prepend(obj, program, args, front)
}

// reflag writes the flags of wrap in an entry that runs behind Pellucid as wrap reads them now. They are among the last n
// arguments.
func (e *entry) reflag(args *node, n int) string {
	front := e.dialect.wrapFlags(e.v, e.options.Binary)
	now, said := WithoutFormer(front)
	all := args.list()
	if len(all) < n || all[len(all)-n].str() != front[0] { // cmd.exe gets the whole command in a single word
		return already
	}
	all = all[len(all)-n:]
	if len(said) == 0 || !args.known() || len(front) > len(all) || slices.ContainsFunc(all[:len(front)], func(n *node) bool { return !n.known() }) {
		return already
	}
	if slices.ContainsFunc(now, setsPassword) {
		return whyDatabase
	}
	sep := ", "
	if !args.flow {
		sep = e.t.newLine(args.start) + "- "
	}
	e.edits = append(e.edits, splice{all[0].start, all[len(front)-1].end, []byte(strings.Join(quoted(now), sep))})
	return whyFormer
}

// remote puts the server at address behind ours. Headers become variables of the entry: where
// that is possible only names change, so that every value stays where it stands.
func (e *entry) remote(address *node) string {
	d := e.dialect
	headers, holder := d.headersOf(e.v)
	env, kind := e.v.get(d.env), e.kind()
	switch {
	case !address.is('"') || d.args != "" && e.v.get(d.args).exists():
		return whyShape
	case headers.exists() && !headers.is('{') && !headers.is('n') || env.exists() && !env.is('{') && !env.is('n'):
		return whyShape
	case headers.exists() && env.exists() && !d.loose:
		return whyEnvHeader
	case e.setsOurVariables(env):
		return whyOurs
	case e.v.get("apiKey").exists():
		return whyKey
	case kind.exists() && !isHTTP(kind.str()):
		return whySocket
	}
	for _, name := range []string{"oauth", "auth", "authorization", "headersHelper", "authProvider", "authProviderType", "scopes", "oauth_resource"} {
		switch {
		case !e.v.get(name).exists():
		case d != common: // it would refuse the member beside a command
			return whyLogin
		case !e.options.loggedIn(address.str()):
			return whyLogin + e.login()
		}
	}
	secret, why := checkURL(address.str())
	if why != "" {
		return why
	}
	r := remote{entry: e, address: address, secret: secret, headers: headers, holder: holder, env: env}
	if len(headers.all()) == 0 && !secret && !r.fromEnv() {
		if why := e.mayAsk(address.str()); why != "" {
			return why
		}
	}
	if kind.exists() {
		e.replace(kind, quote(d.local))
	} else if d.whole {
		return whyShape
	}
	if why := r.rewrite(kind); why != "" {
		e.edits = nil
		return why
	}
	return ""
}

// mayAsk decides about a remote server without any credential. It may want a login, which the
// client makes and a program in between cannot, unless the operator has logged in to it.
func (e *entry) mayAsk(address string) (why string) {
	answer := Unknown
	if e.options.Ask != nil {
		answer = e.options.Ask(address)
	}
	switch {
	case answer == LoggedIn, answer == Open:
	case answer == AsksForLogin:
		return whyAsks + e.login()
	case e.before, isLoopback(address):
		e.advice = strings.ReplaceAll(mayLogIn, "NAME", terminal.ShellWord(e.name))
		if isLoopback(address) {
			e.advice = isHere + e.advice
		}
	default:
		return whyMayAsk
	}
	return ""
}

// login is what to run so that the server can be protected.
func (e *entry) login() string {
	if e.options.Login == "" {
		return ""
	}
	return "; run " + strings.ReplaceAll(e.options.Login, "NAME", terminal.ShellWord(e.name)) + ", then pellucid protect again"
}

// isLoopback reports whether a URL names this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// kindSSE is how clients call the transport of 2024-11-05. Without a word they try
// streamable HTTP first and fall back to it, and so does wrap.
const kindSSE = "sse"

// kind is the member that says which transport the entry has.
func (e *entry) kind() *node {
	for _, name := range []string{"type", "transport"} {
		if v := e.v.get(name); v.exists() {
			return v
		}
	}
	return nil
}

func isHTTP(kind string) bool {
	switch strings.ToLower(kind) {
	case kindSSE, "http", "streamable-http", "streamablehttp", "streamable_http", "remote":
		return true
	}
	return false
}

// checkURL reports whether a URL may have a secret in it, or is one of the client's
// variables, whose value is not known here, and why wrap would not take it.
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
		if strings.Contains(part, "?") || secretWord().MatchString(part) && hasDigit().MatchString(part) {
			return true
		}
	}
	return false
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

// replace puts with in the place of v.
func (e *entry) replace(v *node, with string) {
	e.edits = append(e.edits, splice{v.start, v.end, []byte(with)})
}

// insert writes members beside that which has the value v: behind it in JSON, and before it
// elsewhere, where a comment may stand behind the value.
func (e *entry) insert(obj, v *node, members ...string) {
	m := obj.holding(v)
	sep := e.t.between(obj, m)
	if e.t.syntax == JSON {
		e.edits = append(e.edits, splice{v.end, v.end, []byte(sep + strings.Join(members, sep))})
		return
	}
	e.edits = append(e.edits, splice{m.key.start, m.key.start, []byte(strings.Join(members, sep) + sep)})
}

// prepend puts words before those of args, which obj may not have yet.
func (e *entry) prepend(obj, program, args *node, words []string) string {
	switch {
	case !args.exists():
		e.insert(obj, program, e.t.pair(e.dialect.args, list(words, ", ")))
	case !args.known():
		return whyParts
	case !args.flow: // of YAML, an element on each line
		sep := e.t.newLine(args.start) + "- "
		with := "- " + strings.Join(quoted(words), sep) + e.t.newLine(args.start)
		e.edits = append(e.edits, splice{args.start, args.start, []byte(with)})
	case len(args.list()) == 0:
		// A comment inside would be lost with the brackets, so only they count.
		at := args.start + 1
		inside := list(words, ", ")
		e.edits = append(e.edits, splice{at, at, []byte(inside[1 : len(inside)-1])})
	default:
		at := args.start + 1
		first := args.list()[0]
		gap := string(e.t.src[at:first.start])
		sep := ", "
		if strings.Trim(gap, " \t\r\n") != "" { // a comment: it stays before what it is about
			gap = ""
		} else if gap != "" {
			sep = "," + gap
		}
		inside := list(words, sep)
		with := gap + inside[1:len(inside)-1] + ","
		if at == first.start {
			with += " "
		}
		e.edits = append(e.edits, splice{at, at, []byte(with)})
	}
	return ""
}

func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quote(w)
	}
	return out
}

// list is an array of strings with sep between them.
func list(words []string, sep string) string {
	return "[" + strings.Join(quoted(words), sep) + "]"
}

func itoa(n int) string { return strconv.Itoa(n) }
