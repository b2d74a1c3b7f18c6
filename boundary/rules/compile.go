// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/logs"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/rfc3339"
)

// Options are what a file is read with. The zero value is the system's.
type Options struct {
	Dir  string // where relative paths of the file begin; "": the working directory
	home string // "~"; "": the user's

	Getenv   func(name string) (value string, ok bool) // nil: os.LookupEnv
	ReadFile func(name string) ([]byte, error)         // nil: of regular files, at most 32 MiB

	OfClients bool // a server may lack a command and a URL, which the entry of a client names

	opened func(name string) // told of every file that is read
}

// Bounds of lists.
const (
	maxServers    = 256
	maxTools      = 1024 // keys of one server
	maxVariables  = 256
	maxArguments  = 1024
	maxExceptions = 4096
	maxNames      = 256 // hosts, origins, scopes
)

// Parse compiles a file. The error is Problems, all of them.
func Parse(src []byte, o Options) (*Rules, error) {
	root, problems := parseYAML(src)
	if problems != nil {
		return nil, problems
	}
	c := &compiler{src: string(src), opt: o.orSystem(), out: newRules()}
	if !c.version(place{node: root}) {
		return nil, c.problems.sorted()
	}
	c.root = place{node: root}
	c.object(c.root, c.out.members())
	c.reach()
	c.hosts()
	for _, compileTools := range c.last {
		compileTools()
	}
	if len(c.problems) > 0 {
		return nil, c.problems.sorted()
	}
	return c.out.dumped(), nil
}

type compiler struct {
	reader
	src string // the file: where in it an expression stands
	opt Options
	out *Rules
	one *One // the only server that is compiled; nil: all of the file

	root place
	last []func() // what is done behind the exceptions
}

// newRules are those of a file that says nothing.
func newRules() *Rules {
	r := &Rules{Classifiers: map[string]*Classifier{Local: newClassifier(Local)}, byName: map[string]*Server{}, Webhooks: map[string]*Webhook{}}
	reset(r.members())
	return r
}

// dumped is r with what is shown and compared of it.
func (r *Rules) dumped() *Rules {
	table := r.members()
	r.text, r.print = dump(table, false), sha256.Sum256(dump(table, true))
	return r
}

// members are those of the file. A row stands behind those that it refers to.
func (r *Rules) members() []member {
	return []member{
		{"version", live, value{
			read:  func(*compiler, place) {}, // it was read first
			write: func(d *dumper, name string) { d.word(name, FormatVersion) },
			kind:  "`" + FormatVersion + "`", schema: schema{"const": 1},
		}, "the version of this format"},
		{"listen", restart, checked(&r.Listen, listen.Default, "HOST:PORT with an IP address or localhost, such as 127.0.0.1:7420", listen.IsAddress),
			"the only address; beyond loopback it needs `auth`"},
		{"store", restart, store(&r.Store), "where state is kept; default: the state directory"},
		{"replicas", restart, section(r.Replicas.members).then((*compiler).replicas), "other gateways on the same store ([Replicas](#replicas))"},
		{"public_url", live, parsed(&r.PublicURL, "an https URL, or http on loopback", (*compiler).publicURL),
			"what clients see; `auth.oauth` needs it"},
		{"tokens", live, tokenTable(r), "control tokens of your own models, beside those of this version ([tokens](tokens.md))"},
		{"http", live, section(r.HTTP.members), "the listener"},
		{"limits", restart, section(r.Limits.members), "what sessions cost together ([Limits](#limits))"},
		{"auth", live, section(r.Auth.members).then((*compiler).authSaid).saying(schema{"minProperties": 1}), "who may come in; default: everyone who reaches the listener"},
		{"console", live, optional(&r.Console, (*Console).members, (*compiler).console), "serves the web console at `/console/` ([console](../console.md)); default: it is not served"},
		{"telemetry", restart, section(r.Telemetry.members), "what is told of the running process"},
		{"review", live, optional(&r.Review, (*Review).members, (*compiler).review), "the model that judges what servers say of themselves; default: no model"},
		{"evidence", restart, section(r.Evidence.members).then((*compiler).evidence), "the ledger of decisions ([Evidence](#evidence))"},
		{"quarantine", live, section(func() []member {
			return []member{{"recipients", live, recipients(&r.Reviewers),
				"public keys of age: what is held is kept encrypted to them; default: as it is"},
				{"two_persons", live, boolean(&r.TwoPersons, false), "what is held from now on is released only by two persons: one proposes it, and another one confirms it"}}
		}), "results that wait for a reviewer"},
		{"captures", live, section(func() []member {
			return []member{
				{"for", live, duration(&r.Captures.For, 7*24*time.Hour, time.Minute, 366*24*time.Hour), "how long a capture is kept"},
				{"total", live, size(&r.Captures.Total, 1<<30, 1<<20, 1<<40), "bytes of all captures; the oldest go first"},
			}
		}), "bounds of the texts that `capture` keeps ([Captures](#captures))"},
		{"webhooks", live, webhooks(r), "receivers that are told what waits for a reviewer ([Webhooks](#webhooks))"},
		{"policy", live, policySection(&r.Policy), "what becomes of calls and results ([policy](policy.md)); default: no policy"},
		{"guard", ofGuard, optional(&r.Guard, (*Guard).members, (*compiler).guard), "settings of `pellucid guard -c` ([guard](guard.md))"},
		{"admission", live, r.admission.section(), "what is checked before a word of a server is seen; each server may override a member ([Admission](#admission))"},
		{"classifiers", live, classifiers(r), "classifiers that judge what tools answer ([Classifiers](#classifiers))"},
		{"defaults", ofServers, section(func() []member { return r.defaults.members(r, ofDefaults) }),
			"of every server; each may be overridden in a server, and there by tool"},
		{"servers", ofServers, servers(r), "the MCP servers ([Servers](#servers))"},
		{"exceptions", ofServers, objects(&r.Exceptions, maxExceptions, func(e *exception) []member { return e.members(r) }, nil),
			"what is let through although a rule says hold"},
	}
}

