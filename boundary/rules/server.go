// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// servers reads all servers, in the order of the file.
func (c *compiler) servers(p place, authSet bool) {
	prefixes := map[string]string{}
	c.names(p, maxServers, nil, func(name string, at, val place) {
		if !isName(name) {
			c.report(at, "want a name of 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit")
			return
		}
		s := c.server(name, val)
		if other, twice := prefixes[s.Prefix]; twice {
			c.report(at, "has the prefix of server %s: give it another", other)
		}
		prefixes[s.Prefix] = name
		if len(s.Scopes) > 0 && !authSet {
			c.report(at, "needs scopes, which nobody has without auth")
		}
		c.out.Servers = append(c.out.Servers, s)
		c.out.byName[name] = s
	})
	slices.SortFunc(c.out.Servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	// In the order of names: what stands where in the file changes nothing.
	for _, s := range c.out.Servers {
		c.secret.add(s.upstream()...)
	}
}

func (c *compiler) server(name string, p place) *Server {
	s := &Server{Name: name, Prefix: name, Admission: c.out.admission, settings: c.out.defaults}
	var tools, client place
	m := c.settings(&s.settings, ofServer)
	m["command"] = func(p place) { s.Command = c.command(p) }
	m["env"] = func(p place) { s.Env = c.env(p) }
	m["cwd"] = func(p place) {
		if dir := c.text(p, maxText); dir != "" {
			s.Cwd = c.opt.locate(dir)
		}
	}
	m["share"] = func(p place) {
		s.Share = choice(&c.reader, p, []string{"session", "shared"}, []Share{PerSession, Shared})
	}
	m["url"] = func(p place) {
		if s.URL = c.urlValue(p); c.isSelf(s.URL.text) {
			c.report(p, "is this gateway itself")
		}
	}
	m["headers"] = func(p place) { s.Headers = c.headers(p) }
	m["transport"] = func(p place) {
		s.Transport = choice(&c.reader, p, wire.TransportWords, []wire.Transport{wire.AutoTransport, wire.StreamableHTTP, wire.HTTPWithSSE})
	}
	m["mcp_json"] = func(p place) { client = p }
	m["prefix"] = func(p place) {
		s.Prefix = c.checked(p, "a prefix of 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit", isName)
	}
	m["pin"] = func(p place) { s.Pin = c.checked(p, "1 to 256 printable characters of ASCII", IsPinName) }
	m["admission"] = func(p place) { c.admission(p, &s.Admission) }
	m["scopes"] = func(p place) { s.Scopes = c.scopes(p) }
	m["dangerously_allow_sampling"] = func(p place) { s.DangerouslyAllowSampling = c.boolean(p) }
	m["tools"] = func(p place) { tools = p }
	c.object(p, m)
	if p.kind != isObject {
		return s
	}
	c.oneUpstream(p)
	if client.node != nil {
		c.client(s, client, p)
	}
	c.tools(s, tools, p)
	return s
}

// oneUpstream checks which members of a server stand together.
func (c *compiler) oneUpstream(p place) {
	kinds := 0
	for _, name := range []string{"command", "url", "mcp_json"} {
		if p.member(name) != nil {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		c.report(p, "want one of command, url and mcp_json")
	case p.member("command") != nil:
		c.refuse(p, ofURL...)
	case p.member("url") != nil:
		c.refuse(p, ofCommand...)
	}
}

// Members that only one kind of server has.
var (
	ofCommand = []string{"env", "cwd", "share"}
	ofURL     = []string{"headers", "transport"}
)

func (c *compiler) refuse(p place, names ...string) {
	for _, name := range names {
		if n := p.member(name); n != nil {
			c.report(p.join(name, n), "is for another kind of server: env, cwd and share go with a command, headers and transport with a URL")
		}
	}
}

func (c *compiler) command(p place) (args []string) {
	c.list(p, maxArguments, func(p place) {
		arg := ""
		if p.kind != isText || p.node.text != "" { // an argument may be empty
			arg = c.text(p, maxText)
		}
		if secretText(arg) {
			c.report(p, "this looks like a secret, which everybody on the machine can read here: give it as env")
		}
		args = append(args, arg)
	})
	if p.kind == isList && (len(args) == 0 || args[0] == "") && len(p.elements) <= 1 {
		c.report(p, "want the program, and its arguments")
	}
	return args
}

func (c *compiler) env(p place) []Variable {
	return c.variables(p, isEnvName, func(s string) string { return s })
}

// isEnvName leaves out what would end up as another variable.
func isEnvName(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsAny(s, "=\x00 \n")
}

// ownHeaders belong to the transport; a prefix ends with "-".
var ownHeaders = []string{"Host", "Content-Length", "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding", "Connection",
	"Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Last-Event-Id", "Origin", "Mcp-"}

func (c *compiler) headers(p place) []Variable {
	list := c.variables(p, isHeaderName, http.CanonicalHeaderKey)
	for _, v := range list {
		if !isHeaderValue(v.Value.text) {
			c.report(p, "the value of %s holds what a header cannot", v.Name)
		}
	}
	return list
}

func isHeaderName(s string) bool {
	const special = "!#$%&'*+-.^_`|~"
	if s == "" || len(s) > 128 || strings.IndexFunc(s, func(r rune) bool {
		return r > 0x7e || !isAlnum(byte(r)) && !strings.ContainsRune(special, r)
	}) >= 0 {
		return false
	}
	s = http.CanonicalHeaderKey(s)
	return !slices.ContainsFunc(ownHeaders, func(own string) bool {
		return s == own || strings.HasSuffix(own, "-") && strings.HasPrefix(s, own)
	})
}

func isHeaderValue(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}

// variables reads an object of values, sorted by name.
func (c *compiler) variables(p place, valid func(string) bool, canonical func(string) string) []Variable {
	var out []Variable
	c.names(p, maxVariables, valid, func(name string, at, val place) {
		name = canonical(name)
		if slices.ContainsFunc(out, func(v Variable) bool { return v.Name == name }) {
			c.report(at, "stands here a second time")
			return
		}
		v := Value{}
		if val.kind != isText || val.node.text != "" { // a variable may be empty
			v = c.secretValue(name, val)
		}
		out = append(out, Variable{name, v})
	})
	slices.SortFunc(out, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// client takes a server from a client's file. What is said here goes before it.
func (c *compiler) client(s *Server, p, server place) {
	s.client = c.text(p, maxText)
	if s.client == "" {
		return
	}
	src, err := c.opt.read(s.client, maxClientFile)
	if err != nil {
		c.report(p, "%v", err)
		return
	}
	e, err := parseClient(src, s.Name)
	if err != nil {
		c.report(p, "file %s: %v", finding.Quote(s.client), err)
		return
	}
	expand := func(what, text string) string {
		out, err := c.opt.expand(text)
		if err != nil {
			c.report(p, "%s of its entry: %v", what, err)
		}
		return out
	}
	if e.url == "" {
		c.refuse(server, ofURL...)
	} else {
		c.refuse(server, ofCommand...)
	}
	for _, arg := range e.command {
		s.Command = append(s.Command, expand("command", arg))
	}
	if e.url != "" {
		s.URL = Value{fromClient, expand("url", e.url)}
		if fault := urlFault(s.URL); fault != "" {
			c.report(p, "url of its entry: %s", fault)
		} else if c.isSelf(s.URL.text) {
			c.report(p, "url of its entry: is this gateway itself")
		}
	}
	if s.Cwd == "" && e.cwd != "" {
		s.Cwd = c.opt.locate(expand("cwd", e.cwd))
	}
	if s.Transport == wire.AutoTransport {
		s.Transport = e.transport
	}
	names := func(s string) string { return s }
	s.Env = c.fromEntry(p, s.Env, e.env, "env", isEnvName, names, expand)
	s.Headers = c.fromEntry(p, s.Headers, e.headers, "headers", isHeaderName, http.CanonicalHeaderKey, expand)
}

// fromEntry adds to own what a client's file has besides.
func (c *compiler) fromEntry(p place, own []Variable, of map[string]string, what string,
	valid func(string) bool, canonical func(string) string, expand func(what, text string) string) []Variable {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if !valid(name) {
			c.report(p, "%s of its entry: %s cannot stand there", what, finding.Quote(name))
			continue
		}
		name = canonical(name)
		if slices.ContainsFunc(own, func(v Variable) bool { return v.Name == name }) {
			continue
		}
		text := expand(what, of[name])
		if !isHeaderValue(text) && what == "headers" {
			c.report(p, "%s of its entry: the value of %s holds what a header cannot", what, finding.Quote(name))
		}
		own = append(own, Variable{name, Value{fromClient, text}})
	}
	slices.SortFunc(own, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	return own
}

func (c *compiler) tools(s *Server, p, own place) {
	s.toolKeys = map[string]settings{}
	at := map[string]place{}
	if p.node != nil {
		c.names(p, maxTools, isToolKey, func(key string, _, val place) {
			t := s.settings
			t.llm.models = nil
			c.object(val, c.settings(&t, ofTool))
			s.toolKeys[key], at[key] = t, val
		})
	}
	c.last = append(c.last, func() { c.compileTools(s, at, own) })
}

// isSelf reports whether a URL is one of this gateway's own.
func (c *compiler) isSelf(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return false
	}
	for _, own := range []string{"http://" + c.out.Listen, c.out.PublicURL} {
		o, err := url.Parse(own)
		if err != nil || o.Host == "" || authority(u) != authority(o) {
			continue
		}
		path := strings.TrimSuffix(o.Path, "/") + "/mcp"
		if u.Path == path || strings.HasPrefix(u.Path, path+"/") {
			return true
		}
	}
	return false
}

// authority is host and port, every loopback address being the same.
func authority(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if loopback.Host(host) {
		host = "localhost"
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(host, port)
}

// upstream is all by which a server's sessions are bound to it.
func (s *Server) upstream() []string {
	out := []string{s.Name, s.Cwd, s.URL.text, strconv.Itoa(int(s.Share)), strconv.Itoa(int(s.Transport)), strconv.Itoa(len(s.Command))}
	out = append(out, s.Command...)
	for _, list := range [][]Variable{s.Env, s.Headers} {
		out = append(out, strconv.Itoa(len(list)))
		for _, v := range list {
			out = append(out, v.Name, v.Value.text)
		}
	}
	return out
}
