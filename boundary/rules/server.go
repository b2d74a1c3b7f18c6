// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// servers are all servers of a file, by name.
func servers(r *Rules) value {
	prefixes := map[string]string{}
	x := named(maxServers, nil, func(s *Server) []member { return s.members(r) },
		func() *Server { return &Server{Admission: r.admission, settings: r.defaults} },
		func(c *compiler, name string, at, val place) {
			if !isName(name) && c.one == nil { // a command line may name it otherwise
				c.report(at, "want a name of 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit")
				return
			}
			s := c.server(name, val)
			if other, twice := prefixes[s.Prefix]; twice {
				c.report(at, "has the prefix of server %s: give it another", other)
			}
			prefixes[s.Prefix] = name
			if len(s.Scopes) > 0 && c.root.member("auth") == nil {
				c.report(at, "needs scopes, which no client has without auth")
			}
			r.Servers = append(r.Servers, s)
			r.byName[name] = s
		},
		func(yield func(string, *Server) bool) {
			for _, s := range r.Servers {
				if !yield(s.Name, s) {
					return
				}
			}
		}).then(func(*compiler, place) {
		slices.SortFunc(r.Servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	})
	x.each = schema{"oneOf": []schema{{"required": []string{"command"}}, {"required": []string{"url"}}, {"required": []string{"mcp_json"}}}}
	return x
}

func (c *compiler) server(name string, p place) *Server {
	s := &Server{Name: name, Prefix: name, Scopes: []string{}, Admission: c.out.admission, settings: c.out.defaults}
	c.object(p, s.members(c.out))
	if p.kind != isObject {
		return s
	}
	c.oneUpstream(s, p)
	if client := p.at("mcp_json"); client.node != nil && client.kind != isNull {
		c.client(s, client, p)
	}
	if s.TLS != nil && strings.HasPrefix(s.URL.text, "http:") {
		c.report(p.at("tls"), "is for https, and the URL is http")
	}
	c.tools(s, p.at("tools"), p)
	return s
}

func (s *Server) members(r *Rules) []member {
	later := func(*compiler, place) {} // compiler.server reads it behind the others
	hasURL := func() bool { return s.URL.text != "" }
	hasCommand := func() bool { return !hasURL() }
	return slices.Concat([]member{
		{"mcp_json", ends, value{read: later, write: s.writeClient, kind: "path of a file", schema: schema{"type": "string", "minLength": 1}},
			"take the entry of the same name from a client's file ([From a client's file](#from-a-clients-file))"},
		{"command", ends, value{
			read: func(c *compiler, p place) { s.Command = c.command(p) },
			write: func(d *dumper, name string) {
				if s.client == "" && s.Command != nil {
					writeList(d, name, s.Command)
				}
			},
			kind:   "list of at most " + thousands(maxArguments),
			schema: schema{"type": "array", "minItems": 1, "maxItems": maxArguments, "items": schema{"type": "string"}},
		}, "the program and its arguments"},
		{"url", ends, urlValue(&s.URL).then(func(c *compiler, p place) {
			if c.isSelf(s.URL.text) {
				c.report(p, "is this gateway itself")
			}
		}).when(func() bool { return s.client == "" }), "where the server is"},
		{"headers", ends | withURL, variables(&s.Headers, (*compiler).headers), "that requests carry, but for those that belong to the transport: `Host`, `Accept`, `Content-…`, `Mcp-…` and the like"},
		{"transport", ends | withURL, word(&s.Transport, wire.AutoTransport, wire.TransportWords, []wire.Transport{wire.AutoTransport, wire.StreamableHTTP, wire.HTTPWithSSE}).when(hasURL),
			"what the server at the URL speaks: `http`, streamable HTTP; `sse`, the HTTP+SSE of 2024-11-05; `auto`, the second if it does not speak the first"},
		{"tls", ends | withURL, optional(&s.TLS, (*ClientTLS).members, (*compiler).clientTLS),
			"a client certificate for the server, and the authorities that its own may come from ([Client certificates](#client-certificates))"},
		{"env", ends | withCommand, variables(&s.Env, (*compiler).env), "environment variables, beside those that every child gets"},
		{"cwd", ends | withCommand, parsed(&s.Cwd, "path of a directory", func(c *compiler, p place) string {
			if dir := c.text(p, maxText); dir != "" {
				return c.opt.locate(dir)
			}
			return ""
		}).when(hasCommand), "working directory of the server; default: that of Pellucid"},
		{"share", ends | withCommand, word(&s.Share, PerSession, []string{"session", "shared"}, []Share{PerSession, Shared}).when(hasCommand),
			"`session`: a process for each session; `shared`: one for all"},
		{"pin", live, checked(&s.Pin, "", "1 to 256 printable characters of ASCII", IsPinName), "pin the server under this name, and not under a digest of its command or URL ([Admission](#admission))"},
		{"admission", live, s.Admission.section(), "members that differ from the top-level `admission`"},
		{"prefix", live, checked(&s.Prefix, "", "a prefix of 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit", isName), "of its tools at `/mcp`; default: its name"},
		{"scopes", live, scopes(&s.Scopes), "that a principal needs, all of them"},
		{"dangerously_allow_sampling", live, boolean(&s.DangerouslyAllowSampling, false),
			"let the server put words before the client's model: they are scrubbed and marked, which does not make them harmless"},
	}, s.settings.members(r, ofServer), []member{
		{"tools", live, toolTable(s, r), "settings by the name or pattern of tools ([Tools](#tools))"},
	})
}

// toolTable are the settings of tools. compiler.tools reads them, behind those of the server.
func toolTable(s *Server, r *Rules) value {
	return named(maxTools, isToolKey, func(t *settings) []member { return t.members(r, ofTool) }, func() *settings { return &settings{} },
		func(*compiler, string, place, place) {},
		func(yield func(string, *settings) bool) {
			for _, key := range slices.Sorted(maps.Keys(s.toolKeys)) {
				if t := s.toolKeys[key]; !yield(key, &t) {
					return
				}
			}
		})
}

// ending are the members of which a change ends the sessions of the server.
func (s *Server) ending() []member {
	return slices.DeleteFunc(s.members(nil), func(m member) bool { return m.trait&ends == 0 })
}

// oneUpstream checks which members of a server stand together.
func (c *compiler) oneUpstream(s *Server, p place) {
	var has []string
	for _, name := range []string{"command", "url", "mcp_json"} {
		if p.member(name) != nil {
			has = append(has, name)
		}
	}
	switch {
	case c.one != nil && c.one.URL != "":
		c.refuse(s, p, withCommand)
	case c.one != nil && c.one.namesUpstream():
		c.refuse(s, p, withURL)
	case len(has) == 0 && c.opt.OfClients:
		c.reportUnbound(p)
	case len(has) == 0:
		c.report(p, "want one of command, url and mcp_json")
	case len(has) > 1:
		c.report(p, "has %s: keep one", strings.Join(has, " and "))
	case p.member("command") != nil:
		c.refuse(s, p, withURL)
	case p.member("url") != nil:
		c.refuse(s, p, withCommand)
	}
}

// refuse reports the members of another kind of server.
func (c *compiler) refuse(s *Server, p place, kind trait) {
	for _, m := range s.members(c.out) {
		if n := p.member(m.name); n != nil && m.trait&kind != 0 {
			c.report(p.join(m.name, n), "is for another kind of server: env, cwd and share go with a command, headers, transport and tls with a URL")
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
			c.report(p, "this looks like a secret, which every user of the machine can read here: give it as env")
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
		c.refuse(s, server, withURL)
	} else {
		c.refuse(s, server, withCommand)
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
	if p.node != nil && p.kind != isNull {
		c.names(p, maxTools, isToolKey, func(key string, _, val place) {
			t := s.settings
			t.llm.models = nil
			c.object(val, t.members(c.out, ofTool))
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

// variables are environment variables or headers. Those of a client's file are not shown here.
func variables(v *[]Variable, read func(c *compiler, p place) []Variable) value {
	return value{
		read: func(c *compiler, p place) { *v = read(c, p) },
		write: func(d *dumper, name string) {
			head, inside := d.open(name)
			for _, x := range *v {
				if x.Value.ref != fromClient {
					d.word(quoted(x.Name), quoted(x.Value.String()))
					d.hidden(name, x.Value.text)
				}
			}
			d.close(head, inside)
		},
		kind:   "object of at most " + thousands(maxVariables) + ": strings, or references `env:NAME`, `file:PATH`",
		schema: schema{"type": "object", "maxProperties": maxVariables, "additionalProperties": schema{"type": "string"}},
	}
}

// writeClient says in comments what a client's file has given, which may hold secrets
// anywhere: the program by its name, all else by number and name.
func (s *Server) writeClient(d *dumper, name string) {
	if s.client == "" {
		return
	}
	d.word(name, quoted(s.client))
	if s.URL.text != "" {
		d.line("# the file gives a URL")
	} else if len(s.Command) > 0 {
		d.line("# the file gives the command ", finding.Quote(filepath.Base(s.Command[0])),
			" and ", strconv.Itoa(len(s.Command)-1), " arguments")
	}
	d.hidden(name, append([]string{s.URL.text, s.Cwd}, s.Command...)...)
	for _, v := range slices.Concat(s.Env, s.Headers) {
		if v.Value.ref == fromClient {
			d.line("# the file gives ", finding.Quote(v.Name))
			d.hidden(name, v.Value.text)
		}
	}
}