// A fingerprint is that of secrets, by which a change of them is known.
type fingerprint struct{ h hash.Hash }

func (f fingerprint) add(values ...string) {
	for _, v := range values {
		f.h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(v))))
		f.h.Write([]byte(v))
	}
}

func (f fingerprint) sum() (out [sha256.Size]byte) {
	f.h.Sum(out[:0])
	return out
}

// FormatVersion is the version of the configuration that this release reads.
const FormatVersion = "1"

// version looks at the version first: a file of a later one has other mistakes.
func (c *compiler) version(root place) bool {
	if root.kind != isObject {
		c.wrongKind(root, "an object that begins with version: 1")
		return false
	}
	at := root.at("version")
	if at.node == nil {
		c.report(place{root.node, "version"}, "is missing: want version: 1")
		return true
	}
	n, err := strconv.Atoi(at.node.text)
	switch {
	case at.kind != isNumber || err != nil || n < 1 || strconv.Itoa(n) != at.node.text:
		c.report(at, "want version: 1")
	case at.node.text != FormatVersion:
		c.show(at, "this file is for a later version of Pellucid; this one knows version 1")
		return false
	}
	return true
}

// reach checks what a listener beyond loopback needs.
func (c *compiler) reach() {
	if loopback.Listener(c.out.Listen) {
		return
	}
	listen := c.root.at("listen")
	if c.root.member("auth") == nil {
		c.show(listen, "listens beyond loopback, which needs auth")
	}
	if len(c.out.HTTP.Hosts) == 0 && c.root.member("public_url") == nil {
		c.show(listen, "listens beyond loopback, which needs http.hosts or public_url")
	}
}

// hosts fills in which hosts are accepted where the file does not say it: the names
// of loopback, which is nil, and that of public_url.
func (c *compiler) hosts() {
	u, err := url.Parse(c.out.PublicURL)
	if h := &c.out.HTTP; err == nil && u.Host != "" && len(h.Hosts) == 0 {
		h.Hosts = []string{"localhost", "127.0.0.1", "[::1]", u.Host}
	}
}

func store(v *Store) value {
	return value{
		read: func(c *compiler, p place) { *v = c.storeOf(p) },
		write: func(d *dumper, name string) {
			if v.Path != "" {
				d.word(name, quoted("file:"+v.Path))
			}
			d.value(name, v.URL)
		},
		kind:   "`file:PATH` of an SQLite file, `env:NAME` or a postgres:// URL without a password",
		schema: schema{"type": "string", "pattern": "^(file:.|env:|postgres://|postgresql://)"},
	}
}

