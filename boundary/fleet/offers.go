// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// listed are the kinds of things that servers have lists of.
var listed = [...]string{"tools", "prompts", "resources"}

// keyAbsent is the member of _meta that names the servers whose part is missing
// from an answer that all give together, because they are gone or too slow.
const keyAbsent = "dev.pellucid/absent"

// keyServers holds what the gateways of the single servers noted of their part.
const keyServers = "dev.pellucid/servers"

// offersOf reads the result of initialize or server/discover.
func offersOf(result strictjson.Value) offers {
	o := offers{known: true, capabilities: map[string]bool{}}
	c := result.Get("capabilities")
	for i := range mcpmsg.Extensions {
		if e := &mcpmsg.Extensions[i]; e.Union == mcpmsg.Inspected && e.Capability != nil {
			o.capabilities[e.Key()] = e.In(c).Exists()
		}
	}
	o.subscribe, _ = c.Get("resources").Get("subscribe").Bool()
	o.instructions = result.Get("instructions").Text()
	return o
}

// part is what one member contributes to an answer.
type part struct {
	m       *member
	name    string // of the server
	prefix  string
	message *wire.Message // nil: it is absent
	pages   [2][]*wire.Message
	offers  offers
}

// gather asks several members at once, each in a goroutine, and waits for them no
// longer than patience. Later answers are dropped.
func (u *union) gather(ctx context.Context, members []*member, patience time.Duration, ask func(context.Context, *part)) []part {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	type numbered struct {
		i int
		p part
	}
	done := make(chan numbered, len(members))
	parts := make([]part, len(members))
	for i, m := range members {
		u.mu.Lock()
		p := part{m: m, name: m.up.Name, prefix: m.prefix}
		u.mu.Unlock()
		parts[i] = p
		u.work.Go(func() {
			ask(ctx, &p)
			done <- numbered{i, p}
		})
	}
	for range members {
		n := <-done // ask ends with ctx
		parts[n.i] = n.p
	}
	return parts
}

// initialize greets every server with the client's own words, and answers with what
// they offer together. A server that is slow is greeted all the same, and announced
// when it is there.
func (u *union) initialize(t *turn, m *wire.Message) error {
	wanted := clone(m.Params.Get("protocolVersion").Text())
	m.Release()
	parts := u.gather(t.ctx, u.all(), u.f.opt.patience, func(ctx context.Context, p *part) {
		if r, err := p.m.awake(ctx); err == nil {
			p.offers = r.offers
		}
	})
	if !wire.IsLegacy(wanted) {
		wanted = sharedVersion
	}
	dst := strictjson.AppendQuote([]byte(`{"protocolVersion":`), wanted)
	return u.result(t, append(u.selfDescription(dst, parts), '}'))
}

// discover asks every server what it offers.
func (u *union) discover(t *turn, m *wire.Message) error {
	params := withoutToken(m)
	m.Release()
	parts := u.gather(t.ctx, u.all(), u.f.opt.patience, func(ctx context.Context, p *part) {
		r, err := p.m.awake(ctx)
		if err != nil {
			return
		}
		if m, err := r.ask(ctx, t, mcpmsg.Discover, params); err == nil && m.Kind == wire.Response {
			p.offers = offersOf(m.Result)
		}
	})
	dst := u.selfDescription(strictjson.AppendStrings([]byte(`{"supportedVersions":`), wire.Versions()), parts)
	return u.result(t, append(dst, `,"resultType":"complete","ttlMs":0,"cacheScope":"private"}`...))
}

