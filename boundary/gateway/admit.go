// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An Admission says what a server may say of itself. Whoever made it has checked the
// server's whole surface before any session began; but a server may say something else
// to a session, or later, so every answer is held against it on its way to the client.
// Its methods may be called at the same time, and but for Refresh do not block.
type Admission interface {
	// Admits reports whether an item may be seen in this very version. it.JSON is nil
	// where the question is about a version that was listed before.
	Admits(it surface.Item) bool
	// Approved is the version of an item of kind Server, List or App that may be seen,
	// canonical; nil if none may.
	Approved(k surface.Key) []byte
	// Named reports whether some version of an item is approved, whatever the server lists now.
	Named(k surface.Key) bool
	// Held reports whether a person still has to approve an item, or has refused it.
	Held(k surface.Key) bool
	// Blocked reports whether a reviewer has refused an item.
	Blocked(k surface.Key) bool
	// Beyond reports whether a resource is within reach by a template only that is held,
	// see surface.Beyond; so are, for this session, the ones given.
	Beyond(uri string, held []string) bool
	// Differs is told of items that were shown and that Admits refuses, each a copy.
	Differs(items []surface.Item)
	// OnChange has f called whenever other items may be seen than before, until stop is called. f does not
	// block, and may be called once more after that.
	OnChange(f func()) (stop func())
	// Refresh reads what people have decided meanwhile, and returns when ctx ends at the
	// latest. It is called before a request is refused for what is held.
	Refresh(ctx context.Context)
}

// admit leaves out of what a server says of itself whatever was not approved. It
// returns the result that goes on in the place of root, and how much was left out.
func (in *inspection) admit(root strictjson.Value) (_ strictjson.Value, cut int, code finding.Code) {
	a := in.cfg.Admission
	if a == nil || in.p.msg.Kind != wire.Response || root.Kind() != '{' {
		return root, 0, ok
	}
	c := cutter{admission: a, seen: &in.seen, name: in.cfg.Name}
	switch member := surface.Entries(in.p.method); {
	case in.p.method == mcpmsg.Initialize, in.p.method == mcpmsg.Discover:
		c.hello(root)
	case member != "":
		c.page(in.p.method, member, root)
	case in.p.method == mcpmsg.ReadResource && mcpmsg.IsAppRead(in.p.uri, root):
		code = c.app(in.p.uri, root)
		in.w.approvedPage = c.verbatim
		return root, 0, code
	default:
		return root, 0, ok
	}
	if c.edits.Len() == 0 {
		return root, 0, ok
	}
	if in.admitted.Reset(c.edits.Apply(nil, root), strictjson.Limits{Bytes: 1 << 27, MendSurrogates: true}) != nil {
		return root, 0, finding.Unapproved
	}
	return in.admitted.Root(), c.cut, ok
}

// A cutter takes away what may not be seen.
type cutter struct {
	admission Admission
	seen      *unapproved
	name      string
	edits     strictjson.Edits
	cut       int
	verbatim  bool // the app is the version that was approved, page and domains
}

func (c *cutter) remove(v strictjson.Value) {
	c.edits.Remove(v)
	c.cut++
}

// page keeps of a page of a list what was approved.
func (c *cutter) page(method, member string, root strictjson.Value) {
	var differ []surface.Item
	for entry := range root.Get(member).Elements() {
		it, named := surface.EntryItem(method, entry)
		admitted := named && c.admission.Admits(it)
		if named {
			c.seen.setShown(it, admitted)
		}
		if !admitted {
			c.remove(entry)
			if named {
				differ = append(differ, it)
			}
		}
	}
	var own strictjson.Doc
	_ = own.Reset(c.admission.Approved(surface.Key{Kind: surface.Server}), strictjson.Limits{}) // nothing approved: zero values
	hello := own.Root()
	if it, there := surface.BesideItem(method, root, hello); there && !c.beside(it) {
		for name, v := range root.Members() {
			if text := name.Text(); text != member && !surface.IsBookkeeping(text, v) && !surface.RepeatsName(text, v, hello) {
				c.remove(v)
			}
		}
	}
	if c.cut > 0 { // what is held may be approved at any time, and is this client's affair
		for name, fresh := range map[string]string{"ttlMs": "0", "cacheScope": `"private"`} {
			if v := root.Get(name); v.Exists() {
				c.edits.Replace(v, []byte(fresh))
			}
		}
	}
	if differ != nil {
		c.admission.Differs(differ)
	}
}

