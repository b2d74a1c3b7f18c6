// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A dumper writes YAML that this package reads: one member a line, every string
// that somebody chose in double quotes and ASCII.
type dumper struct {
	b     bytes.Buffer
	depth int
}

func (d *dumper) line(parts ...string) {
	d.b.WriteString(strings.Repeat("  ", d.depth))
	for _, p := range parts {
		d.b.WriteString(p)
	}
	d.b.WriteByte('\n')
}

// word writes a member whose value needs no quotes.
func (d *dumper) word(name, value string) { d.line(name, ": ", value) }

func (d *dumper) quote(name, value string) { d.line(name, ": ", quoted(value)) }

func (d *dumper) boolean(name string, v bool) { d.word(name, strconv.FormatBool(v)) }

func (d *dumper) integer(name string, v int) { d.word(name, strconv.Itoa(v)) }

func (d *dumper) duration(name string, v time.Duration) { d.word(name, spell(v)) }

func (d *dumper) list(name string, values []string) {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = quoted(v)
	}
	d.line(name, ": [", strings.Join(all, ", "), "]")
}

// object writes a member with members of its own.
func (d *dumper) object(name string, write func()) {
	d.line(name, ":")
	d.depth++
	write()
	d.depth--
}

// quoted is a double-quoted string of YAML: Go's escapes are some of YAML's.
func quoted(s string) string { return strconv.QuoteToASCII(s) }

// dump writes what r says, with every default. The order is fixed.
func dump(r *Rules) []byte {
	d := new(dumper)
	d.word("version", formatVersion)
	d.quote("listen", r.Listen)
	d.store(&r.Store)
	if r.PublicURL != "" {
		d.quote("public_url", r.PublicURL)
	}
	if r.tokens != "" {
		d.quote("tokens", r.tokens)
	}
	d.object("http", func() { d.http(&r.HTTP) })
	d.object("limits", func() {
		d.word("memory", spellSize(r.Limits.Memory))
		d.integer("children", r.Limits.Children)
		d.integer("children_per_server", r.Limits.ChildrenPerServer)
		d.integer("children_per_principal", r.Limits.ChildrenPerPrincipal)
	})
	if r.Auth.Set() {
		d.object("auth", func() { d.auth(&r.Auth) })
	}
	d.object("telemetry", func() { d.telemetry(&r.Telemetry) })
	d.review(r.Review)
	d.evidence(&r.Evidence)
	d.quarantine(r.Reviewers)
	d.policy(r.Policy)
	d.trust(r.Trust)
	d.guard(r.Guard)
	d.ground(r.Ground)
	d.admission(&r.admission)
	d.classifiers(r.Classifiers)
	d.object("defaults", func() { d.settings(&r.defaults, ofDefaults) })
	if len(r.Servers) > 0 {
		d.object("servers", func() {
			for _, s := range r.Servers {
				d.object(quoted(s.Name), func() { d.server(s) })
			}
		})
	}
	if len(r.Exceptions) > 0 {
		d.object("exceptions", func() {
			for _, e := range r.Exceptions {
				tool := ""
				if e.tool != "" {
					tool = ", tool: " + quoted(e.tool)
				}
				d.line("- {server: ", quoted(e.server), tool, ", code: ", string(e.code),
					", until: ", quoted(e.until.Format(time.RFC3339Nano)), ", why: ", quoted(e.why), "}")
			}
		})
	}
	return d.b.Bytes()
}

func (d *dumper) store(s *Store) {
	switch {
	case s.Path != "":
		d.quote("store", "file:"+s.Path)
	case s.URL.text != "":
		d.quote("store", s.URL.String())
	}
}

func (d *dumper) http(h *HTTP) {
	if len(h.Hosts) > 0 {
		d.list("hosts", h.Hosts)
	}
	d.list("origins", h.Origins)
	d.word("max_body", spellSize(h.MaxBody))
	d.integer("sessions", h.Sessions)
	d.duration("session_idle", h.SessionIdle)
	rate := h.Limits.Rate
	if rate == unlimited {
		rate = 0
	}
	d.word("rate", strconv.FormatFloat(rate, 'f', -1, 64))
	d.integer("burst", h.Limits.Burst)
	d.integer("concurrency", h.Limits.Concurrent)
	d.duration("drain", h.Drain)
}

func (d *dumper) auth(a *Auth) {
	if a.Tokens != nil {
		d.quote("tokens", a.tokens)
	}
	o := a.OAuth
	if o == nil {
		return
	}
	d.object("oauth", func() {
		d.line("issuers:")
		for _, i := range o.Issuers {
			d.line("  - url: ", quoted(i.URL))
			d.line("    name: ", quoted(i.Name))
			if i.JWKS != "" {
				d.line("    jwks: ", quoted(i.JWKS))
			}
			d.line("    dangerously_untyped: ", strconv.FormatBool(i.DangerouslyUntyped))
		}
		for _, audience := range o.Audiences {
			d.quote("audience", audience)
		}
		d.list("scopes", o.Scopes)
		d.list("algorithms", o.Algorithms)
		d.boolean("dangerously_http_on_loopback", o.DangerouslyHTTPOnLoopback)
	})
}

