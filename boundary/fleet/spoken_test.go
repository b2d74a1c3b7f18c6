// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/era"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// An eraServer is an HTTP server that answers server/discover as a test wants, and keeps which
// of server/discover and initialize it was asked.
type eraServer struct {
	*httptest.Server
	mu    sync.Mutex
	probe http.HandlerFunc // answers server/discover; nil: next does
	next  http.Handler
	asked []string
}

func newEraServer(t *testing.T, probe http.HandlerFunc, next http.Handler) *eraServer {
	s := &eraServer{probe: probe, next: next}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// becomes makes it another server.
func (s *eraServer) becomes(probe http.HandlerFunc, next http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probe, s.next = probe, next
}

// heard is what it was asked since the last call.
func (s *eraServer) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.asked
	s.asked = nil
	return list
}

func (s *eraServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(b))
	var m struct{ Method string }
	_ = json.Unmarshal(b, &m)
	s.mu.Lock()
	if m.Method == mcpmsg.Discover || m.Method == mcpmsg.Initialize {
		s.asked = append(s.asked, m.Method)
	}
	probe, next := s.probe, s.next
	s.mu.Unlock()
	if m.Method == mcpmsg.Discover && probe != nil {
		probe(w, r)
		return
	}
	next.ServeHTTP(w, r)
}

func offered(*http.Request) *mcp.Server { return toolServer("s", "who") }

func legacyHTTP() http.Handler { return mcp.NewStreamableHTTPHandler(offered, nil) }

func modernHTTP() http.Handler {
	return mcp.NewStreamableHTTPHandler(offered, &mcp.StreamableHTTPOptions{Stateless: true})
}

// oldHTTP is a server of the old transport, which answers code to a POST of streamable HTTP.
func oldHTTP(code int) http.Handler {
	old := mcp.NewSSEHandler(offered, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Query().Get("sessionid") == "" {
			http.Error(w, "no", code)
			return
		}
		old.ServeHTTP(w, r)
	})
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

