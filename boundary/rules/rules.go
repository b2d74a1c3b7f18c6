// SPDX-License-Identifier: Apache-2.0

// Package rules reads pellucid.yaml: all errors at once, or immutable rules.
//
// The format stands in docs/spec/config.md. A file is strict: what it does not
// know, what stands there twice and what is beyond its bounds is refused, with
// line and excerpt, and a file with one such mistake changes nothing. Secrets
// stand in it by reference only, and in no error, no dump and no digest.
package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Rules are a compiled file. They are shared by all that is under way: nobody
// changes them, nor what is reached from them.
type Rules struct {
	Listen    string // host:port; port 0 is any
	PublicURL string // without a slash at its end; "": none
	Store     Store
	Replicas  Replicas
	HTTP      HTTP
	Limits    Limits
	Auth      Auth
	Console   *Console // nil: it is not served
	Telemetry Telemetry
	Review    *Review // nil: no model is asked
	Evidence  Evidence
	Reviewers *capture.Recipients // of what is held; nil: it is kept as it is
	Captures  captures.Limits     // of texts of calls

	TwoPersons bool                // a release needs two persons
	Webhooks   map[string]*Webhook // by name
	Policy     *Policy             // nil: none
	Guard      *Guard              // of pellucid guard; a gateway does not use it. nil: nothing is said
	admission  Admission
	Tokens     *scrub.TokenTable // nil: those of this version

	Classifiers map[string]*Classifier // by name; Local is always there

	Servers    []*Server // by name
	Exceptions []exception
	// Foreign says that LoadOne ignored the entry of the server in the file, which names another command or URL.
	Foreign bool

	tokens string // where Tokens are read from

	tokensPrint [sha256.Size]byte // of what that file says
	defaults    settings
	byName      map[string]*Server
	print       [sha256.Size]byte // of Effective, of secrets and of all else that it does not show; never leaves the process
	text        []byte            // Effective
}

// Server returns the server of that name, nil if not found.
func (r *Rules) Server(name string) *Server { return r.byName[name] }

// DefaultClassifiers are the names of those that judge what no server of the file
// answers.
func (r *Rules) DefaultClassifiers() []string { return r.defaults.classifiers }

// Also are the names of the classifiers that judge another kind of message of the server
// than the answers to calls.
func (s *Server) Also(kind gateway.Elsewhere) []string {
	t := s.Tool("")
	if !slices.Contains(t.also, string(kind)) {
		return nil
	}
	return t.Classifiers
}

// Effective is the configuration with every default filled in, as a file of the
// same format that means the same. Secrets stand in it as references; what was
// taken from a client's file stands in comments, without values.
func (r *Rules) Effective() []byte { return append([]byte(nil), r.text...) }

