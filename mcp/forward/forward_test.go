// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/platform/replica"
)

// database is what replicas share, in memory.
type database struct {
	mu       sync.Mutex
	rows     map[string]replica.Row
	sessions map[string]session.Record
	asked    int // for owners
	away     bool
}

var errAway = errors.New("away")

func (d *database) BeatReplica(_ context.Context, row replica.Row, _ bool) (out []replica.Row, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, there := d.rows[row.ID]; d.away {
		return nil, errAway
	} else if !there && row.Beat != 1 {
		return nil, replica.ErrRemoved
	}
	d.rows[row.ID] = row
	for _, r := range d.rows {
		out = append(out, r)
	}
	return out, nil
}

func (d *database) RemoveReplica(_ context.Context, id string, beat int64) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, there := d.rows[id]
	if there = there && (beat == replica.Any || r.Beat == beat); there {
		delete(d.rows, id)
	}
	return there, nil
}

func (d *database) Session(_ context.Context, id string) (session.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.sessions[id]
	if !ok {
		return r, session.ErrNotFound
	}
	return r, nil
}

func (d *database) SessionOwner(_ context.Context, id string) (string, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	r := d.sessions[id]
	switch {
	case d.away:
		return "", 0, errAway
	case r.Ended:
		return "", r.Fence, session.ErrEnded
	}
	return r.Owner, r.Fence, nil
}

func (d *database) ClaimSession(_ context.Context, r session.Record, owner string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.sessions[r.ID]
	switch {
	case d.away:
		return false, errAway
	case now.Ended:
		return false, session.ErrEnded
	case now.Fence != r.Fence:
		return false, nil
	}
	now.ID, now.Owner, now.Fence = r.ID, owner, r.Fence+1
	d.sessions[r.ID] = now
	return true, nil
}

func (d *database) KeepSession(context.Context, session.Record) error   { return nil }
func (d *database) SweepSessions(context.Context, time.Time, int) error { return nil }
func (d *database) EndSession(_ context.Context, r session.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[r.ID] = session.Record{Ended: true}
	return nil
}