// app says whether an app may be shown in this version: its page and its domains were
// approved with the surface.
func (c *cutter) app(uri string, root strictjson.Value) finding.Code {
	it := surface.AppItem(uri, root)
	if c.admission.Admits(it) {
		c.verbatim = bytes.Equal(c.admission.Approved(it.Key), it.JSON) // else it passes unapproved
		return ok
	}
	c.admission.Differs([]surface.Item{it})
	return finding.Unapproved
}

// beside reports whether what one page says beside its entries was approved: it is one
// of several such, or all of it.
func (c *cutter) beside(it surface.Item) bool {
	var approved, page strictjson.Doc
	if page.Reset(it.JSON, strictjson.Limits{}) == nil && approved.Reset(c.admission.Approved(it.Key), strictjson.Limits{}) == nil {
		for one := range approved.Root().Elements() {
			for own := range page.Root().Elements() {
				if string(one.Raw()) == string(own.Raw()) {
					return true
				}
			}
		}
	}
	return c.admission.Admits(it)
}

// hello lets a server introduce itself in the approved words. A session cannot do
// without the answer, so that what differs gives way to what was approved: each member
// by itself.
func (c *cutter) hello(root strictjson.Value) {
	c.announce(root.Get("capabilities"))
	it := surface.HelloItem(root)
	if c.admission.Admits(it) {
		return
	}
	var doc strictjson.Doc
	_ = doc.Reset(c.admission.Approved(it.Key), strictjson.Limits{}) // nothing approved: zero values
	approved := doc.Root()
	info := approved.Get("serverInfo")
	for name, v := range root.Members() {
		switch text := name.Text(); {
		case surface.IsBookkeeping(text, v):
		case text == "capabilities":
			c.capabilities(v, approved.Get(text))
		case text == "serverInfo":
			c.swap(v, info)
		case text == "instructions":
			c.instead(v, approved.Get(text))
		case text == "_meta" && v.Kind() == '{':
			for key, value := range v.Members() {
				if key.Text() == mcpmsg.KeyServerInfo {
					c.swap(value, info)
				} else {
					c.keep(value, approved.Get(text).Get(key.Text()))
				}
			}
		default:
			c.keep(v, approved.Get(text))
		}
	}
	if c.cut > 0 {
		c.admission.Differs([]surface.Item{it})
	}
}

func sameValue(a, b strictjson.Value) bool {
	return a.Exists() && b.Exists() && string(surface.Canonical(a)) == string(surface.Canonical(b))
}

// keep removes v unless it is what was approved.
func (c *cutter) keep(v, approved strictjson.Value) {
	if !sameValue(v, approved) {
		c.remove(v)
	}
}

// instead puts what was approved, if anything was, in the place of v.
func (c *cutter) instead(v, approved strictjson.Value) {
	switch {
	case !approved.Exists():
		c.remove(v)
	case !sameValue(v, approved):
		c.edits.Replace(v, approved.Raw())
		c.cut++
	}
}

// swap is instead for what a client cannot do without: the name of the server, which
// is the operator's where none was approved.
func (c *cutter) swap(v, approved strictjson.Value) {
	if approved.Exists() {
		c.instead(v, approved)
		return
	}
	c.edits.Replace(v, append(strictjson.AppendQuote([]byte(`{"name":`), c.name), `,"version":"0"}`...))
	c.cut++
}

// capabilities keeps those that say nothing but that they are there, and of the others
// what was approved.
func (c *cutter) capabilities(v, approved strictjson.Value) {
	if v.Kind() != '{' {
		c.keep(v, approved)
		return
	}
	for name, value := range v.Members() {
		if text := name.Text(); !surface.IsSwitch(text, value) {
			c.keep(value, approved.Get(text))
		}
	}
}

// announce says that lists can change, as they do when a person approves something.
func (c *cutter) announce(capabilities strictjson.Value) {
	for _, name := range changing {
		if v := capabilities.Get(name); v.Kind() == '{' && v.Get("listChanged").Kind() != 't' {
			c.edits.Append(v, "listChanged", []byte("true"))
		}
	}
}

// changing are the capabilities that go with lists.
var changing = [...]string{"tools", "prompts", "resources"}

// unapproved are the items that were listed in this session and left out.
type unapproved struct {
	mu   sync.Mutex
	held map[surface.Key]surface.Digest
}

// maxUnapproved bounds what is remembered of a session. More than an admitted surface
// may have is never listed honestly.
const maxUnapproved = 10_000

func (u *unapproved) setShown(it surface.Item, admitted bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if admitted {
		delete(u.held, it.Key)
		return
	}
	if u.held == nil {
		u.held = map[surface.Key]surface.Digest{}
	}
	if _, known := u.held[it.Key]; known || len(u.held) < maxUnapproved {
		u.held[it.Key] = it.Digest
	}
}

