// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/base64"
	"math"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// member names of lists, by method; kind is the capability that goes with it.
var lists = map[string]struct{ member, kind string }{
	mcpmsg.ListTools:     {"tools", "tools"},
	mcpmsg.ListPrompts:   {"prompts", "prompts"},
	mcpmsg.ListResources: {"resources", "resources"},
	mcpmsg.ListTemplates: {"resourceTemplates", "resources"},
	mcpmsg.ListTasks:     {"tasks", ""},
}

const (
	maxCursor = 4 << 10 // of one server; a longer one ends its list
	// maxList bounds the bytes of one page, so that it fits into a message.
	maxList = 30 << 20
	// maxPages bounds what is fetched without a client that asked for it.
	maxPages = 2_000
)

// list answers with a page that is made of one page of each server that has more.
func (u *union) list(t *turn, m *wire.Message) error {
	cursors, ok := u.cursors(m.Params.Get("cursor"))
	if !ok {
		m.Release()
		return u.refuse(t, wire.CodeParams, textCursor)
	}
	meta := metaOf(m)
	m.Release()
	members := u.all()
	if cursors != nil {
		members = nil
		for _, mem := range u.all() {
			if _, more := cursors[mem.name()]; more {
				members = append(members, mem)
			}
		}
	}
	parts := u.gather(t.ctx, members, u.f.opt.patience, func(ctx context.Context, p *part) {
		p.message = u.page(ctx, p, t.method, cursors[p.name], meta)
	})
	page := newPage(u, t.method, parts)
	for i := range parts {
		page.add(&parts[i])
	}
	result := page.finish()
	for i := range parts {
		if m := parts[i].message; m != noSuch {
			m.Release() // nothing of it is kept
		}
	}
	return u.result(t, result)
}

// metaOf is what a request of ours needs of the client's _meta, raw; nil: nothing.
func metaOf(m *wire.Message) []byte {
	meta := m.Params.Get("_meta")
	if meta.Kind() != '{' {
		return nil
	}
	var e strictjson.Edits
	e.Remove(meta.Get("progressToken"))
	return e.Apply(nil, meta)
}

// noSuch is what a server answers that has no such list.
var noSuch = own(wire.NewResult(wire.IntID(0), []byte("{}")))

// page asks one member for one page; nil if it could not be had.
func (u *union) page(ctx context.Context, p *part, method, cursor string, meta []byte) *wire.Message {
	r, err := p.m.awake(ctx)
	if err != nil {
		return nil
	}
	if kind := lists[method].kind; r.offers.known && kind != "" && !r.offers.capabilities[kind] {
		return noSuch
	}
	m, err := r.ask(ctx, nil, method, mcpmsg.AppendListParams(nil, cursor, meta))
	switch {
	case err != nil:
		return nil
	case m.Kind == wire.Response:
		return m
	}
	if code, _ := m.Error.Get("code").Int64(); code == wire.CodeNoMethod {
		return noSuch
	}
	return nil
}

// pages is a page in the making.
type pages struct {
	u       *union
	method  string
	member  string
	dst     []byte
	n       int
	full    bool
	more    map[string]string // cursors by server
	absent  []string
	notes   []byte
	leftOut int
	ttl     int64
	names   []string // of servers, in order, for more
}

func newPage(u *union, method string, parts []part) *pages {
	p := &pages{u: u, method: method, member: lists[method].member, more: map[string]string{}, ttl: math.MaxInt64}
	size := 1 << 10
	for i := range parts {
		if m := parts[i].message; m != nil { // a tool gets some bytes of prefix
			size += len(m.Result.Raw()) + (len(parts[i].prefix)+1)*m.Result.Get(p.member).Len()
		}
	}
	p.dst = make([]byte, 0, min(size, maxList+1<<10))
	p.dst = append(append(append(p.dst, `{"`...), p.member...), `":[`...)
	return p
}

// add takes what one server has contributed.
func (g *pages) add(p *part) {
	if p.message == nil || g.full {
		g.absent = append(g.absent, p.name)
		return
	}
	result := p.message.Result
	for entry := range result.Get(g.member).Elements() {
		before := len(g.dst)
		if g.n > 0 {
			g.dst = append(g.dst, ',')
		}
		var told bool
		if g.dst, told = g.u.entry(g.dst, g.method, p, entry); !told {
			g.dst = g.dst[:before]
			g.leftOut++
			continue
		}
		if len(g.dst) > maxList {
			g.dst = g.dst[:before]
			g.full = true
			g.absent = append(g.absent, p.name)
			return
		}
		g.n++
	}
	if cursor := result.Get("nextCursor").Text(); cursor != "" && len(cursor) <= maxCursor {
		g.more[p.name] = cursor
		g.names = append(g.names, p.name)
	}
	if p.message != noSuch {
		ttl, _ := result.Get("ttlMs").Int64()
		g.ttl = min(g.ttl, max(ttl, 0))
	}
	if note := result.Get("_meta").Get(frame.MetaKey); note.Exists() {
		if g.notes != nil {
			g.notes = append(g.notes, ',')
		}
		g.notes = append(strictjson.AppendQuote(g.notes, p.name), ':')
		g.notes = append(g.notes, note.Raw()...)
	}
}