// rpcError answers with an error of JSON-RPC; id is JSON, and "" that of the request.
func rpcError(httpStatus, code int, id string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		is := json.RawMessage(id)
		if id == "" {
			var m struct{ ID json.RawMessage }
			_ = json.NewDecoder(r.Body).Decode(&m)
			is = m.ID
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(httpStatus)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"Bad Request: Missing session ID"}}`, is, code)
	}
}

// abort ends the connection without an answer.
func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// askModern is a session of a client of the modern era that asks for the tools. It reports
// whether it got them.
func askModern(t *testing.T, dial Dialer) bool {
	t.Helper()
	up, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	conn := wire.Pull(era.Upstream(up, era.Options{Patience: patience}))
	defer conn.Close()
	out := wire.NewRequest(wire.IntID(7), mcpmsg.ListTools, fmt.Appendf(nil, `{"_meta":{"%s":"%s","%s":{}}}`,
		mcpmsg.KeyVersion, mcpmsg.Modern, mcpmsg.KeyClientCaps))
	out.Route.Version = mcpmsg.Modern
	if err := out.Parse(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(ctx, out); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := conn.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if m.ID == wire.IntID(7) {
			return m.Kind == wire.Response
		}
	}
}

func autoDialer(t *testing.T, url string) Dialer {
	t.Helper()
	dial, err := URL(wire.AutoTransport, url, wire.HTTPOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dial
}

// What a server is asked by which its era is found out.
var (
	askedBoth  = []string{mcpmsg.Discover, mcpmsg.Initialize}
	askedTwice = []string{mcpmsg.Discover, mcpmsg.Initialize, mcpmsg.Initialize} // by two transports
	askedOnce  = []string{mcpmsg.Initialize}
)

// TestEraOfServer: what a server speaks is found out in the first session. A server of the
// legacy era is not asked for the modern one in the second, unless it had only failed to
// answer.
func TestEraOfServer(t *testing.T) {
	for name, tt := range map[string]struct {
		probe         http.HandlerFunc
		next          http.Handler
		first, second []string
	}{
		"400, JSON-RPC of another id": {rpcError(400, -32600, `"server-error"`), legacyHTTP(), askedBoth, askedOnce},
		"400, JSON-RPC without id":    {rpcError(400, -32000, "null"), legacyHTTP(), askedBoth, askedOnce},
		"200, no such method":         {rpcError(200, -32601, ""), legacyHTTP(), askedBoth, askedOnce},
		"400, text":                   {status(400), legacyHTTP(), askedBoth, askedOnce},
		"404":                         {status(404), legacyHTTP(), askedBoth, askedOnce},
		"405":                         {status(405), legacyHTTP(), askedBoth, askedOnce},
		"415":                         {status(415), legacyHTTP(), askedBoth, askedOnce},
		"401":                         {status(401), legacyHTTP(), askedBoth, askedBoth},
		"408":                         {status(408), legacyHTTP(), askedBoth, askedBoth},
		"429":                         {status(429), legacyHTTP(), askedBoth, askedBoth},
		"429, JSON-RPC":               {rpcError(429, -32000, "null"), legacyHTTP(), askedBoth, askedBoth},
		"500":                         {status(500), legacyHTTP(), askedBoth, askedBoth},
		"503, JSON-RPC":               {rpcError(503, -32000, "null"), legacyHTTP(), askedBoth, askedBoth},
		"200, internal error":         {rpcError(200, -32603, ""), legacyHTTP(), askedBoth, askedBoth},
		"200, of another id":          {rpcError(200, -32601, "99"), legacyHTTP(), askedBoth, askedBoth},
		"no answer":                   {abort, legacyHTTP(), askedBoth, askedBoth},
		"old transport, 400":          {nil, oldHTTP(400), askedTwice, askedOnce},
		"old transport, 404":          {nil, oldHTTP(404), askedTwice, askedOnce},
		"old transport, 405":          {nil, oldHTTP(405), askedTwice, askedOnce},
		"modern":                      {nil, modernHTTP(), askedBoth[:1], askedBoth[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEraServer(t, tt.probe, tt.next)
			dial := autoDialer(t, s.URL)
			for i, want := range [][]string{tt.first, tt.second, tt.second} {
				if !askModern(t, dial) {
					t.Errorf("session %d: no tools", i+1)
				}
				if d := cmp.Diff(want, s.heard()); d != "" {
					t.Errorf("session %d (-want +got): %s", i+1, d)
				}
			}
		})
	}
}

// TestEraOfServerAgain: a server that answers otherwise than before is asked anew. Of one that
// is only away for a while, nothing is forgotten.
func TestEraOfServerAgain(t *testing.T) {
	refusing := rpcError(400, -32600, `"server-error"`)
	s := newEraServer(t, refusing, legacyHTTP())
	dial := autoDialer(t, s.URL)
	session := func(step string, works bool, asked []string) {
		t.Helper()
		if got := askModern(t, dial); got != works {
			t.Errorf("%s: tools %v, want %v", step, got, works)
		}
		if d := cmp.Diff(asked, s.heard()); d != "" {
			t.Errorf("%s (-want +got): %s", step, d)
		}
	}
	session("legacy", true, askedBoth)
	s.becomes(refusing, status(503))
	session("away", false, askedOnce)
	s.becomes(refusing, status(429))
	session("busy", false, askedOnce)
	s.becomes(refusing, legacyHTTP())
	session("back", true, askedOnce)
	s.becomes(nil, onlyModern())
	session("modern now, first", false, askedOnce)
	session("modern now", true, askedBoth[:1])
	s.becomes(refusing, legacyHTTP())
	session("legacy again", true, askedBoth)
	s.becomes(nil, oldHTTP(405))
	session("old transport now", true, askedTwice[1:])
	s.becomes(refusing, legacyHTTP())
	session("left the old transport, first", false, nil) // it refuses the stream
	session("left the old transport", true, askedBoth)
}

// onlyModern refuses initialize.
func onlyModern() http.Handler {
	modern := modernHTTP()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("MCP-Protocol-Version") != mcpmsg.Modern {
			rpcError(http.StatusBadRequest, wire.CodeUnsupportedVersion, "")(w, r)
			return
		}
		modern.ServeHTTP(w, r)
	})
}

// TestEraKnownFor: a server is asked again for the modern era after a time.
func TestEraKnownFor(t *testing.T) {
	s, now := new(spoken), time.Now()
	if s.isLegacy(now) {
		t.Error("legacy without having been asked")
	}
	s.initialized(false, false, now)
	if s.isLegacy(now) {
		t.Error("legacy without having refused the modern era")
	}
	s.initialized(true, true, now)
	s.initialized(true, false, now.Add(legacyFor/2)) // says nothing of the modern era
	if !s.isLegacy(now.Add(legacyFor-1)) || s.isLegacy(now.Add(legacyFor)) || !s.isOld() {
		t.Error("the era is not known as long as it should be")
	}
	s.forget()
	if s.isLegacy(now) || s.isOld() {
		t.Error("not forgotten")
	}
}

// TestEraInFleet: sessions of a fleet share what is known of a server, at once and after its
// configuration was put in force again; another Identity is another server.
func TestEraInFleet(t *testing.T) {
	s := newEraServer(t, rpcError(400, -32600, `"server-error"`), legacyHTTP())
	server := func(identity string) Server {
		return Server{Name: "s", Identity: identity, Dial: autoDialer(t, s.URL), Config: config("s")}
	}
	modern := func(_ string, c wire.Conn, _ wire.Era) wire.Conn {
		return era.Upstream(c, era.Options{Patience: patience})
	}
	f := fleetOf(t, Options{Translate: modern}, server("1"))
	ask := func(want []string) {
		t.Helper()
		if got := call(t, connect(t, nil, one(f, "s")), "who", "x"); got != "s/who/x" {
			t.Errorf("%q", got)
		}
		if d := cmp.Diff(want, s.heard()); d != "" {
			t.Errorf("(-want +got): %s", d)
		}
	}
	ask(askedBoth)
	ask(askedOnce)
	if err := f.Set([]Server{server("1")}); err != nil {
		t.Fatal(err)
	}
	ask(askedOnce)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 4 {
				askModern(t, f.get("s").Dial)
			}
		})
	}
	all.Wait()
	for _, method := range s.heard() {
		if method != mcpmsg.Initialize {
			t.Errorf("%s of a server that is known", method)
		}
	}
	if err := f.Set([]Server{server("2")}); err != nil {
		t.Fatal(err)
	}
	ask(askedBoth)
}
