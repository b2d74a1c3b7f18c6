package gateway

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/internal/mcpmsg"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
	"github.com/pellucid-mcp/pellucid/surface"
	"github.com/pellucid-mcp/pellucid/validate"
)

// Bounds of what is remembered of a server's tools.
const (
	maxTools = 10_000
	maxPages = 256
	// maxSchemas bounds the octets of all outputSchemas of a server.
	maxSchemas = 16 << 20
)

// toolList is what a server has listed of its tools: only a name that it listed, and
// that is approved, may stand as a label.
type toolList struct {
	admission Admission // nil: everything is
	mu        sync.Mutex
	tools     map[string]declared
	known     bool // and current
}

// declared is what a server has said of one tool.
type declared struct {
	headers []mcpmsg.ParamHeader
	output  []byte // outputSchema; nil if there is none
	hints   toolHints
	narrow  bool           // output admits nothing that could hold an injection
	version surface.Digest // of all that it has said
}

func (s *toolList) current() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// stale says that the server has announced a change. What was listed stays
// known by name until the next listing replaces it.
func (s *toolList) stale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = false
}

// settle takes a complete listing, or none if there can be none.
func (s *toolList) settle(l *listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known = true; l != nil {
		s.tools = l.tools
	}
}

// label is the tool's name if it may be shown, else frame.Other.
func (s *toolList) label(tool string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, listed := s.tools[tool]
	if !listed || !frame.IsLabel(tool) {
		return frame.Other
	}
	if a := s.admission; a != nil && !a.Admits(surface.Item{Key: surface.Key{Kind: surface.Tool, Name: tool}, Digest: d.version}) {
		return frame.Other
	}
	return tool
}

// version is the digest of what the server has said of a tool.
func (s *toolList) version(tool string) (d surface.Digest, listed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, listed := s.tools[tool]
	return t.version, listed
}

func (s *toolList) headers(tool string) []mcpmsg.ParamHeader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[tool].headers
}

// output is the outputSchema that the server has declared for the tool, nil if it
// has not.
func (s *toolList) output(tool string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[tool].output
}

// narrow reports whether the tool's outputSchema is.
func (s *toolList) narrow(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[tool].narrow
}

// A listing is a tools/list under way, page by page.
type listing struct {
	tools  map[string]declared
	writes bool // a tool says readOnlyHint: false

	versions bool // digests of the tools are wanted
	next     string
	pages    int
	octets   int // of output schemas
}

// page takes the page that cursor asked for. done means that no page follows;
// a page out of order, or one too many, ends the listing: ok is false then.
func (l *listing) page(cursor string, result strictjson.Value) (done, ok bool) {
	if cursor == "" {
		*l = listing{tools: map[string]declared{}, versions: l.versions}
	} else if l.tools == nil || cursor != l.next {
		return false, false
	}
	if l.pages++; l.pages > maxPages {
		return false, false
	}
	for t := range result.Get("tools").Elements() {
		if len(l.tools) == maxTools {
			return false, false
		}
		hint := t.Get("annotations").Get("readOnlyHint")
		l.writes = l.writes || hint.Kind() == 'f'
		d := declared{headers: cloneHeaders(mcpmsg.ParamHeaders(t.Get("inputSchema"))), hints: hintsOf(t.Get("annotations"))}
		if schema := t.Get("outputSchema"); schema.Exists() {
			d.output = l.keep(schema.Raw())
			d.narrow = narrowSchema(d.output)
		}
		if l.versions {
			it, _ := surface.EntryItem(mcpmsg.ListTools, t)
			d.version = it.Digest
		}
		l.tools[strings.Clone(t.Get("name").Text())] = d
	}
	l.next = strings.Clone(result.Get("nextCursor").Text())
	return l.next == "", true
}

// keep copies a schema. Of one that is too large, or comes after too many, only
// its first octets are kept: they are no schema, so nothing can be judged by them.
func (l *listing) keep(schema []byte) []byte {
	if len(schema) > validate.MaxSchema || l.octets+len(schema) > maxSchemas {
		schema = schema[:1]
	}
	l.octets += len(schema)
	return bytes.Clone(schema)
}

// cloneHeaders copies what aliases a message that will be reused.
func cloneHeaders(in []mcpmsg.ParamHeader) []mcpmsg.ParamHeader {
	for i := range in {
		in[i].Name = strings.Clone(in[i].Name)
		path := make([]string, len(in[i].Path))
		for k, name := range in[i].Path {
			path[k] = strings.Clone(name)
		}
		in[i].Path = path
	}
	return in
}

// profile is the server's profile. Auto is decided by what the server declares.
type profile struct {
	mu     sync.Mutex
	auto   bool
	chosen Profile
}

func newProfile(p Profile) *profile {
	if p == Auto {
		return &profile{auto: true, chosen: MCP}
	}
	return &profile{chosen: p}
}

func (p *profile) current() Profile {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chosen
}

// declared draws the consequence of a complete listing: text that was read from
// a server that also writes must match what stands there.
func (p *profile) declared(writes bool, log *slog.Logger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.chosen
	if !p.auto {
		return
	}
	p.chosen = MCP
	name := "mcp"
	if writes {
		p.chosen, name = Faithful, "faithful"
	}
	if was != p.chosen {
		log.Info("profile chosen", "profile", name, "because_a_tool_writes", writes)
	}
}
