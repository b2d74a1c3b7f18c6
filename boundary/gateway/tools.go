// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Bounds of what is remembered of a server's tools.
const (
	maxTools = 10_000
	maxPages = 2_000
	// maxSchemas bounds the bytes of all outputSchemas of a server.
	maxSchemas = 16 << 20
)

// toolList is what a server has listed of its tools: only a name that it listed, and
// that is approved, may stand as a label.
type toolList struct {
	admission Admission // nil: everything is

	mu      sync.Mutex
	tools   map[string]declared // not changed, but replaced
	changes int64               // that the server has announced: the generation of what it lists now
	of      int64               // generation of tools
	known   bool                // and current
}

// declared is what a server has said of one tool.
type declared struct {
	headers []mcpmsg.ParamHeader
	output  []byte // outputSchema; nil if absent
	hints   toolHints
	narrow  bool           // output admits nothing that could hold an injection
	version surface.Digest // of all that it has said

	illFormed bool // left out for its form
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
	s.changes++
}

// generation is that of a list which has come just now.
func (s *toolList) generation() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// settle takes the tools of a complete listing, or nil if there can be none. at is its generation: where the
// server has announced a change meanwhile, the list is not current, and one that is older than what is known
// is not taken.
func (s *toolList) settle(tools map[string]declared, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at < s.of {
		return
	}
	s.of, s.known = at, at == s.changes
	if tools != nil {
		s.tools = tools
	}
}

// unknownTool stands for a tool whose name may not be shown. It is not a label, so that no
// tool is called so, and it stands in no record and no provenance.
const unknownTool = "?"

// label is the tool's name if it may be shown, else unknownTool.
func (s *toolList) label(tool string) string {
	s.mu.Lock()
	d, listed := s.tools[tool]
	s.mu.Unlock()
	if !listed || !frame.IsLabel(tool) {
		return unknownTool
	}
	if a := s.admission; a != nil && !a.Admits(surface.Item{Key: surface.Key{Kind: surface.Tool, Name: tool}, Digest: d.version}) {
		return unknownTool
	}
	return tool
}

// named is the tool's name if the server lists it and some version of it is approved, else unknownTool. It names a
// tool that has changed since it was approved, for the operator.
func (s *toolList) named(tool string) string {
	s.mu.Lock()
	_, listed := s.tools[tool]
	s.mu.Unlock()
	if !listed || !frame.IsLabel(tool) || s.admission != nil && !s.admission.Named(surface.Key{Kind: surface.Tool, Name: tool}) {
		return unknownTool
	}
	return tool
}

// illFormed reports whether the tool was left out of the list for its form.
func (s *toolList) illFormed(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[tool].illFormed
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