// finish is the raw result.
func (g *pages) finish() []byte {
	dst := append(g.dst, ']')
	if len(g.more) > 0 {
		dst = strictjson.AppendQuote(append(dst, `,"nextCursor":`...), g.cursor())
	}
	if g.u.era == wire.Modern {
		if g.ttl == math.MaxInt64 || g.absent != nil {
			g.ttl = 0
		}
		dst = append(dst, `,"resultType":"complete","cacheScope":"private","ttlMs":`...)
		dst = appendInt(dst, g.ttl)
	}
	var meta []byte
	member := func(name string) []byte {
		if meta != nil {
			meta = append(meta, ',')
		}
		return append(strictjson.AppendQuote(meta, name), ':')
	}
	if g.absent != nil {
		meta = strictjson.AppendStrings(member(keyAbsent), g.absent)
	}
	if g.leftOut > 0 {
		meta = appendInt(member("dev.pellucid/leftOut"), int64(g.leftOut))
	}
	if g.notes != nil {
		meta = append(append(append(member(keyServers), '{'), g.notes...), '}')
	}
	if meta != nil {
		dst = append(append(append(dst, `,"_meta":{`...), meta...), '}')
	}
	return append(dst, '}')
}

// A cursor of ours holds those of the servers that have more.
func (g *pages) cursor() string {
	dst := []byte{'{'}
	for i, name := range g.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(strictjson.AppendQuote(dst, name), ':')
		dst = strictjson.AppendQuote(dst, g.more[name])
	}
	return base64.RawURLEncoding.EncodeToString(append(dst, '}'))
}

// cursors reads a cursor of ours; nil if not found.
func (u *union) cursors(v strictjson.Value) (map[string]string, bool) {
	if !v.Exists() {
		return nil, true
	}
	src, err := base64.RawURLEncoding.Strict().DecodeString(v.Text())
	if err != nil || v.Kind() != '"' {
		return nil, false
	}
	var doc strictjson.Doc
	if doc.Reset(src, strictjson.Limits{}) != nil || doc.Root().Kind() != '{' {
		return nil, false
	}
	out := map[string]string{}
	for name, cursor := range doc.Root().Members() {
		if cursor.Kind() != '"' || len(cursor.Text()) > maxCursor {
			return nil, false
		}
		out[clone(name.Text())] = clone(cursor.Text())
	}
	return out, true
}

func (m *member) name() string {
	m.u.mu.Lock()
	defer m.u.mu.Unlock()
	return m.up.Name
}

// entry appends one entry of a server's list as the client gets it. It reports false, and what it has appended
// is void, if the entry cannot be told from another server's.
func (u *union) entry(dst []byte, method string, p *part, v strictjson.Value) ([]byte, bool) {
	at := v.Get("name")
	switch method {
	case mcpmsg.ListResources:
		at = v.Get("uri")
	case mcpmsg.ListTemplates:
		at = v.Get("uriTemplate")
	case mcpmsg.ListTasks:
		u.mu.Lock()
		defer u.mu.Unlock()
		u.places.task(p.m, v.Get("taskId").Text())
		return append(dst, v.Raw()...), true
	}
	own := at.Text()
	shown := u.shownAs(method, p, own)
	isName := method == mcpmsg.ListTools || method == mcpmsg.ListPrompts
	switch {
	case shown == "" || isName && at.Kind() != '"':
		u.f.warnOnce("an entry of a list cannot be told from another one at /mcp: it is left out there", p.name, method, own, "")
		return dst, false
	case !isName && shown != own:
		u.f.warnOnce("a resource URI or template is listed by two servers: the one of this server has another URI at /mcp", p.name, method, own, shown)
	case shown == own:
		return append(dst, v.Raw()...), true
	}
	var e strictjson.Edits
	e.ReplaceText(at, shown)
	return e.Apply(dst, v), true
}

// shownAs returns the name or URI by which the client sees an entry, or "" if that stands for another entry.
func (u *union) shownAs(method string, p *part, own string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	table := p.m.tools
	switch method {
	case mcpmsg.ListResources:
		return u.places.claimURI(p.m, own)
	case mcpmsg.ListTemplates:
		return u.places.claimTemplate(p.m, own)
	case mcpmsg.ListPrompts:
		table = p.m.prompts
	}
	return table.add(p.name, p.prefix, own)
}

// maxWarned bounds the lines that warnOnce logs for one Fleet.
const maxWarned = 256

// warnOnce warns the operator once of an entry of a list, however often the server lists it.
func (f *Fleet) warnOnce(text, server, method, entry, listed string) {
	entry = finding.Quote(entry)
	key := server + " " + method + " " + entry
	f.mu.Lock()
	isNew := !f.warned[key] && len(f.warned) < maxWarned
	if isNew {
		f.warned[key] = true
	}
	f.mu.Unlock()
	if !isNew {
		return
	}
	args := []any{"server", server, "entry", entry}
	if listed != "" {
		args = append(args, "listed_as", finding.Quote(listed))
	}
	f.log.Warn(text, args...)
}

// fetchAll fetches everything that one member has of a kind, as far as it can be had.
func (u *union) fetchAll(ctx context.Context, p *part, method string, meta []byte) (all []*wire.Message) {
	cursor := ""
	for range maxPages {
		m := u.page(ctx, p, method, cursor, meta)
		if m == nil {
			break
		}
		all = append(all, m)
		if cursor = m.Result.Get("nextCursor").Text(); cursor == "" {
			break
		}
	}
	return all
}

// learnPages notes what a server has listed. The client gets nothing of it.
func (u *union) learnPages(p *part, method string, pages []*wire.Message) {
	var void []byte
	for _, m := range pages {
		for entry := range m.Result.Get(lists[method].member).Elements() {
			void, _ = u.entry(void[:0], method, p, entry)
		}
	}
}
