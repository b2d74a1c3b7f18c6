// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/era"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// A route is how the two sides of a gateway are reached.
type route struct {
	front, up string // "stdio" or "http"
	modern    bool   // the client's era
	cross     bool   // the server is of the other one
}

func (r route) String() string {
	name := r.front + "-" + r.up + "-legacy"
	if r.modern {
		name = r.front + "-" + r.up + "-modern"
	}
	if r.cross {
		name += "-crossed"
	}
	return name
}

// serves reports whether the server is modern.
func (r route) serves() bool { return r.modern != r.cross }

func routes() (list []route) {
	for _, front := range []string{"stdio", "http"} {
		for _, up := range []string{"stdio", "http"} {
			list = append(list, route{front, up, false, false}, route{front, up, true, false},
				route{front, up, false, true}, route{front, up, true, true})
		}
	}
	return list
}

// A course is a gateway on one route, between a client and a server that the test plays.
type course struct {
	t *testing.T
	route
	client wire.ReadConn
	hello  string   // how the server answers the handshake; "" = as it should
	bodies []string // what the server says, by the number in the request
	row    mcpmsg.Row
}

// openCourse opens a route.
func openCourse(t *testing.T, r route, hello string, cfg Config) *course {
	t.Helper()
	c := &course{t: t, route: r, hello: hello}
	dial := c.serveStdio
	if r.up == "http" {
		dial = c.serveHTTP()
	}
	run := func(ctx context.Context, front wire.ReadConn) error {
		up := dial(ctx)
		if r.cross {
			up = wire.Pull(era.Adapt(wire.Push(up), era.Options{DangerouslyAllowSampling: true}))
		}
		return Run(ctx, wire.Push(front), wire.Push(up), cfg)
	}
	if r.front == "http" {
		front := wire.NewFront(wire.FrontOptions{Accept: func(ctx context.Context, s *wire.FrontSession, ended func(error)) {
			go func() { ended(run(ctx, wire.Pull(s))) }()
		}})
		c.client = c.dialHTTP(front)
	} else {
		a, b := pipeConns()
		done := make(chan error, 1)
		ctx, stop := context.WithCancel(context.Background())
		go func() { done <- run(ctx, a) }()
		c.client = post(b)
		t.Cleanup(func() { stop(); c.client.Close(); <-done })
	}
	return c
}

// newCourse opens a route, with a session of a client that has said hello.
func newCourse(t *testing.T, r route, cfg Config) *course {
	t.Helper()
	c := openCourse(t, r, "", cfg)
	if !r.modern {
		c.greet()
		c.write(wire.NewRequest(wire.ID{}, "notifications/initialized", nil))
	}
	return c
}

// greet is the handshake of the client's era. It returns what the client hears.
func (c *course) greet() string {
	c.t.Helper()
	if c.modern {
		c.ask(0, mcpmsg.Discover, `{"x":0}`)
	} else {
		c.ask(0, mcpmsg.Initialize, `{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}`)
	}
	return string(c.read().Append(nil))
}

// pipeConns are two ends of a pair of pipes.
func pipeConns() (a, b wire.ReadConn) {
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	return wire.Pull(wire.NewLines(ar, aw, wire.LinesOptions{Limits: testLimits})), wire.Pull(wire.NewLines(br, bw, wire.LinesOptions{Limits: testLimits}))
}

// posted is a Conn that writes behind the back of whoever reads it: pipes hold
// nothing, and both ends of a course talk at the same time.
type posted struct {
	wire.ReadConn
	box chan *wire.Message
}

func post(conn wire.ReadConn) *posted {
	p := &posted{conn, make(chan *wire.Message, 1024)}
	go func() {
		for out := range p.box {
			_ = conn.Write(context.Background(), out) // who reads will miss it
		}
	}()
	return p
}

func (p *posted) Write(_ context.Context, out *wire.Message) error {
	p.box <- out
	return nil
}

func (p *posted) Close() error {
	close(p.box)
	return p.ReadConn.Close()
}

// dialHTTP serves a front and returns a client of it.
func (c *course) dialHTTP(front *wire.Front) wire.ReadConn {
	server := httptest.NewServer(front)
	client, err := wire.NewHTTP(server.URL, wire.HTTPOptions{Limits: testLimits})
	if err != nil {
		c.t.Fatal(err)
	}
	pulled := wire.Pull(client)
	c.t.Cleanup(func() {
		pulled.Close()
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := front.Shutdown(ctx); err != nil {
			c.t.Errorf("Shutdown: %v", err)
		}
		server.Close()
	})
	return pulled
}

func (c *course) serveStdio(ctx context.Context) wire.ReadConn {
	a, b := pipeConns()
	go c.serve(ctx, post(b))
	return a
}

