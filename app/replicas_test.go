// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
)

var postgres pgtest.Server

func TestMain(m *testing.M) {
	code := m.Run()
	postgres.Stop()
	os.Exit(code)
}

// freeAddress is an address of loopback at which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

const sharedKey = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

// startReplica starts a gateway on a store that others use too.
func startReplica(t testing.TB, database, more, key string) *apptest.Gateway {
	t.Helper()
	t.Setenv("REPLICA_KEY", key)
	t.Setenv(local.KeyVar, "env:REPLICA_KEY")
	config := "version: 1\nstore: env:DB\nreplicas: {name: env:NAME, address: env:ADDRESS}\n" + more
	return apptest.Start(t, config, map[string]string{"DB": database, "NAME": fmt.Sprintf("r%d", named.Add(1)), "ADDRESS": freeAddress(t)})
}

var named atomic.Int64 // replicas

// readiness is what /readyz says.
type readiness struct {
	Status           string
	Checks, Warnings map[string]string
}

func readyz(t *testing.T, g *apptest.Gateway) (r readiness) {
	t.Helper()
	resp, err := http.Get(g.Base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func metric(t testing.TB, g *apptest.Gateway, name string) string {
	t.Helper()
	resp, err := http.Get(g.Base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestReplicasSee: replicas count each other, and one that has left is not counted. The id of a session begins with the
// name of the replica where it began, wherever its requests arrive.
func TestReplicasSee(t *testing.T) {
	database := postgres.Database(t)
	config := "evidence: {mode: \"off\"}\nservers: {one: {url: " + apptest.Upstream(t, "one", nil) + "}}\n"
	a, b := startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)
	for _, g := range []*apptest.Gateway{a, b} {
		g.Eventually("two replicas", func() bool { return metric(t, g, "pellucid_replicas") == "2" })
		if r := readyz(t, g); r.Status != "ok" || len(r.Warnings) != 0 || r.Checks["replica"] != "ok" {
			t.Errorf("%+v", r)
		}
		session := beginLegacy(t, g.Base+"/mcp/one")
		if !strings.HasPrefix(session, g.App.Replica()+".") {
			t.Errorf("a session of %s: %.20q", g.App.Replica(), session)
		}
		sayRaw(t, b, session, "tools/call", echoHello)
	}
	if got := metric(t, b, `pellucid_forwards_total{outcome="forwarded"}`); got != "1" {
		t.Errorf("%s requests were passed on", got)
	}
	b.Stop()
	err := <-b.Done
	b.Done <- err
	a.Eventually("the other replica has left", func() bool { return metric(t, a, "pellucid_replicas") == "1" })
}

// TestReplicasOneName: a replica with the name of one that runs does not start, and one that follows it does.
func TestReplicasOneName(t *testing.T) {
	config := "evidence: {mode: \"off\"}\nservers: {one: {url: " + apptest.Upstream(t, "one", nil) + "}}\n"
	database := postgres.Database(t)
	first := startReplica(t, database, config, sharedKey)
	t.Setenv("DB", database)
	again := "version: 1\nstore: env:DB\nreplicas: {name: " + first.App.Replica() + ", address: " + freeAddress(t) + "}\n" + config
	if err := openRefused(t, again); err == nil || !strings.Contains(err.Error(), "give each a name of its own") {
		t.Errorf("a second replica of one name: %v", err)
	}
	first.Stop()
	err := <-first.Done
	first.Done <- err
	if err := openRefused(t, again); err != nil {
		t.Errorf("after the end of the first: %v", err)
	}
}

// unkept has a connection for each request: none of them is closed by a replica that ends while the next
// request is on its way.
var unkept = &http.Transport{DisableKeepAlives: true}

// balancer sends each request to the next replica, whatever session it names, as a load balancer without
// stickiness does. Where a replica takes no connection, it goes to the next one.
type balancer struct {
	mu   sync.Mutex
	to   []string
	next int
}

func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	to := slices.Concat(b.to[b.next%len(b.to):], b.to[:b.next%len(b.to)])
	b.next++
	b.mu.Unlock()
	var body []byte
	var err error
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
	}
	if err != nil {
		return nil, err
	}
	for _, base := range to {
		if r.Body != nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		u, _ := url.Parse(base)
		r.URL.Host = u.Host
		var resp *http.Response
		resp, err = unkept.RoundTrip(r)
		if op, is := errors.AsType[*net.OpError](err); !is || op.Op != "dial" {
			return resp, err
		}
	}
	return nil, err
}

// balance returns the URL of a balancer in front of replicas.
func balance(t *testing.T, replicas ...*apptest.Gateway) string {
	t.Helper()
	b := &balancer{}
	for _, g := range replicas {
		b.to = append(b.to, g.Base)
	}
	srv := httptest.NewServer(&httputil.ReverseProxy{Transport: b, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1"})
			r.Out.Host = "127.0.0.1"
		}})
	t.Cleanup(srv.Close)
	return srv.URL
}

