// SPDX-License-Identifier: Apache-2.0

package era

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A stage lets a translator play without clock and goroutines.
type stage struct {
	t   testing.TB
	s   *sides
	tr  translator
	now time.Time

	lent []loan
}

// A loan is a message whose bytes serve others once it is given back. A stage overwrites
// them then: whatever still refers to them shows.
type loan struct {
	m     *wire.Message
	bytes []byte
}

// lend decodes a line of either side.
func (g *stage) lend(line string) (*wire.Message, error) {
	b := []byte(line)
	m, err := wire.Decode(b, testLimits)
	if err == nil {
		buf := new(reuse.Buffer)
		buf.Set(b)
		g.lent = append(g.lent, loan{m.Owning(buf), b})
	}
	return m, err
}

func (g *stage) overwrite() {
	for _, l := range g.lent {
		released := l.m.Kind == 0
		if released || len(l.m.Body()) > 0 && !strings.Contains(string(l.bytes), string(l.m.Body())) {
			for i := range l.bytes {
				l.bytes[i] = '!'
			}
		}
	}
}

// counter is the randomness of tests: handles are AAAA…, AQEB…, AgIC…
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.n
	}
	c.n++
	return len(p), nil
}

const handle1, handle2, handle3 = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB", "AgICAgICAgICAgICAgICAgICAgICAgIC"

func newStage(t testing.TB, kind string, o Options) *stage {
	g := &stage{t: t, now: time.Unix(1_800_000_000, 0)}
	o.rand = &counter{}
	o.now = func() time.Time { return g.now }
	g.s = &sides{o: o.orDefault(), errands: map[wire.ID]*errand{}}
	switch kind {
	case "adapt", "upstream":
		g.tr = &undecided{sides: g.s, probes: kind == "upstream"}
	case "modern":
		g.tr = newToLegacy(g.s)
	default:
		g.tr = newToModern(g.s)
	}
	return g
}

// outgoing is what a relay makes of a client's line.
func outgoing(line string) (*wire.Message, error) {
	m, err := wire.Decode([]byte(line), testLimits)
	if err != nil {
		return nil, err
	}
	m.Route = mcpmsg.RouteOf(m.Method, m.Params, nil)
	return m, nil
}

var testLimits = strictjson.Limits{MendSurrogates: true}

func (g *stage) client(line string) {
	out, err := g.lend(line)
	if err != nil {
		g.t.Fatalf("%v: %s", err, line)
	}
	out.Route = mcpmsg.RouteOf(out.Method, out.Params, nil)
	g.tr.client(out, g.now)
	g.turn()
}

func (g *stage) server(line string) {
	related := ""
	if i := strings.IndexByte(line, '{'); i > 0 {
		related, line = strings.TrimSpace(line[:i]), line[i:]
	}
	m, err := g.lend(line)
	if err != nil {
		g.t.Fatalf("%v: %s", err, line)
	}
	if n, err := strconv.ParseInt(related, 10, 64); err == nil {
		m.Related = wire.IntID(n)
	}
	g.tr.server(m, g.now)
	g.turn()
}

func (g *stage) turn() {
	if g.s.next != nil {
		g.tr, g.s.next = g.s.next, nil
	}
	g.overwrite()
}

// after lets time pass, as the clock of a Conn does.
func (g *stage) after(d time.Duration) {
	end := g.now.Add(d)
	for due := g.tr.pending(); !due.IsZero() && !due.After(end); due = g.tr.pending() {
		if due.After(g.now) {
			g.now = due
		}
		g.tr.tick(g.now)
		g.turn()
	}
	g.now = end
}

// said takes what has been said to either side, a line each.
func (g *stage) said() (lines []string) {
	for _, out := range g.s.up {
		lines = append(lines, "s< "+rawOf(out.m))
	}
	for _, it := range g.s.down {
		if it.v != nil {
			lines = append(lines, "c< "+it.v.Error())
			continue
		}
		lines = append(lines, "c< "+rawOf(it.m))
	}
	g.s.up, g.s.down = nil, nil
	return lines
}