// Version names these rules in evidence: "sha256:" and the digest of Effective.
// It says nothing of what a reference stands for.
func (r *Rules) Version() string {
	sum := sha256.Sum256(r.text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Store says where state is kept. Both empty: in the state directory.
type Store struct {
	Path string // of an SQLite file, absolute
	URL  Value  // of a database
}

// Limits bound what sessions cost together. They are read when the gateway starts.
type Limits struct {
	Memory               int // bytes that messages under way may cost
	Children             int // processes of servers, of all sessions
	ChildrenPerServer    int // of those, of one server
	ChildrenPerPrincipal int // of those, of one principal's sessions
}

// HTTP shapes the listener.
type HTTP struct {
	Hosts       []string // for auth.Local
	Origins     []string // for auth.Local
	proxies     []string // addresses and prefixes
	MaxBody     int      // bytes
	Sessions    int
	SessionIdle time.Duration
	SessionLife time.Duration
	Limits      auth.Limits // of a principal; Proxies is the caller's to set, in a copy
	Drain       time.Duration
}

// Auth says who may come in. Both nil: everybody who reaches the listener.
type Auth struct {
	Tokens auth.Authenticator    // of the token file
	OAuth  *auth.ResourceOptions // checked; Transport and Log are the caller's to set, in a copy

	tokens string            // the reference to the token file
	print  [sha256.Size]byte // of the file and all that it refers to
}

// Set reports whether there is any.
func (a Auth) Set() bool { return a.Tokens != nil || a.OAuth != nil }

// Telemetry says what is told of the running process.
type Telemetry struct {
	Metrics  bool
	LogLevel slog.Level
	LogJSON  bool
}

// Share says who answers the sessions of a server that is a command.
type Share uint8

// The ways of sharing.
const (
	PerSession Share = iota // a process for each session
	Shared                  // one for all
)

// A Variable is an environment variable or a header.
type Variable struct {
	Name  string
	Value Value
}

// A Server is one upstream: a command or a URL.
type Server struct {
	Name   string
	Prefix string // of its tools where all servers are one

	Command []string   // program and arguments; nil: URL
	Env     []Variable // by name
	Inherit []string   // names of variables of this process that it gets too; no file says any
	Cwd     string     // absolute; "": that of the process
	Pin     string     // what it is pinned under; "": its identity
	Share   Share

	URL       Value
	Headers   []Variable // by name
	Transport wire.Transport
	TLS       *ClientTLS // nil: that of the system

	Admission Admission

	Scopes                   []string // that a principal needs, all of them
	DangerouslyAllowSampling bool

	client   string // the client's file that it was taken from, as it is written
	settings settings
	toolKeys map[string]settings // of the file
	tools    table[*Tool]
	base     *Tool
}

// Environ is what a process of the server finds in its environment beside Inherit, as NAME=VALUE.
func (s *Server) Environ() []string {
	var list []string
	for _, v := range s.Env {
		list = append(list, v.Name+"="+v.Value.Reveal())
	}
	return list
}

// Header is what requests to the server carry beside what the transport needs.
func (s *Server) Header() http.Header {
	h := http.Header{}
	for _, v := range s.Headers {
		h.Add(v.Name, v.Value.Reveal())
	}
	return h
}

// A Tool is what applies to the results of a tool, or of what is no tool's.
type Tool struct {
	Rule        gateway.Rule
	Classifiers []string // by which results are judged, in order
	also        []string // of gateway.Elsewheres, of the tool "" alone
}

// Tool returns what applies to the tool that the server calls name; with "", to
// what is no tool's.
func (s *Server) Tool(name string) *Tool {
	if name != "" {
		if t, ok := s.tools.find(name); ok {
			return t
		}
	}
	return s.base
}

// All are what Tool can return, that of "" first.
func (s *Server) All() []*Tool {
	list := []*Tool{s.base}
	for _, key := range slices.Sorted(maps.Keys(s.tools.names)) {
		list = append(list, s.tools.names[key])
	}
	for _, p := range s.tools.patterns {
		list = append(list, p.val)
	}
	return list
}

// Rule is that of Tool, for gateway.Config.
func (s *Server) Rule(name string) *gateway.Rule { return &s.Tool(name).Rule }

// Rules are those of All, for gateway.Config.
func (s *Server) Rules() (list []*gateway.Rule) {
	for _, t := range s.All() {
		list = append(list, &t.Rule)
	}
	return list
}

// IsGrounding reports whether the server is set up as a grounding adapter.
func (s *Server) IsGrounding() bool { return s.settings.profile == veritas }

// KeepsTokens are the servers of which control tokens are kept in some text, in their order.
func (r *Rules) KeepsTokens() (names []string) {
	for _, s := range r.Servers {
		if slices.ContainsFunc(s.All(), func(t *Tool) bool { return t.Rule.ControlTokens == scrub.KeepTokens }) {
			names = append(names, s.Name)
		}
	}
	return names
}

// An exception lets through what a rule says is to be held. It stands in the Rule
// of the tools that it is for; here it is told to people.
type exception struct {
	server string
	tool   string // "": every one
	code   finding.Code
	until  time.Time
	why    string // the operator's words
}