// interactive is a server of the SDK's whose tools report progress, ask the user, log, and wait.
func interactive(t *testing.T) (base string, cancelled chan struct{}) {
	t.Helper()
	cancelled = make(chan struct{}, 16)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "interactive", Version: "1"}, nil)
		type in struct {
			Text string `json:"text,omitempty"`
		}
		text := func(s string) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
		}
		mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Repeats."}, func(_ context.Context, _ *mcp.CallToolRequest, v in) (*mcp.CallToolResult, any, error) {
			return text(v.Text), nil, nil
		})
		mcp.AddTool(s, &mcp.Tool{Name: "progress", Description: "Reports progress."}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
			for i := range 5 {
				if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}); err != nil {
					return nil, nil, err
				}
			}
			return text("done"), nil, nil
		})
		mcp.AddTool(s, &mcp.Tool{Name: "ask", Description: "Asks the user."}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
			e, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}})
			if err != nil {
				return nil, nil, err
			}
			return text(fmt.Sprint(e.Content["name"])), nil, nil
		})
		mcp.AddTool(s, &mcp.Tool{Name: "wait", Description: "Waits."}, func(ctx context.Context, _ *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
			<-ctx.Done()
			cancelled <- struct{}{}
			return nil, nil, ctx.Err()
		})
		return s
	}, nil)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL, cancelled
}

// person answers questions, and counts what else a client hears.
type person struct{ progress, questions atomic.Int64 }

func (p *person) connect(t *testing.T, base, token, version string) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { p.progress.Add(1) },
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			p.questions.Add(1)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
	})
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: base, HTTPClient: &http.Client{Transport: apptest.Bearer(token)}, MaxRetries: 10},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func use(ctx context.Context, s *mcp.ClientSession, tool string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": "hello"}}
	p.SetProgressToken("token")
	r, err := s.CallTool(ctx, p)
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
}

// TestReplicasAnyRequest: every request of a session may come to any replica: calls, progress, questions of
// the server, cancellation and the end.
func TestReplicasAnyRequest(t *testing.T) {
	server, cancelled := interactive(t)
	database := postgres.Database(t)
	var all []*apptest.Gateway
	for range 3 {
		all = append(all, startReplica(t, database, "evidence: {mode: \"off\"}\nservers: {one: {url: "+server+"}}\n", sharedKey))
	}
	base := balance(t, all...) + "/mcp/one"
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			p := &person{}
			s := p.connect(t, base, "", version)
			for range 10 {
				if got, err := use(t.Context(), s, "echo"); err != nil || !strings.Contains(got, "hello") {
					t.Fatalf("%q, %v", got, err)
				}
			}
			if got, err := use(t.Context(), s, "progress"); err != nil || !strings.Contains(got, "done") {
				t.Errorf("%q, %v", got, err)
			}
			if version >= "2025-06-18" {
				for i := range 4 { // from every replica
					if got, err := use(t.Context(), s, "ask"); err != nil || !strings.Contains(got, "Ada") || p.questions.Load() != int64(i)+1 {
						t.Errorf("%q, %v, %d questions", got, err, p.questions.Load())
					}
				}
			}
			ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if _, err := use(ctx, s, "wait"); err == nil {
				t.Error("a call that was cancelled has an answer")
			}
			stop()
			select {
			case <-cancelled:
			case <-time.After(20 * time.Second):
				t.Error("the server does not hear of the cancellation")
			}
			all[0].Eventually("progress", func() bool { return p.progress.Load() == 5 })
			if err := s.Close(); err != nil {
				t.Errorf("the end: %v", err)
			}
		})
	}
	forwarded := 0
	for _, g := range all {
		n, _ := strconv.Atoi(metric(t, g, `pellucid_forwards_total{outcome="forwarded"}`))
		forwarded += n
	}
	if forwarded < 30 {
		t.Errorf("%d requests were forwarded", forwarded)
	}
}

// TestReplicasPooler: replicas behind pgbouncer in transaction mode serve any request, take sessions over, sign the log, and
// see each other's changes, although no notification arrives.
func TestReplicasPooler(t *testing.T) {
	server, _ := interactive(t)
	database := postgres.Database(t)
	config := "http: {rate: 0, drain: 1s}\nevidence: {mode: required}\nservers: {one: {url: " + server + "}}\n"
	a := startReplica(t, database, config, sharedKey) // makes the tables, which needs a connection of its own
	a.Stop()
	err := <-a.Done
	a.Done <- err
	pooled := postgres.Pooler(t, database)
	a, b := startReplica(t, pooled, config, sharedKey), startReplica(t, pooled, config, sharedKey)
	for _, g := range []*apptest.Gateway{a, b} {
		g.Eventually("it has found out that notifications do not arrive", func() bool { return strings.Contains(g.Log.String(), "the database does not tell of changes") })
		g.Eventually("two replicas", func() bool { return metric(t, g, "pellucid_replicas") == "2" && len(readyz(t, g).Warnings) == 0 })
	}
	var sessions []*mcp.ClientSession
	base := balance(t, a, b) + "/mcp/one"
	for range 4 {
		sessions = append(sessions, new(person).connect(t, base, "", "2025-11-25"))
	}
	if answered, bad := callersFor(t, sessions, 2*time.Second); answered < 20 || len(bad) > 0 {
		t.Errorf("%d calls answered, errors %q", answered, bad)
	}
	a.Stop()
	err = <-a.Done
	a.Done <- err
	if answered, bad := callersFor(t, sessions, 2*time.Second); answered < 20 || len(bad) > 0 {
		t.Errorf("after the end of a replica: %d calls answered, errors %q", answered, bad)
	}
	b.Eventually("the log has everything", func() bool { return metric(t, b, "pellucid_ledger_pending") == "0" })
	if strings.Contains(b.Log.String(), "level=ERROR") {
		t.Errorf("%s", b.Log)
	}
	for _, s := range sessions {
		if err := s.Close(); err != nil {
			t.Errorf("a session has ended: %v", err)
		}
	}
}