func (c *compiler) storeOf(p place) (out Store) {
	s := c.text(p, maxText)
	switch path, isFile := strings.CutPrefix(s, "file:"); {
	case s == "":
	case isFile && path != "":
		out.Path = c.opt.locate(path)
	case strings.HasPrefix(s, "env:"):
		out.URL = c.value(p)
	case !isPostgres(s):
		c.report(p, "want file:PATH, env:NAME or postgres://HOST/DATABASE")
	case hasPassword(s):
		c.report(p, "holds a password: give the URL as env:NAME")
	default:
		out.URL = Value{text: s}
	}
	return out
}

func isPostgres(s string) bool {
	return strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://")
}

// hasPassword reports whether the URL s holds a secret, or cannot be read.
func hasPassword(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return true
	}
	_, set := u.User.Password()
	for name := range u.Query() {
		set = set || secretName(name)
	}
	return set
}

// publicURL reads the URL that clients see, without a slash at its end.
func (c *compiler) publicURL(p place) string {
	s := c.text(p, 2048)
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		c.report(p, "want an https URL")
	case auth.CheckLocal([]string{u.Host}, nil) != nil:
		c.report(p, "has a host that no request can name")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		c.report(p, "want a URL without a user, query or fragment")
	case u.Scheme == "http" && !loopback.Host(u.Hostname()):
		c.report(p, "want an https URL; http is for loopback")
	default:
		return strings.TrimSuffix(s, "/")
	}
	return ""
}

// unlimited is a rate that nobody reaches, in requests a second.
const unlimited = 1e9

func (h *HTTP) members() []member {
	return []member{
		{"hosts", live, list(&h.Hosts, nil, maxNames, "a host, such as mcp.example.org or 10.0.0.1:8080",
			func(s string) bool { return auth.CheckLocal([]string{s}, nil) == nil }),
			"accepted `Host`, with any port where none is given; default: the names of loopback and of `public_url`"},
		{"origins", live, list(&h.Origins, []string{}, maxNames, "an origin, such as https://app.example.org",
			func(s string) bool { return auth.CheckLocal(nil, []string{s}) == nil }),
			"accepted `Origin`, beside those of the hosts"},
		{"trusted_proxies", live, list(&h.proxies, []string{}, maxNames, "an address or a prefix of addresses, such as 10.0.0.0/8 or 192.0.2.7, and not all addresses",
			func(s string) bool { _, ok := auth.ParseProxy(s); return ok }),
			"load balancers and reverse proxies that are believed about where a request comes from ([Behind a proxy](#behind-a-proxy)); default: none, and limits by address count the proxy itself"},
		{"max_body", restart, size(&h.MaxBody, 32<<20, 1<<10, 512<<20), "bytes of the body of a request"},
		{"sessions", restart, integer(&h.Sessions, 256, 1, 1_000_000), "open at one time, at each of `/mcp` and `/mcp/NAME`"},
		{"session_idle", restart, duration(&h.SessionIdle, 30*time.Minute, time.Second, 7*24*time.Hour), "after which an idle session gives up its connection to the server, and its process; its next request brings it back"},
		{"session_life", restart, duration(&h.SessionLife, 30*24*time.Hour, time.Minute, 366*24*time.Hour), "from the beginning of a session, how long its next request brings it back after a restart or an idle time"},
		{"rate", live, rate(&h.Limits.Rate), "requests a second, by principal; 0: no limit"},
		{"burst", live, integer(&h.Limits.Burst, 100, 1, 1_000_000), "requests at once after a pause, by principal"},
		{"concurrency", live, integer(&h.Limits.Concurrent, 64, 1, 1_000_000), "requests under way, by principal"},
		{"drain", live, duration(&h.Drain, 10*time.Second, 0, time.Hour), "how long requests under way may take when the gateway ends"},
	}
}

// Proxies are believed about where a request comes from.
func (h *HTTP) Proxies() (out auth.Proxies) {
	for _, s := range h.proxies {
		if p, ok := auth.ParseProxy(s); ok { // each was checked
			out = append(out, p)
		}
	}
	return out
}