func rawOf(m *wire.Message) string { return string(m.Append(nil)) }

// play performs a script. Its lines begin with "c>" or "s>" (sent by that side),
// "c<" or "s<" (what that side must get next, in this order), or "t>" (time that
// passes). A number before the server's message is the request on whose stream it
// comes. "{…" stands for jsonrpc. All that is said must be expected.
func play(t *testing.T, kind string, o Options, script string, holds ...*published) {
	t.Helper()
	g := newStage(t, kind, o)
	var want, got []string
	check := func() {
		t.Helper()
		got = append(got, g.said()...)
		for _, p := range holds {
			p.check(t, got)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
		want, got = nil, nil
	}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		op, rest := line[:2], strings.TrimSpace(line[2:])
		rest = strings.ReplaceAll(rest, "{…", `{"jsonrpc":"2.0",`)
		rest = strings.ReplaceAll(rest, "META", metaOf(`{"elicitation":{},"roots":{}}`))
		switch op {
		case "c<", "s<":
			want = append(want, op+" "+rest)
			continue
		}
		check()
		switch op {
		case "c>":
			for _, p := range holds {
				p.asks("c< ", rest)
			}
			g.client(rest)
		case "s>":
			g.server(rest)
		case "t>":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			g.after(d)
		default:
			t.Fatalf("script: %s", line)
		}
	}
	check()
}

func metaOf(caps string) string {
	return fmt.Sprintf(`"_meta":{"%s":"%s","%s":{"name":"c","version":"1"},"%s":%s}`, mcpmsg.KeyVersion, modernVersion, mcpmsg.KeyClientInfo, mcpmsg.KeyClientCaps, caps)
}

// greetedAs is the beginning of scripts before a legacy server.
const greetedAs = `
	c> {…"id":1,"method":"server/discover","params":{META}}
	s< {…"id":1073741825,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
	s> {…"id":1073741825,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"tasks":{},"x":1.50},"serverInfo":{"name":"s","version":"2"},"instructions":"\u0041"}}
	s< {…"method":"notifications/initialized"}
	c< {…"id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"x":1.50},"instructions":"\u0041","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}}}
`