func (d *dumper) telemetry(t *Telemetry) {
	d.boolean("metrics", t.Metrics)
	if t.OTLP.text != "" {
		d.quote("otlp", t.OTLP.String())
	}
	d.word("log", map[slog.Level]string{slog.LevelDebug: "debug", slog.LevelInfo: "info", slog.LevelWarn: "warn", slog.LevelError: "error"}[t.LogLevel])
	d.word("log_format", map[bool]string{false: "text", true: "json"}[t.LogJSON])
}

func (d *dumper) settings(s *settings, at level) {
	if at == ofTool {
		d.boolean("allow", !s.denied)
	}
	d.word("profile", profileWords[slices.Index(profiles, s.profile)])
	d.word("frame", frameWords[slices.Index(frameKinds, s.frame)])
	d.fence(s.framing, at)
	d.word("structured", structuredWords[map[bool]int{true: 1}[s.framing.StructuredText]])
	d.word("validate", modeWords[slices.Index(modes, s.validation.Mode)])
	d.word("unverifiable", map[bool]string{true: "pass", false: "hold"}[s.validation.PassUnverifiable])
	d.integer("max_chars", s.maxChars)
	d.duration("timeout", s.timeout)
	d.boolean("privileged", s.privileged)
	codes := make([]string, len(s.hold))
	for i, c := range s.hold {
		codes[i] = string(c)
	}
	d.line("hold: [", strings.Join(codes, ", "), "]")
	d.list("classify", s.classifiers)
	if s.llm.provider != "" {
		d.object("llm", func() { d.llm(&s.llm) })
	}
}

func (d *dumper) fence(f gateway.Framing, at level) {
	list := []string{}
	for i, set := range []bool{f.Resources && at != ofTool, f.Prompts && at != ofTool, f.AnyType} {
		if set {
			list = append(list, fenceWords[i])
		}
	}
	d.line("fence: [", strings.Join(list, ", "), "]")
}

func (d *dumper) llm(l *llmSettings) {
	d.quote("provider", l.provider)
	d.quote("tag", l.slug()+llmSuffix)
	d.boolean("grounded", l.grounded)
	if l.source != "" {
		d.quote("source", l.source)
	}
	switch {
	case l.model != nil:
		d.quote("model", *l.model)
	case l.models != nil:
		d.object("model", func() {
			for _, tool := range slices.Sorted(maps.Keys(l.models)) {
				d.quote(quoted(tool), l.models[tool])
			}
		})
	}
}

func (d *dumper) server(s *Server) {
	switch {
	case s.client != "":
		d.quote("mcp_json", s.client)
		d.imported(s)
	case s.Command != nil:
		d.list("command", s.Command)
	default:
		d.quote("url", s.URL.String())
	}
	if s.URL.text != "" {
		d.variables("headers", s.Headers)
		d.word("transport", wire.TransportWords[s.Transport])
	} else {
		d.variables("env", s.Env)
		if s.Cwd != "" {
			d.quote("cwd", s.Cwd)
		}
		d.word("share", []string{"session", "shared"}[s.Share])
	}
	if s.Pin != "" {
		d.quote("pin", s.Pin)
	}
	d.admission(&s.Admission)
	d.quote("prefix", s.Prefix)
	d.list("scopes", s.Scopes)
	d.boolean("dangerously_allow_sampling", s.DangerouslyAllowSampling)
	d.settings(&s.settings, ofServer)
	if len(s.toolKeys) == 0 {
		return
	}
	d.object("tools", func() {
		for _, key := range slices.Sorted(maps.Keys(s.toolKeys)) {
			t := s.toolKeys[key]
			d.object(quoted(key), func() { d.settings(&t, ofTool) })
		}
	})
}

// variables writes those that stand in the configuration.
func (d *dumper) variables(name string, list []Variable) {
	own := slices.DeleteFunc(slices.Clone(list), func(v Variable) bool { return v.Value.ref == fromClient })
	if len(own) == 0 {
		return
	}
	d.object(name, func() {
		for _, v := range own {
			d.quote(quoted(v.Name), v.Value.String())
		}
	})
}

// imported says in comments what a client's file has given, which may hold secrets
// anywhere: the program by its name, all else by number and name.
func (d *dumper) imported(s *Server) {
	if s.URL.text != "" {
		d.line("# the file gives a URL")
	} else if len(s.Command) > 0 {
		d.line("# the file gives the command ", finding.Quote(filepath.Base(s.Command[0])),
			" and ", strconv.Itoa(len(s.Command)-1), " arguments")
	}
	for _, v := range append(slices.Clone(s.Env), s.Headers...) {
		if v.Value.ref == fromClient {
			d.line("# the file gives ", finding.Quote(v.Name))
		}
	}
}
