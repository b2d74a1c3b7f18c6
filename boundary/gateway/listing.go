// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// askPage asks the server for a page of its tools. meta makes the request
// complete in the modern revision.
func (r *relay) askPage(cursor string, meta []byte) {
	now := time.Now()
	k := &call{method: mcpmsg.ListTools, cursor: cursor, meta: meta, born: now, heard: now, stage: sent}
	if meta != nil {
		k.revision = mcpmsg.Modern
	}
	r.calls.open(k)
	m := wire.NewRequest(wire.IntID(k.n), mcpmsg.ListTools, mcpmsg.AppendListParams(nil, cursor, meta))
	var doc strictjson.Doc
	if meta != nil && doc.Reset(meta, strictjson.Limits{}) == nil {
		m.Route.Version = strings.Clone(doc.Root().Get(mcpmsg.KeyVersion).Text())
	}
	r.enqueue(m)
}

// ownPage takes the answer to askPage.
func (r *relay) ownPage(ctx context.Context, k *call, m *wire.Message) {
	at := r.surface.generation()
	if m.Kind != wire.Response {
		r.listed(ctx, nil, at)
		return
	}
	page := r.lists.take(&r.lists.own, k.cursor, m.Result, r.illFormed(k, m))
	if r.cfg.Admission != nil && page.inOrder {
		r.differs(m)
	}
	switch {
	case !page.inOrder:
		r.quiet.warn("the server's list of tools is not used: it is too long or its pages are out of order")
		r.listed(ctx, nil, at)
	case page.done:
		r.listed(ctx, page.tools, at)
	default:
		r.askPage(page.next, k.meta)
	}
}

// clientPage learns from a page that the client asked for.
func (r *relay) clientPage(k *call, m *wire.Message) {
	at := r.surface.generation()
	if page := r.lists.take(&r.lists.client, k.cursor, m.Result, r.illFormed(k, m)); page.done && page.inOrder {
		r.surface.settle(page.tools, at)
	}
}

// listed settles the surface, with nothing where the server would not say, and
// lets go of what waited for it. at is the generation of the list.
func (r *relay) listed(ctx context.Context, tools map[string]declared, at int64) {
	r.surface.settle(tools, at)
	r.spawn(func() { // a server that does not read must not hold up the one that reads it
		for {
			k, m := r.calls.nextHeld()
			if k == nil || r.forwardHeld(ctx, m, k) != nil {
				return
			}
		}
	})
}

// forwardHeld forwards a call that waited for the list of tools. An answer of our own is on
// its way once the call is closed: drain waits for it too.
func (r *relay) forwardHeld(ctx context.Context, m *wire.Message, k *call) error {
	r.calls.pass()
	defer r.calls.passed()
	return r.forward(ctx, m, k)
}

// contextMeta copies what makes a request of the modern revision complete.
func contextMeta(m *wire.Message) []byte {
	meta := m.Params.Get("_meta")
	if !meta.Get(mcpmsg.KeyVersion).Exists() {
		return nil
	}
	dst := []byte{'{'}
	for _, key := range [...]string{mcpmsg.KeyVersion, mcpmsg.KeyClientInfo, mcpmsg.KeyClientCaps} {
		if v := meta.Get(key); v.Exists() {
			if len(dst) > 1 {
				dst = append(dst, ',')
			}
			dst = append(append(append(append(dst, '"'), key...), `":`...), v.Raw()...)
		}
	}
	return append(dst, '}')
}

// illFormed are the entries of a page of tools that are left out for their form.
func (r *relay) illFormed(k *call, m *wire.Message) map[strictjson.Value]bool {
	if m.Kind != wire.Response || r.cfg.rule("").Mode != policy.Enforce {
		return nil
	}
	report := (&passage{msg: m, method: mcpmsg.ListTools, revision: r.revisionOf(k)}).shape(m.Result)
	wrong := make(map[strictjson.Value]bool, len(report.Entries))
	for _, e := range report.Entries {
		wrong[e.Value] = true
	}
	return wrong
}

// refuseIllFormed answers a call of a tool that was left out for its form; nil: it was not.
func (r *relay) refuseIllFormed(m *wire.Message, k *call) *wire.Message {
	if k.method != mcpmsg.CallTool || r.cfg.rule("").Mode != policy.Enforce || !r.surface.illFormed(k.tool) {
		return nil
	}
	id := r.refusedRequest(k, finding.ShapeInvalid)
	if id == nil {
		return errWithheld.to(k, nil)
	}
	return r.refuseCall(m, k, *id, unknownTool, placeholderForm, finding.ShapeInvalid)
}

// listings are those of a session. Their lock keeps pages apart that come on several streams at a time.
type listings struct {
	mu          sync.Mutex
	own, client listing // that the gateway has asked for, and that the client has
}

// A paged is what is known of a listing after one of its pages.
type paged struct {
	tools         map[string]declared // not changed any more once done
	next          string              // cursor
	done, inOrder bool
}

// take takes a page of l, which is one of s.
func (s *listings) take(l *listing, cursor string, result strictjson.Value, wrong map[strictjson.Value]bool) paged {
	s.mu.Lock()
	defer s.mu.Unlock()
	done, inOrder := l.page(cursor, result, wrong)
	return paged{tools: l.tools, next: l.next, done: done, inOrder: inOrder}
}

// A listing is a tools/list under way, page by page.
type listing struct {
	tools       map[string]declared
	versions    bool // digests of the tools are wanted
	next        string
	seen        map[string]bool // cursors
	pages       int
	schemaBytes int // of output schemas
}

// page takes the page that cursor asked for. done means that no page follows;
// a page out of order, or one too many, ends the listing: ok is false then.
// wrong are its entries that no client sees for their form.
func (l *listing) page(cursor string, result strictjson.Value, wrong map[strictjson.Value]bool) (done, ok bool) {
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
		d := declared{headers: cloneHeaders(mcpmsg.ParamHeaders(t.Get("inputSchema"))), hints: hintsOf(t.Get("annotations"))}
		d.illFormed = wrong[t] || t.Get("name").Text() == ""
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
	if l.next = strings.Clone(result.Get("nextCursor").Text()); l.next == "" || l.seen[l.next] {
		return true, true
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[l.next] = true
	return false, true
}

// keep copies a schema. Of one that is too large, or comes after too many, only
// its first bytes are kept: they are no schema, so nothing can be judged by them.
func (l *listing) keep(schema []byte) []byte {
	if len(schema) > validate.MaxSchema || l.schemaBytes+len(schema) > maxSchemas {
		schema = schema[:1]
	}
	l.schemaBytes += len(schema)
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