// TestReplicasStop: replicas end one after the other and begin again, as in a rolling upgrade. No session
// ends, and no call fails.
func TestReplicasStop(t *testing.T) {
	server, _ := interactive(t)
	database := postgres.Database(t)
	config := "http: {rate: 0}\nevidence: {mode: \"off\"}\nservers: {one: {url: " + server + "}}\n"
	var all []*apptest.Gateway
	for range 3 {
		all = append(all, startReplica(t, database, config, sharedKey))
	}
	b := &balancer{}
	for _, g := range all {
		b.to = append(b.to, g.Base)
	}
	srv := httptest.NewServer(&httputil.ReverseProxy{Transport: b, FlushInterval: -1, ErrorLog: log.New(t.Output(), "balancer: ", log.Lmicroseconds),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1"})
			r.Out.Host = "127.0.0.1"
		}})
	defer srv.Close()
	var sessions []*mcp.ClientSession
	for range 4 {
		sessions = append(sessions, new(person).connect(t, srv.URL+"/mcp/one", "", "2025-11-25"))
	}
	ctx, stop := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	var done, failed atomic.Int64
	for _, s := range sessions {
		calling.Go(func() {
			for ctx.Err() == nil {
				if _, err := use(t.Context(), s, "echo"); err != nil {
					failed.Add(1)
					t.Logf("call: %v", err)
				}
				done.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	for i, g := range all {
		time.Sleep(500 * time.Millisecond)
		g.Stop()
		err := <-g.Done
		g.Done <- err
		next := startReplica(t, database, config, sharedKey)
		b.mu.Lock()
		b.to[i] = next.Base
		b.mu.Unlock()
	}
	time.Sleep(500 * time.Millisecond)
	stop()
	calling.Wait()
	if failed.Load() > 0 || done.Load() < 50 {
		t.Errorf("%d of %d calls failed", failed.Load(), done.Load())
	}
	for _, s := range sessions {
		if err := s.Close(); err != nil {
			t.Errorf("a session has ended: %v", err)
		}
	}
}

// rawServer is a legacy server with as little of its own as possible: its tool echo repeats a text, and ask
// asks the user, on the stream of the call.
func rawServer(t testing.TB) string {
	t.Helper()
	answers := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Params struct {
				Name      string
				Arguments struct{ Text string }
			}
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.Method == "" && m.Result != nil {
			answers <- string(m.Result)
		}
		result := ""
		switch {
		case m.ID == nil || m.Method == "":
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "raw")
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}}]}`
		case m.Method == "tools/call" && m.Params.Name == "ask":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\",\"params\":{\"message\":\"who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}\n\n")
			http.NewResponseController(w).Flush()
			said := ""
			select {
			case said = <-answers:
			case <-r.Context().Done():
				return
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"asked: %d\"}]}}\n\n", m.ID, len(said))
			return
		case m.Method == "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, m.Params.Arguments.Text)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestReplicasRetry: a modern client that a legacy server has asked something may send its retry to any
// replica. Once the replica that has asked is gone, the client gets an error.
func TestReplicasRetry(t *testing.T) {
	database := postgres.Database(t)
	config := "evidence: {mode: \"off\"}\nservers: {one: {url: " + rawServer(t) + "}}\n"
	a, b := startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)
	b.Eventually("two replicas", func() bool { return metric(t, b, "pellucid_replicas") == "2" })
	asked := func() string {
		t.Helper()
		var first struct {
			Result struct{ ResultType, RequestState string }
		}
		answer := callAsk(t, a, "")
		if json.Unmarshal([]byte(answer), &first) != nil || first.Result.ResultType != "input_required" {
			t.Fatalf("not asked: %s\n%s", answer, a.Log)
		}
		return fmt.Sprintf(`"requestState":%q,"inputResponses":{"ask-1":{"action":"accept","content":{}}},`, first.Result.RequestState)
	}
	if got := callAsk(t, b, asked()); !strings.Contains(got, "asked: ") {
		t.Errorf("at another replica: %s\n%s", got, b.Log)
	}
	retry := asked()
	a.Stop()
	err := <-a.Done
	a.Done <- err
	if got := callAsk(t, b, retry); !strings.Contains(got, `"error"`) {
		t.Errorf("after its end: %s", got)
	}
}