// selfDescription appends what all servers are together.
func (u *union) selfDescription(dst []byte, parts []part) []byte {
	has, subscribe := map[string]bool{}, false
	var absent []string
	for _, p := range parts {
		if !p.offers.known {
			absent = append(absent, p.name)
		}
		for name, there := range p.offers.capabilities {
			has[name] = has[name] || there
		}
		subscribe = subscribe || p.offers.subscribe
	}
	dst = append(dst, `,"capabilities":{"tools":{"listChanged":true}`...)
	if has["prompts"] || len(absent) > 0 {
		dst = append(dst, `,"prompts":{"listChanged":true}`...)
	}
	if has["resources"] || len(absent) > 0 {
		dst = append(dst, `,"resources":{"listChanged":true`...)
		if subscribe || len(absent) > 0 {
			dst = append(dst, `,"subscribe":true`...)
		}
		dst = append(dst, '}')
	}
	for _, name := range [...]string{"logging", "completions"} {
		if has[name] {
			dst = append(strictjson.AppendQuote(append(dst, ','), name), ":{}"...)
		}
	}
	if has["tasks"] { // of each tool it stands in its definition whether it can be a task
		dst = append(dst, `,"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`...)
	}
	dst = appendExtensions(dst, has)
	version := u.f.opt.Version
	if version == "" {
		version = "1"
	}
	dst = append(dst, `},"serverInfo":{"name":"pellucid","title":"Pellucid","version":`...)
	dst = append(strictjson.AppendQuote(dst, version), '}')
	if text := instructions(parts); text != "" {
		dst = strictjson.AppendQuote(append(dst, `,"instructions":`...), text)
	}
	if len(absent) > 0 {
		dst = append(dst, `,"_meta":{"`+keyAbsent+`":`...)
		dst = append(strictjson.AppendStrings(dst, absent), '}')
	}
	return dst
}

// appendExtensions announces the extensions that a server offers and that pass here.
func appendExtensions(dst []byte, has map[string]bool) []byte {
	n := 0
	for i := range mcpmsg.Extensions {
		e := &mcpmsg.Extensions[i]
		if len(e.Capability) != 2 || !has[e.Key()] {
			continue
		}
		if n == 0 {
			dst = append(dst, `,"extensions":{`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(strictjson.AppendQuote(dst, e.Capability[1]), ":{}"...)
		n++
	}
	if n > 0 {
		dst = append(dst, '}')
	}
	return dst
}

// instructions are those of all servers, each under a line that says whose they
// are. Theirs are set off as quotations, so that none can write such a line.
func instructions(parts []part) string {
	var b strings.Builder
	fenced := false
	for _, p := range parts {
		text, fence := strings.CutSuffix(p.offers.instructions, frame.Instructions)
		fenced = fenced || fence
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		b.WriteString("Of the server " + p.name + ", whose tools begin with " + p.prefix + "_:\n")
		for line := range strings.SplitSeq(text, "\n") {
			b.WriteString("> " + line + "\n")
		}
		b.WriteByte('\n')
	}
	if fenced {
		b.WriteString(frame.Instructions)
	}
	return strings.TrimSuffix(b.String(), "\n\n")
}

// withoutToken is the params of a request that several servers will get: progress
// of one of them would mean nothing.
func withoutToken(m *wire.Message) []byte {
	if !m.Params.Exists() {
		return nil
	}
	var e strictjson.Edits
	e.Remove(m.Params.Get("_meta").Get("progressToken"))
	return e.Apply(nil, m.Params)
}

// setLevel tells every server that logs.
func (u *union) setLevel(t *turn, m *wire.Message) error {
	params := append([]byte(nil), m.Params.Raw()...)
	known := mcpmsg.LevelOf(m.Params.Get("level").Text()) >= 0
	m.Release()
	if !known {
		return u.refuse(t, wire.CodeParams, textLevel)
	}
	u.mu.Lock()
	u.level = params
	u.mu.Unlock()
	for _, mem := range u.all() {
		u.mu.Lock()
		r := mem.run
		u.mu.Unlock()
		if r != nil && r.isGreeted() && r.offers.capabilities["logging"] {
			u.work.Go(func() { r.setLevel(params) })
		}
	}
	return u.result(t, []byte("{}"))
}
