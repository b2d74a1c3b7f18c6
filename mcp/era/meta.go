// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// isModern reports whether a client's message is of the modern era.
func isModern(m *wire.Message) bool {
	return m.Route.Version >= modernVersion || m.Method == mcpmsg.Discover || m.Method == mcpmsg.Listen
}

// isDiscovery reports whether m is how a modern server answers server/discover.
func isDiscovery(m *wire.Message) bool {
	if m == nil || m.Kind != wire.Response || m.Result.Get("capabilities").Kind() != '{' {
		return false
	}
	for v := range m.Result.Get("supportedVersions").Elements() {
		if v.Text() == modernVersion {
			return true
		}
	}
	return false
}

// isModernRefusal reports whether m refuses the revision of a request, and names
// ours as one that would do: the server is modern, and wants to be asked again.
func isModernRefusal(m *wire.Message) bool {
	if m == nil || m.Kind != wire.ErrorResponse {
		return false
	}
	if code, _ := m.Error.Get("code").Int64(); code != wire.CodeUnsupportedVersion {
		return false
	}
	for v := range m.Error.Get("data").Get("supported").Elements() {
		if v.Text() == modernVersion {
			return true
		}
	}
	return false
}

// capabilities is caps, an object or nothing, without the members named.
func capabilities(caps strictjson.Value, without ...string) []byte {
	if caps.Kind() != '{' {
		return []byte("{}")
	}
	var e strictjson.Edits
	for _, name := range without {
		e.Remove(caps.Get(name))
	}
	return e.Apply(nil, caps)
}

// clientCapabilities are those that the server of the other era may know of. It
// has no tasks and extensions that a translator could carry.
func (s *sides) clientCapabilities(caps strictjson.Value) []byte {
	if s.o.DangerouslyAllowSampling {
		return capabilities(caps, "tasks", "extensions")
	}
	return capabilities(caps, "tasks", "extensions", "sampling")
}

// requestMeta are the members that make a request modern.
type requestMeta struct{ info, caps, level []byte }

func quoted(s string) []byte { return strictjson.AppendQuote(nil, s) }

// edit makes params those of a modern request.
func (r requestMeta) edit(e *strictjson.Edits, params strictjson.Value) {
	meta := params.Get("_meta")
	if meta.Kind() != '{' {
		e.Append(params, "_meta", r.object())
		return
	}
	e.Append(meta, mcpmsg.KeyVersion, quoted(modernVersion))
	if r.info != nil {
		e.Append(meta, mcpmsg.KeyClientInfo, r.info)
	}
	e.Append(meta, mcpmsg.KeyClientCaps, r.caps)
	if r.level != nil {
		e.Append(meta, mcpmsg.KeyLogLevel, r.level)
	} else {
		e.Remove(meta.Get(mcpmsg.KeyLogLevel))
	}
}

// alone are the params of a modern request that has no others.
func (r requestMeta) alone() []byte {
	return append(append([]byte(`{"_meta":`), r.object()...), '}')
}

func (r requestMeta) object() []byte {
	raw := []byte(`{"` + mcpmsg.KeyVersion + `":"` + modernVersion + `"`)
	if r.info != nil {
		raw = append(append(raw, `,"`+mcpmsg.KeyClientInfo+`":`...), r.info...)
	}
	raw = append(append(raw, `,"`+mcpmsg.KeyClientCaps+`":`...), r.caps...)
	if r.level != nil {
		raw = append(append(raw, `,"`+mcpmsg.KeyLogLevel+`":`...), r.level...)
	}
	return append(raw, '}')
}

// stripMeta takes from params what only a modern request has.
func stripMeta(e *strictjson.Edits, params strictjson.Value) {
	meta := params.Get("_meta")
	left := meta.Len()
	for _, key := range [...]string{mcpmsg.KeyVersion, mcpmsg.KeyClientInfo, mcpmsg.KeyClientCaps, mcpmsg.KeyLogLevel} {
		if v := meta.Get(key); v.Exists() {
			e.Remove(v)
			left--
		}
	}
	if meta.Kind() == '{' && left == 0 {
		e.Remove(meta)
	}
	e.Remove(params.Get("inputResponses"))
	e.Remove(params.Get("requestState"))
}

// identity is what a server says of itself.
type identity struct {
	caps         *strictjson.Doc // of the object
	info         []byte          // raw; nil if it says nothing
	instructions []byte          // raw string; nil if absent
}

func newIdentity(caps, info, instructions strictjson.Value) *identity {
	id := &identity{caps: new(strictjson.Doc)}
	raw := capabilities(caps)
	if id.caps.Reset(bytes.Clone(raw), strictjson.Limits{MendSurrogates: true}) != nil {
		_ = id.caps.Reset([]byte("{}"), strictjson.Limits{})
	}
	if info.Kind() == '{' {
		id.info = bytes.Clone(info.Raw())
	}
	if instructions.Kind() == '"' {
		id.instructions = bytes.Clone(instructions.Raw())
	}
	return id
}

// can reports whether the server has a capability; a member of it has to be true.
func (id *identity) can(path ...string) bool {
	v := id.caps.Root()
	for _, name := range path {
		v = v.Get(name)
	}
	return v.Kind() == '{' || v.Kind() == 't'
}

func clone(v strictjson.Value) string { return strings.Clone(v.Text()) }

// idOf reads an id inside params; zero if it is not one.
func idOf(v strictjson.Value) wire.ID {
	id, _ := wire.IDOf(v)
	return id
}

// askable reports whether the answer to a request may be that input is needed.
func askable(method string) bool {
	return method == mcpmsg.CallTool || method == mcpmsg.GetPrompt || method == mcpmsg.ReadResource
}

// cacheable reports whether results of method carry hints for caches.
func cacheable(method string) bool {
	switch method {
	case mcpmsg.ListTools, mcpmsg.ReadResource, mcpmsg.ListPrompts, mcpmsg.ListResources, mcpmsg.ListTemplates:
		return true
	}
	return false
}
