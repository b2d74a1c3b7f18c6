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
	c := &compiler{src: string(src), opt: o.orSystem(), secret: fingerprint{sha256.New()}, out: newRules()}
	if !c.version(place{node: root}) {
		return nil, c.problems.sorted()
	}
	c.file(place{node: root})
	if len(c.problems) > 0 {
		return nil, c.problems.sorted()
	}
	c.out.print = c.secret.sum()
	c.out.text = dump(c.out)
	return c.out, nil
}

type compiler struct {
	reader
	src    string // the file: where in it an expression stands
	opt    Options
	secret fingerprint // of what Effective does not show
	out    *Rules
	last   []func() // what is done behind the exceptions
}

// newRules are those of a file that says nothing.
func newRules() *Rules {
	return &Rules{
		Listen: listen.Default,
		HTTP: HTTP{
			MaxBody: 32 << 20, Sessions: 256, SessionIdle: 30 * time.Minute, Drain: 10 * time.Second,
			Limits: auth.Limits{Rate: 50, Burst: 100, Concurrent: 64},
		},
		Limits:      Limits{Memory: gateway.DefaultMemory, Children: 256, ChildrenPerServer: 256, ChildrenPerPrincipal: 64},
		Telemetry:   Telemetry{Metrics: true},
		admission:   newAdmission(),
		Classifiers: map[string]*Classifier{Local: newClassifier(Local)},
		defaults:    newSettings(),
		byName:      map[string]*Server{},
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

const formatVersion = "1"

// version looks at the version first: a file of a later one has other mistakes.
func (c *compiler) version(root place) bool {
	if root.kind != isObject {
		c.wrongKind(root, "an object that begins with version: 1")
		return false
	}
	at := place{root.member("version"), "version"}
	if at.node == nil {
		c.report(place{root.node, "version"}, "is missing: want version: 1")
		return true
	}
	n, err := strconv.Atoi(at.node.text)
	switch {
	case at.kind != isNumber || err != nil || n < 1 || strconv.Itoa(n) != at.node.text:
		c.report(at, "want version: 1")
	case at.node.text != formatVersion:
		c.show(at, "this file is for a later version of Pellucid; this one knows version 1")
		return false
	}
	return true
}

func (c *compiler) file(root place) {
	out := c.out
	var servers, exceptions, http, authn, listen place
	if n := root.member("classifiers"); n != nil {
		c.classifiers(place{n, "classifiers"})
	}
	keep := func(to *place) func(place) { return func(p place) { *to = p } }
	c.object(root, members{
		"version":     func(place) {},
		"listen":      func(p place) { listen = p; c.listen(p) },
		"store":       func(p place) { out.Store = c.storeOf(p) },
		"public_url":  func(p place) { out.PublicURL = c.publicURL(p) },
		"http":        keep(&http),
		"limits":      c.limits,
		"auth":        keep(&authn),
		"telemetry":   c.telemetry,
		"review":      c.review,
		"evidence":    c.evidence,
		"quarantine":  c.quarantine,
		"policy":      c.policy,
		"trust":       c.trust,
		"guard":       c.guard,
		"ground":      c.ground,
		"tokens":      c.controlTokens,
		"admission":   func(p place) { c.admission(p, &out.admission) },
		"defaults":    func(p place) { c.object(p, c.settings(&out.defaults, ofDefaults)) },
		"classifiers": func(place) {}, // read before what refers to them
		"servers":     keep(&servers),
		"exceptions":  keep(&exceptions),
	})
	// What refers to others is read behind them.
	if http.node != nil {
		c.http(http)
	}
	if authn.node != nil {
		c.auth(authn)
	}
	c.reach(listen, root)
	c.hosts()
	if servers.node != nil {
		c.servers(servers, authn.node != nil)
	}
	if exceptions.node != nil {
		c.list(exceptions, maxExceptions, c.exception)
	}
	for _, compileTools := range c.last {
		compileTools()
	}
}

// listen reads host:port. A host is an address or localhost, so that nobody but
// who writes this file decides where it is.
func (c *compiler) listen(p place) {
	if s := c.checked(p, "HOST:PORT with an IP address or localhost, such as 127.0.0.1:7420", listen.IsAddress); s != "" {
		c.out.Listen = s
	}
}

// IsHTTP reports whether s is an http or https URL with a host.
func IsHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// reach checks what a listener beyond loopback needs.
func (c *compiler) reach(listen, root place) {
	if loopback.Listener(c.out.Listen) {
		return
	}
	if root.member("auth") == nil {
		c.show(listen, "listens beyond loopback, which needs auth")
	}
	if len(c.out.HTTP.Hosts) == 0 && root.member("public_url") == nil {
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

func (c *compiler) storeOf(p place) (out Store) {
	s := c.text(p, maxText)
	switch path, isFile := strings.CutPrefix(s, "file:"); {
	case s == "":
	case isFile && path != "":
		out.Path = c.opt.locate(path)
	case strings.HasPrefix(s, "env:"):
		out.URL = c.value(p)
		c.secret.add(out.URL.text)
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

func (c *compiler) http(p place) {
	h := &c.out.HTTP
	c.object(p, members{
		"hosts": func(p place) {
			h.Hosts = c.checkedList(p, maxNames, "a host, such as mcp.example.org or 10.0.0.1:8080",
				func(s string) bool { return auth.CheckLocal([]string{s}, nil) == nil })
		},
		"origins": func(p place) {
			h.Origins = c.checkedList(p, maxNames, "an origin, such as https://app.example.org",
				func(s string) bool { return auth.CheckLocal(nil, []string{s}) == nil })
		},
		"max_body":     func(p place) { h.MaxBody = c.size(p, 1<<10, 512<<20) },
		"sessions":     func(p place) { h.Sessions = c.integer(p, 1, 1_000_000) },
		"session_idle": func(p place) { h.SessionIdle = c.duration(p, time.Second, 7*24*time.Hour) },
		"rate":         func(p place) { h.Limits.Rate = c.number(p, 1e6) },
		"burst":        func(p place) { h.Limits.Burst = c.integer(p, 1, 1_000_000) },
		"concurrency":  func(p place) { h.Limits.Concurrent = c.integer(p, 1, 1_000_000) },
		"drain":        func(p place) { h.Drain = c.duration(p, 0, time.Hour) },
	})
	if h.Limits.Rate == 0 { // which is auth's own default in auth.Limits
		h.Limits.Rate = unlimited
	}
}

func (c *compiler) limits(p place) {
	l := &c.out.Limits
	c.object(p, members{
		"memory":                 func(p place) { l.Memory = c.size(p, 16<<20, 1<<40) },
		"children":               func(p place) { l.Children = c.integer(p, 1, 100_000) },
		"children_per_server":    func(p place) { l.ChildrenPerServer = c.integer(p, 1, 100_000) },
		"children_per_principal": func(p place) { l.ChildrenPerPrincipal = c.integer(p, 1, 100_000) },
	})
}

func (c *compiler) telemetry(p place) {
	t := &c.out.Telemetry
	c.object(p, members{
		"metrics": func(p place) { t.Metrics = c.boolean(p) },
		"otlp": func(p place) {
			t.OTLP = c.urlValue(p)
			c.secret.add(t.OTLP.text)
		},
		"log": func(p place) {
			t.LogLevel = choice(&c.reader, p, []string{"debug", "info", "warn", "error"},
				[]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError})
		},
		"log_format": func(p place) { t.LogJSON = choice(&c.reader, p, []string{"text", "json"}, []bool{false, true}) },
	})
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

func (c *compiler) exception(p place) {
	var e exception
	until := func(s string) (ok bool) {
		e.until, ok = rfc3339.Parse(s)
		return ok
	}
	c.object(p, members{
		"server": func(p place) {
			e.server = c.checked(p, "the name of a server of this file", func(s string) bool { return c.out.byName[s] != nil })
		},
		"tool":  func(p place) { e.tool = c.checked(p, "the name of a tool, not a pattern", isToolName) },
		"code":  func(p place) { e.code = finding.Code(c.checked(p, "the code of a finding", isCode)) },
		"until": func(p place) { c.checked(p, "a time, such as 2026-12-31T00:00:00Z", until) },
		"why":   func(p place) { e.why = c.text(p, 1024) },
	}, "server", "code", "until", "why")
	c.out.Exceptions = append(c.out.Exceptions, e)
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