// calledAs goes on with a call that the server answers by a question.
const calledAs = greetedAs + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t","arguments":{"b":1,"a":2},META}}
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t","arguments":{"b":1,"a":2}}}
	s> {…"id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}
	c< {…"id":2,"result":{"resultType":"input_required","inputRequests":{"ask-1":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"` + handle1 + `"}}
`

const retry = `{…"id":3,"method":"tools/call","params":{"name":"t","arguments":{"a":2.0,"b":1},"requestState":"` + handle1 + `","inputResponses":{"ask-1":{"action":"accept","content":{"n":1.0}}},META}}`

func TestModernBeforeLegacy(t *testing.T) {
	for _, tt := range []struct{ name, script string }{
		{"discover", greetedAs},
		{"list gains hints and keeps its bytes", greetedAs + `
	c> {…"id":2,"method":"tools/list","params":{"cursor":"x","_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
	s< {…"id":1073741826,"method":"tools/list","params":{"cursor":"x","_meta":{"progressToken":7}}}
	s> {…"id":1073741826,"result":{"tools":[{"name":"\u0074","inputSchema":{"type":"object","maximum":1e2}}],"cacheScope":"public"}}
	c< {…"id":2,"result":{"tools":[{"name":"\u0074","inputSchema":{"type":"object","maximum":1e2}}],"cacheScope":"private","resultType":"complete","ttlMs":0}}`},
		{"what only looks modern in a legacy result", greetedAs + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t",META}}
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t"}}
	s> {…"id":1073741826,"result":{"content":[],"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage"}},"requestState":"x"}}
	c< {…"id":2,"result":{"content":[],"resultType":"complete"}}
	s> {…"id":1073741826,"result":{"content":[]}}`},
		{"methods that are gone", greetedAs + `
	c> {…"id":2,"method":"ping","params":{META}}
	c< {…"id":2,"error":{"code":-32601,"message":"pellucid: the protocol revision has no such method"}}
	s> {…"id":5,"method":"ping"}
	s< {…"id":5,"result":{}}`},
		{"unknown version", `
	c> {…"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}
	c< {…"id":1,"error":{"code":-32022,"message":"pellucid: unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2027-01-01"}}}`},
		{"input", calledAs + `
	c> ` + retry + `
	s< {…"id":"q","result":{"action":"accept","content":{"n":1.0}}}
	s> {…"id":1073741826,"result":{"content":[]}}
	c< {…"id":3,"result":{"content":[],"resultType":"complete"}}`},
		{"a handle is good once", calledAs + `
	c> ` + retry + `
	s< {…"id":"q","result":{"action":"accept","content":{"n":1.0}}}
	c> ` + strings.Replace(retry, `"id":3`, `"id":4`, 1) + `
	c< {…"id":4,"error":{"code":-32602,"message":"pellucid: unknown or expired requestState"}}`},
		{"a handle is good for its own request", calledAs + `
	c> ` + strings.Replace(retry, `"b":1`, `"b":2`, 1) + `
	c< {…"id":3,"error":{"code":-32602,"message":"pellucid: unknown or expired requestState"}}
	c> ` + strings.Replace(retry, `"id":3,"method":"tools/call"`, `"id":4,"method":"prompts/get"`, 1) + `
	c< {…"id":4,"error":{"code":-32602,"message":"pellucid: unknown or expired requestState"}}
	c> ` + strings.Replace(retry, handle1, handle2, 1) + `
	c< {…"id":3,"error":{"code":-32602,"message":"pellucid: unknown or expired requestState"}}
	c> ` + retry + `
	s< {…"id":"q","result":{"action":"accept","content":{"n":1.0}}}`},
		{"input that is not given is asked for again", calledAs + `
	c> ` + strings.Replace(retry, `"ask-1"`, `"other"`, 1) + `
	c< {…"id":3,"result":{"resultType":"input_required","inputRequests":{"ask-1":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"` + handle2 + `"}}`},
		{"a result that comes first", calledAs + `
	s> {…"id":1073741826,"result":{"content":[]}}
	c> ` + retry + `
	s< {…"id":"q","result":{"action":"accept","content":{"n":1.0}}}
	c< {…"id":3,"result":{"content":[],"resultType":"complete"}}`},
		{"a second question meanwhile", calledAs + `
	s> {…"id":7,"method":"roots/list"}
	c> ` + retry + `
	s< {…"id":"q","result":{"action":"accept","content":{"n":1.0}}}
	c< {…"id":3,"result":{"resultType":"input_required","inputRequests":{"ask-1":{"method":"roots/list","params":{}}},"requestState":"` + handle2 + `"}}`},
		{"a question withdrawn", calledAs + `
	s> {…"method":"notifications/cancelled","params":{"requestId":"q"}}
	c> ` + retry},
		{"a question asked twice under one id", calledAs + `
	s> {…"id":"q","method":"roots/list"}
	s< {…"id":"q","error":{"code":-32601,"message":"pellucid: the client cannot be asked"}}`},
		{"a client that does not come back", calledAs + `
	t> 11m
	s< {…"id":"q","error":{"code":7707,"message":"pellucid: the client did not come back in time"}}
	s< {…"method":"notifications/cancelled","params":{"requestId":1073741826}}
	c> ` + retry + `
	c< {…"id":3,"error":{"code":-32602,"message":"pellucid: unknown or expired requestState"}}`},
		{"a question of which the client knows nothing", greetedAs + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t",META}}
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t"}}
	s> {…"id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}
	s< {…"id":1,"error":{"code":-32601,"message":"` + mcpmsg.NoSampling + `"}}
	s> {…"id":2,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example","elicitationId":"e"}}
	s< {…"id":2,"error":{"code":-32601,"message":"pellucid: the client cannot be asked"}}
	s> {…"id":3,"method":"tasks/get","params":{}}
	s< {…"id":3,"error":{"code":-32601,"message":"pellucid: the client cannot be asked"}}`},
		{"a question before any call", greetedAs + `
	s> {…"id":1,"method":"roots/list"}
	c> {…"id":2,"method":"tools/list","params":{META}}
	s< {…"id":1073741826,"method":"tools/list","params":{}}
	c> {…"id":3,"method":"tools/call","params":{"name":"t",META}}
	c< {…"id":3,"result":{"resultType":"input_required","inputRequests":{"ask-1":{"method":"roots/list","params":{}}},"requestState":"` + handle1 + `"}}
	c> {…"id":4,"method":"tools/call","params":{"name":"t","requestState":"` + handle1 + `","inputResponses":{"ask-1":{"roots":[]}},META}}
	s< {…"id":1,"result":{"roots":[]}}
	s< {…"id":1073741827,"method":"tools/call","params":{"name":"t"}}`},
		{"links to be visited first", `
	c> {…"id":1,"method":"tools/call","params":{"name":"t",` + metaOf(`{"elicitation":{"url":{}}}`) + `}}
	s< {…"id":1073741825,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}},"clientInfo":{"name":"c","version":"1"}}}
	s> {…"id":1073741825,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"2"}}}
	s< {…"method":"notifications/initialized"}
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t"}}
	s> {…"id":1073741826,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://a.example","message":"x","elicitationId":"e"}]}}}
	c< {…"id":1,"result":{"resultType":"input_required","inputRequests":{"ask-1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a.example","message":"x","elicitationId":"e"}}},"requestState":"` + handle1 + `"}}
	c> {…"id":2,"method":"tools/call","params":{"name":"t","requestState":"` + handle1 + `","inputResponses":{"ask-1":{"action":"accept"}},` + metaOf(`{}`) + `}}
	s< {…"id":1073741827,"method":"tools/call","params":{"name":"t"}}`},
		{"not found", greetedAs + `
	c> {…"id":2,"method":"resources/read","params":{"uri":"a:b",META}}
	s< {…"id":1073741826,"method":"resources/read","params":{"uri":"a:b"}}
	s> {…"id":1073741826,"error":{"code":-32002,"message":"none","data":{"uri":"a:b"}}}
	c< {…"id":2,"error":{"code":-32602,"message":"none","data":{"uri":"a:b"}}}`},
		{"cancelled", greetedAs + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t",META}}
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t"}}
	c> {…"method":"notifications/cancelled","params":{"requestId":2,"reason":"r"}}
	s< {…"method":"notifications/cancelled","params":{"requestId":1073741826}}
	s> {…"id":1073741826,"result":{"content":[]}}
	c> {…"method":"notifications/cancelled","params":{"requestId":77}}`},
		{"logging by request", greetedAs + `
	s> {…"method":"notifications/message","params":{"level":"error","data":1}}
	c> {…"id":2,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"warning"}}}
	s< {…"id":1073741827,"method":"logging/setLevel","params":{"level":"warning"}}
	s> {…"id":1073741827,"result":{}}
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t"}}
	s> {…"method":"notifications/message","params":{"level":"info","data":1}}
	s> {…"method":"notifications/message","params":{"level":"error","data":2.0}}
	c< {…"method":"notifications/message","params":{"level":"error","data":2.0}}`},
		{"subscriptions", greetedAs + `
	c> {…"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:1","a:2"]},META}}
	s< {…"id":1073741826,"method":"resources/subscribe","params":{"uri":"a:1"}}
	s< {…"id":1073741827,"method":"resources/subscribe","params":{"uri":"a:2"}}
	s> {…"method":"notifications/tools/list_changed"}
	s> {…"id":1073741826,"result":{}}
	s> {…"id":1073741827,"error":{"code":-32602,"message":"no"}}
	c< {…"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
	s> {…"method":"notifications/tools/list_changed"}
	c< {…"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
	s> {…"method":"notifications/prompts/list_changed","params":{}}
	s> {…"method":"notifications/resources/updated","params":{"uri":"a:1/x","_meta":{"k":1}}}
	c< {…"method":"notifications/resources/updated","params":{"uri":"a:1/x","_meta":{"k":1,"io.modelcontextprotocol/subscriptionId":2}}}
	s> {…"method":"notifications/resources/updated","params":{"uri":"b:1"}}
	c> {…"method":"notifications/cancelled","params":{"requestId":2}}
	s< {…"id":1073741828,"method":"resources/unsubscribe","params":{"uri":"a:1"}}
	s> {…"method":"notifications/resources/updated","params":{"uri":"a:1"}}`},
		{"a subscription to nothing", greetedAs + `
	c> {…"id":2,"method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},META}}
	c< {…"method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
	c< {…"id":2,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":2}}}`},
		{"progress of a call under another token", greetedAs + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}
	s> {…"method":"notifications/progress","params":{"progressToken":"p","progress":1}}
	c< {…"method":"notifications/progress","params":{"progressToken":"p","progress":1}}
	s> {…"id":1,"method":"roots/list"}
	c< {…"id":2,"result":{"resultType":"input_required","inputRequests":{"ask-1":{"method":"roots/list","params":{}}},"requestState":"` + handle1 + `"}}
	s> {…"method":"notifications/progress","params":{"progressToken":"p","progress":2}}
	c> {…"id":3,"method":"tools/call","params":{"name":"t","requestState":"` + handle1 + `","inputResponses":{"ask-1":{"roots":[]}},"_meta":{"progressToken":9,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
	s< {…"id":1,"result":{"roots":[]}}
	s> {…"method":"notifications/progress","params":{"progressToken":"p","progress":3.0}}
	c< {…"method":"notifications/progress","params":{"progressToken":9,"progress":3.0}}
	s> {…"method":"notifications/progress","params":{"progressToken":"other","progress":3}}`},
		{"a token that a parked call has", greetedAs + `
	c> {…"id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}
	s< {…"id":1073741826,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}
	s> {…"id":1,"method":"roots/list"}
	c< {…"id":2,"result":{"resultType":"input_required","inputRequests":{"ask-1":{"method":"roots/list","params":{}}},"requestState":"` + handle1 + `"}}
	c> {…"id":3,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
	s< {…"id":1073741827,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"pellucid-era-1073741827"}}}
	s> {…"method":"notifications/progress","params":{"progressToken":"p","progress":1}}
	s> {…"method":"notifications/progress","params":{"progressToken":"pellucid-era-1073741827","progress":2}}
	c< {…"method":"notifications/progress","params":{"progressToken":"p","progress":2}}`},
		{"questions on the streams of their calls", greetedAs + `
	c> {…"id":2,"method":"tools/list","params":{META}}
	s< {…"id":1073741826,"method":"tools/list","params":{}}
	s>1073741826 {…"id":1,"method":"roots/list"}
	s< {…"id":1,"error":{"code":-32601,"message":"pellucid: the client cannot be asked"}}`},
		{"no handshake", `
	c> {…"id":1,"method":"tools/list","params":{META}}
	s< {…"id":1073741825,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}
	c> {…"id":2,"method":"tools/list","params":{META}}
	t> 11s
	c< {…"id":1,"error":{"code":7702,"message":"pellucid: the server could not be initialized"}}
	c< {…"id":2,"error":{"code":7702,"message":"pellucid: the server could not be initialized"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, "modern", Options{}, tt.script, newPublished(t, modernVersion, lastLegacy))
		})
	}
}
