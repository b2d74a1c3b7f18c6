// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// byName gives the call of a tool, or the request for a prompt, to the server that
// the name's prefix says.
func (u *union) byName(t *turn, m *wire.Message) error {
	name := m.Params.Get("name")
	code, text, method := wire.CodeParams, textNoTool, mcpmsg.ListTools
	if t.method == mcpmsg.GetPrompt {
		text, method = textNoPrompt, mcpmsg.ListPrompts
	}
	mem := u.prefixed(name.Text())
	if mem == nil {
		m.Release()
		return u.refuse(t, code, text)
	}
	if m.Claim != nil && m.Claim.Name != name.Text() {
		m.Release()
		return u.refuse(t, wire.CodeHeaderMismatch, textMismatch)
	}
	forward := func(inner string) error {
		m.Claim = claimed(m.Claim, inner)
		return u.renamed(t, mem, m, name, inner)
	}
	if inner, known := mem.inner(t.method, name.Text()); known {
		return forward(inner)
	}
	meta := metaOf(m)
	u.work.Go(func() {
		p := mem.part()
		ctx, stop := context.WithTimeout(t.ctx, u.f.opt.patience)
		defer stop()
		u.learnPages(&p, method, u.fetchAll(ctx, &p, method, meta))
		if inner, known := mem.inner(t.method, name.Text()); known {
			_ = forward(inner)
			return
		}
		m.Release()
		_ = u.refuse(t, code, text)
	})
	return nil
}

func (m *member) part() part {
	m.u.mu.Lock()
	defer m.u.mu.Unlock()
	return part{m: m, name: m.up.Name, prefix: m.prefix}
}

// claimed is what the headers say of the message, with the name that its own
// server knows: a copy, since name may alias the message, which is edited then.
func claimed(c *wire.Claim, name string) *wire.Claim {
	if c == nil {
		return nil
	}
	return &wire.Claim{Name: strings.Clone(name), Params: c.Params}
}

// prefixed is the member whose prefix a name bears.
func (u *union) prefixed(name string) *member {
	prefix, _, ok := strings.Cut(name, "_")
	for _, m := range u.all() {
		if ok && m.part().prefix == prefix {
			return m
		}
	}
	return nil
}

// inner is the server's own name for a prefixed one.
func (m *member) inner(method, out string) (string, bool) {
	m.u.mu.Lock()
	defer m.u.mu.Unlock()
	table := m.tools
	if method != mcpmsg.CallTool {
		table = m.prompts
	}
	return table.inner(m.prefix, out)
}

// renamed forwards a request with the server's own name or URI in the place of ours. It owns m.
func (u *union) renamed(t *turn, mem *member, m *wire.Message, at strictjson.Value, name string) error {
	var e strictjson.Edits
	if at.Text() != name {
		e.ReplaceText(at, name)
	}
	if m.Edit(&e) != nil { // never: a quoted string is strict JSON
		m.Release()
		return u.refuse(t, wire.CodeParams, textNoTool)
	}
	return u.forward(t, mem, m)
}

// forward gives a request to one server, at once if that is possible. It owns m.
func (u *union) forward(t *turn, mem *member, m *wire.Message) error {
	if r := mem.current(); r != nil && r.isGreeted() {
		return u.put(t, r, m)
	}
	u.work.Go(func() {
		ctx := t.ctx
		if u.era == wire.Legacy { // of the modern era there is no handshake that could fail
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, u.f.opt.patience)
			defer stop()
		}
		r, err := mem.awake(ctx)
		if err != nil {
			m.Release()
			_ = u.refuse(t, wire.CodeAbsent, textAbsent)
			return
		}
		_ = u.put(t, r, m)
	})
	return nil
}

func (u *union) put(t *turn, r *run, m *wire.Message) error {
	if t.ctx.Err() != nil {
		m.Release()
		return nil
	}
	if !r.send(&errand{turn: t}, m) {
		return u.refuse(t, wire.CodeAbsent, textLost)
	}
	return nil
}

// byURI gives a request to the server whose resource it is about.
func (u *union) byURI(t *turn, m *wire.Message) error {
	uri := clone(m.Params.Get("uri").Text())
	if m.Claim != nil && m.Claim.Name != uri && t.method == mcpmsg.ReadResource {
		m.Release()
		return u.refuse(t, wire.CodeHeaderMismatch, textMismatch)
	}
	of := u.findOwner(t.ctx, uri, metaOf(m))
	if of.m == nil {
		m.Release()
		return u.refuse(t, u.codeNoResource(), textNoURI)
	}
	u.mu.Lock()
	switch t.method {
	case mcpmsg.Subscribe:
		if len(u.places.watched) < maxWatched {
			u.places.watched[uri] = of
		}
	case mcpmsg.Unsubscribe:
		delete(u.places.watched, uri)
	}
	u.mu.Unlock()
	if t.method == mcpmsg.ReadResource {
		m.Claim = claimed(m.Claim, of.uri)
	}
	return u.renamed(t, of.m, m, m.Params.Get("uri"), of.uri)
}

// codeNoResource is the code that the revision has for this.
func (u *union) codeNoResource() int {
	if u.era == wire.Modern {
		return wire.CodeParams
	}
	return wire.CodeNoResource
}