func (d *database) set(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

func (d *database) questions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

func (d *database) owner(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[id].Owner
}

// node is a replica whose Front is the function serve.
type node struct {
	*Forwarder
	t      *testing.T
	member *replica.Member
	front  *httptest.Server // for clients
	peers  *http.Server     // for replicas
	out    *http.Transport  // to replicas
	end    context.CancelFunc
	served atomic.Int64
	drops  atomic.Int64
	owes   atomic.Bool
	serve  func(w http.ResponseWriter, r *http.Request, body []byte)
}

// cluster is several nodes on one database.
type cluster struct {
	t      *testing.T
	db     *database
	tokens *session.Tokens
	nodes  []*node
}

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	key, err := keyring.NewKey(bytes.Repeat([]byte{7}, keyring.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.New(key)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, tokens: session.NewTokens(ring, 0), db: &database{rows: map[string]replica.Row{}, sessions: map[string]session.Record{}}}
	for range n {
		c.add("7")
	}
	for _, x := range c.nodes {
		for len(x.member.Others()) < n-1 {
			x.member.Wake()
			time.Sleep(5 * time.Millisecond)
		}
	}
	return c
}

// add starts a node with a key of the installation.
func (c *cluster) add(key string) *node {
	t := c.t
	keys, err := peer.NewKeys(bytes.Repeat([]byte(key), 32))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &node{t: t, serve: func(w http.ResponseWriter, r *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("Test-Principal"), body)
	}}
	x.member, err = replica.Join(t.Context(), replica.Options{Store: c.db, Address: l.Addr().String(), Key: keys.ID(),
		Changed: func() {
			if x.Forwarder != nil {
				x.Changed()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	x.out = keys.Transport(func(string) string { return keys.ID() })
	x.Forwarder = New(Options{Member: x.member, Store: c.db, Open: c.tokens.Open, Out: x.out, MaxBody: 1 << 20,
		Caller: func(r *http.Request) string { return r.Header.Get("Test-Principal") }, Erasable: func(p string) string { return p },
		Drop: func(string) { x.drops.Add(1) }, wait: 8 * time.Second, trust: time.Hour})
	ctx, end := context.WithCancel(t.Context())
	x.end = end
	go x.member.Run(ctx)
	x.front = httptest.NewServer(http.HandlerFunc(x.handle))
	h := x.Handler(func(r *http.Request, caller string) (*http.Request, bool) {
		r.Header.Set("Test-Principal", caller)
		return r, true
	}, http.HandlerFunc(x.handle))
	x.peers = &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go x.peers.Serve(keys.Listen(l))
	t.Cleanup(func() {
		x.kill()
		x.Close()
		x.out.CloseIdleConnections()
	})
	c.nodes = append(c.nodes, x)
	return x
}

// handle stands for a Front: it asks the Forwarder first.
func (x *node) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	switch x.Forward(w, r, wire.Forwardable{Session: id, Principal: r.Header.Get("Test-Principal"), State: r.Header.Get("Test-State"), Body: body,
		Begins: bytes.Contains(body, []byte(`"initialize"`)), Drop: func() { x.drops.Add(1) }, Owes: x.owes.Load}) {
	case wire.Unreachable:
		http.Error(w, "unreachable", http.StatusServiceUnavailable)
	case wire.Unanswered:
		http.Error(w, "unanswered", http.StatusBadGateway)
	case wire.Here:
		x.served.Add(1)
		x.serve(w, r, body)
	}
}

// kill ends the node as kill -9 does: nothing says good bye, and nothing listens.
func (x *node) kill() {
	x.end()
	x.peers.Close()
	x.front.CloseClientConnections()
	x.front.Close()
}

// kill kills a node, and closes the idle connections of the others to it. A request on one of these would be
// answered with 502, because it may have arrived.
func (c *cluster) kill(x *node) {
	x.kill()
	for _, other := range c.nodes {
		other.out.CloseIdleConnections()
	}
}

const alice = "alice"

// begin begins a session at a node.
func (c *cluster) begin(x *node) (token string, s *session.Session) {
	c.t.Helper()
	s = c.tokens.New("one", alice)
	s.Params = []byte("{}")
	token, ok, err := c.tokens.Seal(s)
	if err != nil || !ok {
		c.t.Fatal(err)
	}
	if claimed, err := Claim(c.t.Context(), c.db, s, alice, 0, x.member.ID()); err != nil || !claimed {
		c.t.Fatalf("claim: %v, %v", claimed, err)
	}
	x.Begun(s, x.member.ID(), 1)
	return token, s
}

const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`
const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// ask sends a request of alice to a node.
func (c *cluster) ask(x *node, method, token, body string, header ...string) (status int, answer string) {
	c.t.Helper()
	resp := c.open(c.t.Context(), x, method, token, body, header...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

func (c *cluster) open(ctx context.Context, x *node, method, token, body string, header ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, x.front.URL+"/mcp/one", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Test-Principal", alice)
	if token != "" {
		r.Header.Set("Mcp-Session-Id", token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// TestForward: a request is served by the owner of its session, whichever replica it arrives at, and the
// store is asked once for each session and replica while its answer is trusted.
func TestForward(t *testing.T) {
	c := newCluster(t, 3)
	token, _ := c.begin(c.nodes[0])
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		body := ""
		if method == http.MethodPost {
			body = call
		}
		for range 5 {
			for i, x := range c.nodes {
				if status, got := c.ask(x, method, token, body); status != 200 || got != strings.TrimSpace(method+" alice "+body) {
					t.Fatalf("%s at replica %d: %d, %q", method, i, status, got)
				}
			}
		}
	}
	if n := c.nodes[0].served.Load(); n != 45 || c.nodes[1].served.Load()+c.nodes[2].served.Load() != 0 {
		t.Errorf("the owner has served %d of 45", n)
	}
	if n := c.db.questions(); n != 2 {
		t.Errorf("the store was asked %d times", n)
	}
	// A token that cannot be opened, or is of another principal, is for the Front to refuse.
	for _, token := range []string{"x", token} {
		if status, _ := c.ask(c.nodes[1], http.MethodPost, token, call, "Test-Principal", "mallory"); status != 200 || c.nodes[1].served.Load() == 0 {
			t.Errorf("%d", status)
		}
		c.nodes[1].served.Store(0)
	}
}

// TestHeaders: credentials, cookies and Idempotency-Key do not go to another replica, and what a client
// says of replicas has no effect.
func TestHeaders(t *testing.T) {
	c := newCluster(t, 2)
	token, s := c.begin(c.nodes[0])
	var got http.Header
	c.nodes[0].serve = func(w http.ResponseWriter, r *http.Request, _ []byte) { got = r.Header.Clone() }
	status, _ := c.ask(c.nodes[1], http.MethodPost, token, call, "Authorization", "Bearer x", "Cookie", "a=b", "Idempotency-Key", "1", "X-Idempotency-Key", "1",
		"Mcp-Param-Region", "eu", "Pellucid-Replica", "0000000000000000", "Pellucid-Principal", "bWFsbG9yeQ", "Pellucid-Take", "1", "X-Forwarded-For", "1.2.3.4")
	if status != 200 || got.Get("Test-Principal") != alice || got.Get("Mcp-Param-Region") != "eu" {
		t.Errorf("%d, %v", status, got)
	}
	for _, name := range []string{"Authorization", "Cookie", "Idempotency-Key", "X-Idempotency-Key", "Pellucid-Replica", "Pellucid-Principal", "Pellucid-Take", "X-Forwarded-For"} {
		if got.Get(name) != "" {
			t.Errorf("%s came through", name)
		}
	}
	if c.db.owner(s.ID()) != c.nodes[0].member.ID() {
		t.Error("a header of a client has moved the session")
	}
}

// TestKilled: the owner is gone without a word. Another replica claims the session at once, and a third
// finds it there.
func TestKilled(t *testing.T) {
	c := newCluster(t, 3)
	token, s := c.begin(c.nodes[0])
	for _, x := range c.nodes {
		c.ask(x, http.MethodPost, token, call)
	}
	c.kill(c.nodes[0])
	began := time.Now()
	for _, x := range slices.Concat(c.nodes[1:], c.nodes[1:]) {
		if status, got := c.ask(x, http.MethodPost, token, call); status != 200 {
			t.Errorf("%d, %q", status, got)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if now := c.db.owner(s.ID()); now != c.nodes[1].member.ID() || c.nodes[1].served.Load() != 4 {
		t.Errorf("%s has it, and has served %d", now, c.nodes[1].served.Load())
	}
}

// TestClaimRace: several replicas find that a session has no owner, at the same time. One of them gets it.
func TestClaimRace(t *testing.T) {
	c := newCluster(t, 3)
	for range 20 {
		s := c.tokens.New("one", alice)
		s.Params = []byte("{}")
		token, _, err := c.tokens.Seal(s)
		if err != nil {
			t.Fatal(err)
		}
		before := c.nodes[0].served.Load() + c.nodes[1].served.Load() + c.nodes[2].served.Load()
		var all sync.WaitGroup
		for _, x := range c.nodes {
			all.Go(func() {
				if status, got := c.ask(x, http.MethodPost, token, call); status != 200 {
					t.Errorf("%d, %q", status, got)
				}
			})
		}
		all.Wait()
		if n := c.nodes[0].served.Load() + c.nodes[1].served.Load() + c.nodes[2].served.Load(); n != before+3 {
			t.Errorf("served %d times", n-before)
		}
		if r, err := c.db.Session(t.Context(), s.ID()); err != nil || r.Fence != 1 {
			t.Errorf("claimed %d times, %v", r.Fence, err)
		}
	}
}

// TestUntold: a replica that was not told of a claim learns of it from the store, and serves the session no
// longer.
func TestUntold(t *testing.T) {
	c := newCluster(t, 2)
	c.nodes[0].Forwarder.o.trust = time.Nanosecond
	token, s := c.begin(c.nodes[0])
	c.nodes[0].peers.Close() // other replicas cannot reach it, and clients can
	for i, x := range []*node{c.nodes[1], c.nodes[0]} {
		if status, got := c.ask(x, http.MethodPost, token, call); status != 200 {
			t.Errorf("%d, %q", status, got)
		}
		if n := c.nodes[1].served.Load(); n != int64(i+1) {
			t.Errorf("the owner has served %d of %d", n, i+1)
		}
	}
	if owner := c.db.owner(s.ID()); owner != c.nodes[1].member.ID() || c.nodes[0].served.Load() != 0 || c.nodes[0].drops.Load() == 0 {
		t.Errorf("owner %s, the first one has served %d, dropped %d", owner, c.nodes[0].served.Load(), c.nodes[0].drops.Load())
	}
}

// TestNotTwice: where the connection to the owner breaks behind a request, a call is not sent again, and
// what only reads is.
func TestNotTwice(t *testing.T) {
	c := newCluster(t, 2)
	token, _ := c.begin(c.nodes[0])
	var got atomic.Int64
	c.nodes[0].serve = func(w http.ResponseWriter, r *http.Request, _ []byte) {
		if got.Add(1)%2 == 1 {
			panic(http.ErrAbortHandler)
		}
	}
	if status, answer := c.ask(c.nodes[1], http.MethodPost, token, call); status != http.StatusBadGateway || got.Load() != 1 {
		t.Errorf("%d, %q, sent %d times", status, answer, got.Load())
	}
	got.Store(0)
	if status, answer := c.ask(c.nodes[1], http.MethodPost, token, list); status != 200 || got.Load() != 2 {
		t.Errorf("%d, %q, sent %d times", status, answer, got.Load())
	}
}

// TestStreams: events arrive as they are sent; a client that goes is gone for the owner too; a stream that
// breaks ends with an error for the call.
func TestStreams(t *testing.T) {
	c := newCluster(t, 2)
	token, _ := c.begin(c.nodes[0])
	step, gone := make(chan string), make(chan struct{}, 1)
	c.nodes[0].serve = func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		rc.Flush()
		for {
			select {
			case s := <-step:
				if s == "break" {
					panic(http.ErrAbortHandler)
				}
				io.WriteString(w, s)
				rc.Flush()
			case <-r.Context().Done():
				gone <- struct{}{}
				return
			}
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	resp := c.open(ctx, c.nodes[1], http.MethodPost, token, call)
	defer resp.Body.Close()
	b := make([]byte, 100)
	for _, event := range []string{"data: 1\n\n", ": alive\n\n", "data: 2\n\n"} {
		step <- event
		if n, err := resp.Body.Read(b); string(b[:n]) != event || err != nil {
			t.Fatalf("%q, %v", b[:n], err)
		}
	}
	leave()
	<-gone
	resp = c.open(t.Context(), c.nodes[1], http.MethodPost, token, call)
	defer resp.Body.Close()
	step <- "data: 1\n\n"
	step <- "break"
	all, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(all), `data: {"jsonrpc":"2.0","id":1,"error":{"code":7410,`) || strings.Count(string(all), `"id":`) != 1 {
		t.Errorf("%q, %v", all, err)
	}
	resp = c.open(t.Context(), c.nodes[1], http.MethodPost, token, call)
	defer resp.Body.Close()
	step <- "data: half of an ev"
	step <- "break"
	if all, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half an event was taken for the whole: %q", all)
	}
}

// TestLeaving: a replica that is about to end gives everything new away, and keeps a session while a call of
// it is under way.
func TestLeaving(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	token, s := c.begin(a)
	a.Leave()
	a.owes.Store(true)
	for _, x := range c.nodes {
		if status, _ := c.ask(x, http.MethodPost, token, call); status != 200 || b.served.Load() != 0 {
			t.Errorf("%d: a session was given away while a call is under way", status)
		}
	}
	a.owes.Store(false)
	for i, x := range []*node{a, b, a} {
		if status, answer := c.ask(x, http.MethodPost, token, call); status != 200 || b.served.Load() != int64(i)+1 {
			t.Errorf("%d %q: %d were served by the other replica", status, answer, b.served.Load())
		}
	}
	if c.db.owner(s.ID()) != b.member.ID() {
		t.Error("the session has stayed")
	}
	// What has no session goes away too; of two that leave, the one that was asked serves it.
	b.served.Store(0)
	if status, _ := c.ask(a, http.MethodPost, "", `{"method":"initialize"}`); status != 200 || b.served.Load() != 1 {
		t.Errorf("%d, %d", status, b.served.Load())
	}
	b.Leave()
	a.served.Store(0)
	if status, _ := c.ask(a, http.MethodPost, "", call); status != 200 || a.served.Load() != 1 {
		t.Errorf("%d, %d", status, a.served.Load())
	}
}

// TestState: the retry of a modern request goes to the replica that has asked the client, while it is there.
func TestState(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	state := a.member.ID() + ".sealed"
	for i := range 2 {
		if status, _ := c.ask(c.nodes[i], http.MethodPost, "", call, "Test-State", state); status != 200 || a.served.Load() != int64(i)+1 {
			t.Errorf("replica %d: %d, %d", i, status, a.served.Load())
		}
	}
	c.kill(a)
	for _, state := range []string{state, "0000000000000000.sealed", "sealed", "a.b", ""} {
		b.served.Store(0)
		if status, _ := c.ask(b, http.MethodPost, "", call, "Test-State", state); status != 200 || b.served.Load() != 1 {
			t.Errorf("%q: %d, %d", state, status, b.served.Load())
		}
	}
}

// TestAway: without the database nothing is claimed, and a replica that has lost its lease does not serve
// what it may have lost. When the database is back, it has its sessions again.
func TestAway(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	a.o.wait, b.o.wait = time.Second, time.Second
	token, s := c.begin(a)
	c.ask(b, http.MethodPost, token, call)
	before := a.member.ID()
	c.db.set(true)
	if status, _ := c.ask(b, http.MethodPost, token, call); status != 200 {
		t.Errorf("the store is on the path of a call: %d", status)
	}
	for a.member.Holds(before) || b.member.Holds(b.member.ID()) {
		time.Sleep(50 * time.Millisecond)
	}
	served := a.served.Load()
	for _, x := range c.nodes {
		if status, _ := c.ask(x, http.MethodPost, token, call); status != http.StatusServiceUnavailable {
			t.Errorf("%d", status)
		}
		if status, _ := c.ask(x, http.MethodPost, "", `{"method":"initialize"}`); status != http.StatusServiceUnavailable {
			t.Errorf("a session begins without a lease: %d", status)
		}
	}
	if a.served.Load() != served {
		t.Error("a replica without a lease has served a session")
	}
	c.db.set(false)
	for _, x := range c.nodes {
		if _, err := x.member.Lease(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); c.db.owner(s.ID()) != a.member.ID() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	for _, x := range c.nodes {
		if status, answer := c.ask(x, http.MethodPost, token, call); status != 200 {
			t.Errorf("%d %q", status, answer)
		}
	}
	if c.db.owner(s.ID()) != a.member.ID() || a.member.ID() == before || a.served.Load() != served+2 {
		t.Errorf("%s has the session, and has served %d more", c.db.owner(s.ID()), a.served.Load()-served)
	}
}

// TestOtherKey: a process that has another key of the installation is not believed, and gets nothing.
func TestOtherKey(t *testing.T) {
	c := newCluster(t, 1)
	b := c.add("8")
	token, _ := c.begin(b)
	a := c.nodes[0]
	a.o.wait = time.Second
	if status, _ := c.ask(a, http.MethodPost, token, call); status != http.StatusServiceUnavailable || b.served.Load() != 0 {
		t.Errorf("%d, %d", status, b.served.Load())
	}
}

// TestMisdirected: a replica refuses what is meant for another one, such as the process that had its
// address before.
func TestMisdirected(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	token, s := c.begin(a)
	c.ask(b, http.MethodPost, token, call)
	// Another process has claimed the session, and b has not heard of it.
	if ok, err := Claim(t.Context(), c.db, s, alice, 1, "dddddddddddddddd"); !ok || err != nil {
		t.Fatal(err)
	}
	a.Claimed(s.ID(), "dddddddddddddddd")
	if a.drops.Load() != 1 {
		t.Error("the session that another replica has claimed is still here")
	}
	if status, _ := c.ask(b, http.MethodPost, token, call); status != 200 || c.db.owner(s.ID()) != b.member.ID() {
		t.Errorf("%d, %s", status, c.db.owner(s.ID()))
	}
}

// TestHandlerRefuses: what is not spelled as a replica spells it is refused.
func TestHandlerRefuses(t *testing.T) {
	served := 0
	h := new(Forwarder).Handler(func(r *http.Request, caller string) (*http.Request, bool) { return r, caller == alice },
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if served++; !received(r.Context()) {
				t.Error("a request of a replica is not known as one")
			}
		}))
	for _, tt := range []struct {
		to, caller string
		status     int
	}{{"", "YWxpY2U", 400}, {"a", "YWxpY2U", 200}, {"a", "YWxpY2U=", 400}, {"a", "!", 400}, {"a", "", 400}, {"a", "Ym9i", 400}, {"a", strings.Repeat("YWxp", 1<<14), 400}} {
		r, w := httptest.NewRequest(http.MethodPost, "/mcp", nil), httptest.NewRecorder()
		r.Header.Set(headerTo, tt.to)
		r.Header.Set(headerCaller, tt.caller)
		if h.ServeHTTP(w, r); w.Code != tt.status {
			t.Errorf("%.20q, %.20q: %d", tt.to, tt.caller, w.Code)
		}
	}
	if served != 1 {
		t.Errorf("%d were served", served)
	}
}

// received reports whether another replica has sent the request.
func received(ctx context.Context) bool {
	_, is := ctx.Value(hopKey{}).(hop)
	return is
}