// rate is a number of which 0 means that there is no limit; to package auth 0 is its default.
func rate(v *float64) value {
	x := number(v, 50, 1e6).then(func(*compiler, place) {
		if *v == 0 {
			*v = unlimited
		}
	})
	write := x.write
	x.write = func(d *dumper, name string) {
		if *v == unlimited {
			d.word(name, "0")
			return
		}
		write(d, name)
	}
	return x
}

func (l *Limits) members() []member {
	return []member{
		{"memory", live, size(&l.Memory, gateway.DefaultMemory, 16<<20, 1<<40), "bytes that messages under way may cost"},
		{"children", live, integer(&l.Children, 256, 1, 100_000), "processes of servers, of all sessions"},
		{"children_per_server", live, integer(&l.ChildrenPerServer, 256, 1, 100_000), "processes of one server"},
		{"children_per_principal", live, integer(&l.ChildrenPerPrincipal, 64, 1, 100_000), "processes of one principal's sessions; without `auth` it does not count"},
	}
}

func logLevels() []slog.Level {
	levels := make([]slog.Level, len(logs.Levels))
	for i, word := range logs.Levels {
		_ = levels[i].UnmarshalText([]byte(word)) // fails for no word of slog's own
	}
	return levels
}

func (t *Telemetry) members() []member {
	return []member{
		{"metrics", live, boolean(&t.Metrics, true), "serve `GET /metrics`"},
		{"log", live, word(&t.LogLevel, slog.LevelInfo, logs.Levels, logLevels()), "the least level that is logged"},
		{"log_format", live, word(&t.LogJSON, false, []string{"text", "json"}, []bool{false, true}), "the form of the log"},
	}
}

// urlValue is an http or https URL or a reference to one.
func urlValue(v *Value) value {
	return value{
		read:  func(c *compiler, p place) { *v = c.urlValue(p) },
		write: func(d *dumper, name string) { d.value(name, *v) },
		kind:  "an http or https URL, `env:NAME` or `file:PATH`", schema: schema{"type": "string", "pattern": "^([hH][tT][tT][pP][sS]?://|env:|file:)"},
	}
}

// urlValue reads an http or https URL, or a reference to one, without credentials
// that stand in the file.
func (c *compiler) urlValue(p place) Value {
	v := c.value(p)
	if v.text == "" {
		return v
	}
	if fault := urlFault(v); fault != "" {
		c.report(p, "%s", fault)
		return Value{}
	}
	return v
}

func urlFault(v Value) string {
	u, err := url.Parse(v.text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "want an http or https URL, or a reference to one"
	case u.User != nil:
		return "holds credentials: give them as a header, by reference"
	case u.Fragment != "":
		return "has a fragment"
	case v.ref == "" && hasPassword(v.text):
		return "its query holds what looks like a secret: give the whole URL as env:NAME or file:PATH"
	}
	return ""
}

func (e *exception) members(r *Rules) []member {
	until := func(s string) (ok bool) {
		e.until, ok = rfc3339.Parse(s)
		return ok
	}
	return []member{
		{"server", needed, checked(&e.server, "", "the name of a server of this file", func(s string) bool { return r.byName[s] != nil }), "the server"},
		{"tool", live, checked(&e.tool, "", "the name of a tool, not a pattern", isToolName), "the tool; default: every tool of the server"},
		{"code", needed, checked((*string)(&e.code), "", "the code of a finding", isCode), "the code of a finding ([scrub](scrub.md))"},
		{"until", needed, value{
			read:  func(c *compiler, p place) { c.checked(p, "a time, such as 2026-12-31T00:00:00Z", until) },
			write: func(d *dumper, name string) { d.word(name, quoted(e.until.Format(time.RFC3339Nano))) },
			kind:  "a time of RFC 3339", schema: schema{"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]"},
		}, "when the exception ends"},
		{"why", needed, text(&e.why, 1024), "the operator's reason"},
	}
}

func isCode(s string) bool { return finding.Code(s).Known() }

// each unjoins err.
func each(err error) []error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return many.Unwrap()
	}
	return []error{err}
}