// holds reports whether the session was last shown a version of the item that may not
// be seen, or where it was shown none, whether a person has yet to approve one.
func (u *unapproved) holds(a Admission, k surface.Key) bool {
	u.mu.Lock()
	digest, shown := u.held[k]
	u.mu.Unlock()
	if shown {
		return !a.Admits(surface.Item{Key: k, Digest: digest})
	}
	return a.Held(k) || k.Kind == surface.Resource && a.Beyond(k.Name, u.templates(a))
}

// templates are those that the session was last shown in a version that may not be seen.
func (u *unapproved) templates(a Admission) (list []string) {
	var shown []surface.Item
	u.mu.Lock()
	for k, digest := range u.held {
		if k.Kind == surface.Template {
			shown = append(shown, surface.Item{Key: k, Digest: digest})
		}
	}
	u.mu.Unlock()
	for _, it := range shown {
		if !a.Admits(it) {
			list = append(list, it.Key.Name)
		}
	}
	return list
}

// mayNotKnow reports whether the client asks for what it may not know of. What was approved
// a moment ago counts.
func (r *relay) mayNotKnow(ctx context.Context, k *call) bool {
	if r.cfg.Admission == nil || k.item.Name == "" || !r.isHeld(k) {
		return false
	}
	ctx, done := k.store.within(ctx)
	r.cfg.Admission.Refresh(ctx)
	done()
	return r.isHeld(k)
}

func (r *relay) isHeld(k *call) bool {
	a := r.cfg.Admission
	if k.method == mcpmsg.CallTool {
		if digest, listed := r.surface.version(k.item.Name); listed {
			return !a.Admits(surface.Item{Key: k.item, Digest: digest})
		}
	}
	return r.in.seen.holds(a, k.item)
}

// differs tells the Admission of what the server answered to a request of our own.
func (r *relay) differs(m *wire.Message) {
	var differ []surface.Item
	for entry := range m.Result.Get(surface.Entries(mcpmsg.ListTools)).Elements() {
		if it, named := surface.EntryItem(mcpmsg.ListTools, entry); named && !r.cfg.Admission.Admits(it) {
			differ = append(differ, it)
		}
	}
	if differ != nil {
		r.cfg.Admission.Differs(differ)
	}
}

// itemOf is the item that a request is about; its name is empty if it is about none.
func itemOf(m *wire.Message) surface.Key {
	switch m.Method {
	case mcpmsg.CallTool:
		return surface.Key{Kind: surface.Tool, Name: strings.Clone(m.Params.Get("name").Text())}
	case mcpmsg.GetPrompt:
		return surface.Key{Kind: surface.Prompt, Name: strings.Clone(m.Params.Get("name").Text())}
	case mcpmsg.ReadResource, mcpmsg.Subscribe:
		return surface.Key{Kind: surface.Resource, Name: strings.Clone(m.Params.Get("uri").Text())}
	case mcpmsg.Complete:
		switch ref := m.Params.Get("ref"); ref.Get("type").Text() {
		case "ref/prompt":
			return surface.Key{Kind: surface.Prompt, Name: strings.Clone(ref.Get("name").Text())}
		case "ref/resource":
			return surface.Key{Kind: surface.Template, Name: strings.Clone(ref.Get("uri").Text())}
		}
	}
	return surface.Key{}
}

// refuseUnapproved answers, with a constant text, a request for what is held.
func (r *relay) refuseUnapproved(m *wire.Message, k *call) *wire.Message {
	id := r.refusedRequest(k, finding.Unapproved, "run", surface.DiffCommand(r.cfg.Name, "", r.cfg.Flag, k.item))
	if k.method != mcpmsg.CallTool || id == nil {
		return errUnapproved.to(k, id)
	}
	text := placeholderTool
	if r.cfg.Admission.Blocked(k.item) {
		text = placeholderBlocked
	}
	return r.refuseCall(m, k, *id, unknownTool, text, finding.Unapproved)
}

// refuseCall answers a call that the server does not get with a result of constant text,
// which a model reads as it reads the results of the other calls. tool is a label.
func (r *relay) refuseCall(m *wire.Message, k *call, id ID, tool, text string, code finding.Code) *wire.Message {
	note := unseen(id, frame.Origin{Server: r.cfg.Name, Tool: tool}, scrub.Faithful, code)
	modern := m.Params.Get("_meta").Get(mcpmsg.KeyVersion).Exists()
	raw := toolPlaceholder(text, id, modern, frame.MetaKey, note)
	out := k.addressed(wire.NewResult(k.id, raw))
	out.Whole = true
	k.done(OutcomeRefused, out.Len())
	return out
}