// watchedAs returns how the client sees a URI of the member, or "" if it has not subscribed to it.
func (u *union) watchedAs(m *member, uri string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, shown := range [...]string{uri, uri + m.uriMark()} {
		if u.places.watched[shown] == (resource{m, uri}) {
			return shown
		}
	}
	return ""
}

// findOwner returns the server that a URI or URI template belongs to, with the server's spelling of it. It
// returns no member if no server has listed it. A URI that is not listed belongs to the only server with
// resources, if just one has any.
func (u *union) findOwner(ctx context.Context, uri string, meta []byte) resource {
	look := func() resource {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.places.ownerOf(uri)
	}
	if of := look(); of.m != nil {
		return of
	}
	methods := [...]string{mcpmsg.ListTemplates, mcpmsg.ListResources}
	parts := u.gather(ctx, u.all(), u.f.opt.patience, func(ctx context.Context, p *part) {
		for i, method := range methods {
			p.pages[i] = u.fetchAll(ctx, p, method, meta)
		}
		if r, err := p.m.awake(ctx); err == nil {
			p.offers = r.offers
		}
	})
	for i := range parts { // in their order, for the first has it
		for k, method := range methods {
			u.learnPages(&parts[i], method, parts[i].pages[k])
		}
	}
	if of := look(); of.m != nil {
		return of
	}
	var only *member
	for _, p := range parts {
		if p.offers.known && !p.offers.capabilities["resources"] {
			continue
		}
		if only != nil {
			return resource{}
		}
		only = p.m
	}
	return resource{only, uri}
}

// complete gives a request to the server whose prompt or template it is about. It owns m.
func (u *union) complete(t *turn, m *wire.Message) error {
	ref := m.Params.Get("ref")
	switch ref.Get("type").Text() {
	case "ref/prompt":
		name := ref.Get("name")
		mem := u.prefixed(name.Text())
		if mem == nil {
			break
		}
		inner, known := mem.inner(mcpmsg.GetPrompt, name.Text())
		if !known {
			p := mem.part()
			ctx, stop := context.WithTimeout(t.ctx, u.f.opt.patience)
			defer stop()
			u.learnPages(&p, mcpmsg.ListPrompts, u.fetchAll(ctx, &p, mcpmsg.ListPrompts, metaOf(m)))
			inner, known = mem.inner(mcpmsg.GetPrompt, name.Text())
		}
		if known {
			return u.renamed(t, mem, m, name, inner)
		}
	case "ref/resource":
		if of := u.findOwner(t.ctx, clone(ref.Get("uri").Text()), metaOf(m)); of.m != nil {
			return u.renamed(t, of.m, m, ref.Get("uri"), of.uri)
		}
	}
	m.Release()
	return u.refuse(t, wire.CodeParams, textNoRef)
}

// byTask gives a request to the server that began the task. It owns m.
func (u *union) byTask(t *turn, m *wire.Message) error {
	u.mu.Lock()
	mem := u.places.tasks[m.Params.Get("taskId").Text()]
	u.mu.Unlock()
	if mem == nil {
		m.Release()
		return u.refuse(t, wire.CodeParams, textNoTask)
	}
	return u.forward(t, mem, m)
}

// learn notes of an answer which resources and tasks a server speaks of, so that
// the client can ask for them.
func (u *union) learn(m *member, method string, msg *wire.Message) {
	switch method {
	case mcpmsg.CallTool, mcpmsg.GetPrompt, mcpmsg.TaskResult:
	default:
		return
	}
	raw := msg.Body()
	if msg.Kind != wire.Response || !bytes.Contains(raw, []byte(`"uri"`)) && !bytes.Contains(raw, []byte(`"taskId"`)) {
		return
	}
	if msg.Parse() != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.places.task(m, msg.Result.Get("task").Get("taskId").Text())
	u.places.task(m, msg.Result.Get("taskId").Text())
	var marks strictjson.Edits
	for block := range msg.Result.Get("content").Elements() {
		u.places.noteMentions(m, block, &marks)
	}
	for message := range msg.Result.Get("messages").Elements() {
		u.places.noteMentions(m, message.Get("content"), &marks)
		for block := range message.Get("content").Elements() {
			u.places.noteMentions(m, block, &marks)
		}
	}
	if msg.Edit(&marks) != nil {
		u.f.log.Warn("the URIs in a result could not be marked: they may lead the client to another server", "server", m.up.Name)
	}
}

// noteMentions notes the URIs of a content block, and marks one that would lead the client to another server.
func (p *places) noteMentions(m *member, block strictjson.Value, marks *strictjson.Edits) {
	for _, v := range [...]strictjson.Value{block.Get("uri"), block.Get("resource").Get("uri")} {
		uri := v.Text()
		if uri == "" || len(uri) > maxURI {
			continue
		}
		shown := uri
		if of := p.listerOf(uri); of.m != nil && of.m != m {
			shown += m.uriMark()
			marks.ReplaceText(v, shown)
		}
		if (shown != uri || p.ownerOf(shown).m == nil) && len(p.mentioned) < maxPlaces {
			p.mentioned[strings.Clone(shown)] = resource{m, strings.Clone(uri)}
		}
	}
}