// serveHTTP lets our own front play the server's end of streamable HTTP.
func (c *course) serveHTTP() func(context.Context) wire.ReadConn {
	front := wire.NewFront(wire.FrontOptions{Accept: func(ctx context.Context, s *wire.FrontSession, ended func(error)) {
		go func() {
			c.serve(ctx, wire.Pull(s))
			ended(nil)
		}()
	}})
	server := httptest.NewServer(front)
	c.t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		_ = front.Shutdown(ctx)
		server.CloseClientConnections()
		server.Close()
	})
	return func(context.Context) wire.ReadConn {
		up, err := wire.NewHTTP(server.URL, wire.HTTPOptions{Limits: testLimits})
		if err != nil {
			c.t.Fatal(err)
		}
		return wire.Pull(up)
	}
}

// serve plays the server: each request is answered with the body of its number.
func (c *course) serve(ctx context.Context, conn wire.ReadConn) {
	defer conn.Close()
	for {
		m, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if m.Kind != wire.Request {
			continue
		}
		answer := func(body string) { conn.Write(ctx, wire.NewResult(m.ID, []byte(body))) }
		refuse := func(body string) { conn.Write(ctx, wire.NewError(m.ID, []byte(body))) }
		n, numbered := m.Params.Get("n").Int64()
		request := c.row.Part == mcpmsg.Params && !strings.HasPrefix(c.row.Method, "notifications/")
		switch {
		case c.cross && (m.Method == mcpmsg.Initialize) == c.serves() && (m.Method == mcpmsg.Initialize || m.Method == mcpmsg.Discover):
			refuse(`{"code":-32601,"message":"no such method"}`)
		case m.Method == mcpmsg.Initialize && (c.cross || !numbered), m.Method == mcpmsg.Discover && c.cross:
			answer(cmp.Or(c.hello, handshakes[m.Method]))
		case !numbered:
			answer(testTools)
		case c.row.Part == mcpmsg.Result:
			answer(c.bodies[n])
		case c.row.Part == mcpmsg.Error:
			refuse(c.bodies[n])
		case request && c.cross && c.serves() && !m.Params.Get("inputResponses").Exists():
			answer(fmt.Sprintf(`{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":%q,"params":%s}}}`, c.row.Method, c.bodies[n]))
		default:
			if !request || !c.cross || !c.serves() {
				id := wire.ID{}
				if request {
					id = wire.StringID(fmt.Sprint("ask", n))
				}
				out := wire.NewRequest(id, c.row.Method, c.withToken(c.bodies[n], m))
				out.Related = m.ID
				conn.Write(ctx, out)
			}
			answer(`{"resultType":"complete","content":[]}`)
		}
	}
}

// handshakes are how a server of each era says hello.
var handshakes = map[string]string{
	mcpmsg.Initialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}`,
	mcpmsg.Discover:   `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`,
}

// withToken puts into body the token by which the request wants to hear of progress.
func (c *course) withToken(body string, m *wire.Message) []byte {
	if token := m.Params.Get("_meta").Get("progressToken"); token.Exists() {
		for _, escaped := range []bool{false, true} {
			s := specimen{escaped: escaped}
			body = strings.Replace(body, s.quote("clean progressToken"), string(token.Raw()), 1)
		}
	}
	return []byte(body)
}

func (c *course) write(out *wire.Message) {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.t.Context(), time.Minute)
	defer stop()
	if err := c.client.Write(ctx, out); err != nil {
		c.t.Errorf("write: %v", err)
	}
}

// ask sends a request of the client; it belongs to the era by its _meta.
func (c *course) ask(id int, method, params string) {
	c.t.Helper()
	if method != mcpmsg.Initialize {
		own := ""
		if c.modern {
			own = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/logLevel":"debug",` +
				`"io.modelcontextprotocol/clientCapabilities":{"sampling":{},"elicitation":{}},`
		}
		params = strings.TrimSuffix(params, "}") + fmt.Sprintf(`,"_meta":{%s"progressToken":"token %d"}}`, own, id)
	}
	m := wire.NewRequest(wire.IntID(int64(id)), method, []byte(params))
	if err := m.Parse(); err != nil {
		c.t.Error(err)
		return
	}
	m.Route = cloneRoute(mcpmsg.RouteOf(method, m.Params, nil))
	c.write(m)
}

func (c *course) read() *wire.Message {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.t.Context(), time.Minute)
	defer stop()
	m, err := c.client.Read(ctx)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return m
}

// say has the server say each of bodies as the row's part, and returns every
// message that reached the client.
func (c *course) say(row mcpmsg.Row, bodies []string) (lines []string) {
	c.t.Helper()
	c.row, c.bodies = row, bodies
	method, params := row.Method, `{"name":"read","uri":"file:x","n":%d}`
	if row.Part == mcpmsg.Params {
		method = mcpmsg.CallTool
	}
	for i := range bodies {
		c.ask(i+1, method, fmt.Sprintf(params, i))
	}
	for left := len(bodies); left > 0; {
		m := c.read()
		lines = append(lines, string(m.Append(nil)))
		switch m.Kind {
		case wire.Response, wire.ErrorResponse:
			left--
		case wire.Request:
			c.write(wire.NewResult(m.ID, []byte(`{}`)))
		}
	}
	return lines
}
