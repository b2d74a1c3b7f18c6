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
	"github.com/pellucid-mcp/pellucid/platform/lease"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// database is what replicas share, in memory.
type database struct {
	mu       sync.Mutex
	rows     map[string]lease.Row
	sessions map[string]session.Record
	asked    int // for owners
	away     bool
}

var errAway = errors.New("away")

// use calls f while nothing else uses the database.
func (d *database) use(f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return errAway
	}
	return f()
}

func (d *database) Leases(_ context.Context, prefix string) (out []lease.Row, err error) {
	err = d.use(func() error {
		for name, r := range d.rows {
			if strings.HasPrefix(name, prefix) {
				out = append(out, r)
			}
		}
		return nil
	})
	return out, err
}

func (d *database) ClaimLease(_ context.Context, seen lease.Row, holder, address string) (next lease.Row, err error) {
	err = d.use(func() error {
		if now := d.rows[seen.Name]; now.Holder != seen.Holder || now.Beat != seen.Beat {
			return lease.ErrLost
		}
		next = lease.Row{Name: seen.Name, Holder: holder, Fence: seen.Fence + 1, Beat: seen.Beat + 1, Address: address}
		d.rows[seen.Name] = next
		return nil
	})
	return next, err
}

func (d *database) BeatLease(_ context.Context, held lease.Row) error {
	return d.use(func() error {
		now := d.rows[held.Name]
		if now.Holder != held.Holder {
			return lease.ErrLost
		}
		now.Beat++
		d.rows[held.Name] = now
		return nil
	})
}

func (d *database) FreeLease(_ context.Context, seen lease.Row, still bool) error {
	return d.use(func() error {
		if now := d.rows[seen.Name]; now.Holder != seen.Holder || still && now.Beat != seen.Beat {
			return lease.ErrLost
		}
		delete(d.rows, seen.Name)
		return nil
	})
}

// addressOf is where a holder is reached. d.mu is held.
func (d *database) addressOf(holder string) string {
	for _, r := range d.rows {
		if holder != "" && r.Holder == holder {
			return r.Address
		}
	}
	return ""
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

func (d *database) SessionOwner(_ context.Context, id string) (own session.Owner, err error) {
	err = d.use(func() error {
		d.asked++
		r := d.sessions[id]
		own = session.Owner{Holder: r.Owner, Fence: r.Fence, Address: d.addressOf(r.Owner)}
		if r.Ended {
			return session.ErrEnded
		}
		return nil
	})
	return own, err
}

func (d *database) ClaimSession(_ context.Context, r session.Record, owner string) (claimed bool, err error) {
	err = d.use(func() error {
		now := d.sessions[r.ID]
		switch {
		case now.Ended:
			return session.ErrEnded
		case now.Fence != r.Fence || now.Owner != owner && d.addressOf(now.Owner) != "":
			return nil
		}
		now.ID, now.Owner, now.Fence = r.ID, owner, r.Fence+1
		d.sessions[r.ID], claimed = now, true
		return nil
	})
	return claimed, err
}

func (d *database) ReleaseSession(_ context.Context, id, owner string, _ time.Time) error {
	return d.use(func() error {
		if r := d.sessions[id]; r.Owner == owner {
			r.Owner = ""
			d.sessions[id] = r
		}
		return nil
	})
}

func (d *database) KeepSession(context.Context, session.Record) error   { return nil }
func (d *database) SweepSessions(context.Context, time.Time, int) error { return nil }
func (d *database) EndSession(_ context.Context, r session.Record) error {
	return d.use(func() error { d.sessions[r.ID] = session.Record{Ended: true}; return nil })
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
	lease  *lease.Lease
	front  *httptest.Server // for clients
	peers  *http.Server     // for replicas
	end    context.CancelFunc
	served atomic.Int64
	owes   atomic.Bool
	open   sync.Map // sessions, by their tokens
	serve  func(w http.ResponseWriter, r *http.Request, body []byte)
}

// cluster is several nodes on one database.
type cluster struct {
	t      *testing.T
	tokens *session.Tokens
	db     *database
	nodes  []*node
}

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	t.Parallel()
	key, err := keyring.NewKey(bytes.Repeat([]byte{7}, keyring.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.New(key)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, tokens: session.NewTokens(ring, 0, "r1"), db: &database{rows: map[string]lease.Row{}, sessions: map[string]session.Record{}}}
	for range n {
		c.add("7")
	}
	for _, x := range c.nodes {
		waittest.Until(t, "replicas know each other", func() bool { return len(x.lease.Others()) == n-1 })
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
	x := &node{serve: func(w http.ResponseWriter, r *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("Test-Principal"), body)
	}}
	label := fmt.Sprintf("r%d", len(c.nodes)+1)
	x.lease = lease.New(lease.Options{Store: c.db, Kind: "replica/", Name: label, Address: l.Addr().String(), Lost: x.open.Clear})
	if err := x.lease.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.Forwarder = New(Options{Lease: x.lease, Label: label, Store: c.db, Open: c.tokens.Open, Out: keys.Transport(),
		Caller: func(r *http.Request) string { return r.Header.Get("Test-Principal") }, Erasable: func(p string) string { return p }})
	ctx, end := context.WithCancel(t.Context())
	x.end = end
	go x.lease.Run(ctx)
	x.front = httptest.NewServer(http.HandlerFunc(x.handle))
	h := x.Handler(func(r *http.Request, caller string) (*http.Request, bool) {
		r.Header.Set("Test-Principal", caller)
		return r, true
	}, http.HandlerFunc(x.handle))
	x.peers = &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go x.peers.Serve(keys.Listen(l))
	t.Cleanup(x.kill)
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
	has := func() bool { _, ok := x.open.Load(id); return ok }
	switch x.Forward(w, r, wire.Forwardable{Session: id, Principal: r.Header.Get("Test-Principal"), State: r.Header.Get("Test-State"), Body: body,
		Begins: bytes.Contains(body, []byte(`"initialize"`)), Has: has, GiveUp: func() bool {
			if x.owes.Load() {
				return false
			}
			x.open.Delete(id)
			return true
		}}) {
	case wire.Unreachable:
		http.Error(w, "unreachable", http.StatusServiceUnavailable)
	case wire.Unanswered:
		http.Error(w, "unanswered", http.StatusBadGateway)
	case wire.Here:
		x.open.Store(id, true)
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
	if claimed, err := Claim(c.t.Context(), c.db, s, alice, 0, x.lease.Holder()); err != nil || !claimed {
		c.t.Fatalf("claim: %v, %v", claimed, err)
	}
	x.open.Store(token, true)
	return token, s
}

const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`

// ask sends a request of alice to a node.
func (c *cluster) ask(x *node, method, token, body string, header ...string) (status int, answer string) {
	c.t.Helper()
	resp := c.send(c.t.Context(), x, method, token, body, header...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

func (c *cluster) send(ctx context.Context, x *node, method, token, body string, header ...string) *http.Response {
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

// TestForward: a request is served by the owner of its session, whichever replica it arrives at. The owner does not ask
// the store for it.
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
	if n := c.db.questions(); n != 30 {
		t.Errorf("the store was asked %d times", n)
	}
	// A token that cannot be opened, or is of another principal, is for the Front to refuse.
	for _, token := range []string{"x", token, "r2" + strings.TrimPrefix(token, "r1")} {
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
		"Mcp-Param-Region", "eu", "Pellucid-Principal", "bWFsbG9yeQ", "X-Forwarded-For", "1.2.3.4", "Connection", "Mcp-Param-Region")
	if status != 200 || got.Get("Test-Principal") != alice || got.Get("Mcp-Param-Region") != "eu" {
		t.Errorf("%d, %v", status, got)
	}
	for _, name := range []string{"Authorization", "Cookie", "Idempotency-Key", "X-Idempotency-Key", "Pellucid-Principal", "X-Forwarded-For"} {
		if got.Get(name) != "" {
			t.Errorf("%s came through", name)
		}
	}
	if c.db.owner(s.ID()) != c.nodes[0].lease.Holder() {
		t.Error("a header of a client has moved the session")
	}
}

// TestKilled: the owner is gone without a word. Requests wait until its lease has ended; then another replica claims the
// session, and a third finds it there.
func TestKilled(t *testing.T) {
	c := newCluster(t, 3)
	token, s := c.begin(c.nodes[0])
	for _, x := range c.nodes {
		c.ask(x, http.MethodPost, token, call)
	}
	c.nodes[0].kill()
	began := time.Now()
	for _, x := range slices.Concat(c.nodes[1:], c.nodes[1:]) {
		if status, got := c.ask(x, http.MethodPost, token, call); status != 200 {
			t.Errorf("%d, %q", status, got)
		}
	}
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("the session was taken over after %v: the lease of its owner had not ended", took)
	}
	if now := c.db.owner(s.ID()); now != c.nodes[1].lease.Holder() || c.nodes[1].served.Load() != 4 {
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
		has := 0
		for _, x := range c.nodes {
			if _, ok := x.open.Load(token); ok {
				has++
			}
		}
		if has != 1 {
			t.Errorf("%d replicas have the session", has)
		}
	}
}

// TestNotTwice: where the connection to the owner breaks behind a request, the request is not sent again.
func TestNotTwice(t *testing.T) {
	c := newCluster(t, 2)
	token, _ := c.begin(c.nodes[0])
	var got atomic.Int64
	c.nodes[0].serve = func(http.ResponseWriter, *http.Request, []byte) {
		got.Add(1)
		panic(http.ErrAbortHandler)
	}
	if status, answer := c.ask(c.nodes[1], http.MethodPost, token, call); status != http.StatusBadGateway || got.Load() != 1 {
		t.Errorf("%d, %q, sent %d times", status, answer, got.Load())
	}
	if status, answer := c.ask(c.nodes[1], http.MethodGet, token, ""); status != http.StatusServiceUnavailable || got.Load() != 2 {
		t.Errorf("%d, %q, sent %d times", status, answer, got.Load())
	}
}

// TestStreams: events arrive as they are sent; a client that goes is gone for the owner too; the answer of a call that
// breaks is not taken for the whole, and a stream on which a client listens ends.
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
	resp := c.send(ctx, c.nodes[1], http.MethodPost, token, call)
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
	for method, whole := range map[string]bool{http.MethodPost: false, http.MethodGet: true} {
		resp := c.send(t.Context(), c.nodes[1], method, token, "")
		defer resp.Body.Close()
		step <- "data: 1\n\n"
		step <- "break"
		if all, err := io.ReadAll(resp.Body); string(all) != "data: 1\n\n" || (err == nil) != whole {
			t.Errorf("%s: %q, %v", method, all, err)
		}
	}
	resp = c.send(t.Context(), c.nodes[1], http.MethodGet, token, "")
	defer resp.Body.Close()
	step <- "data: 1\n\n"
	if n, err := resp.Body.Read(b); string(b[:n]) != "data: 1\n\n" || err != nil {
		t.Fatalf("%q, %v", b[:n], err)
	}
	c.nodes[1].Leave()
	<-gone
	if all, err := io.ReadAll(resp.Body); len(all) != 0 || err != nil {
		t.Errorf("a replica that ends: %q, %v", all, err)
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
	if c.db.owner(s.ID()) != b.lease.Holder() {
		t.Error("the session has stayed")
	}
	// What arrives at another replica finds there that the session is free.
	token, s = c.begin(a)
	if status, _ := c.ask(b, http.MethodPost, token, call); status != 200 || b.served.Load() != 4 || c.db.owner(s.ID()) != b.lease.Holder() {
		t.Errorf("%d, %d", status, b.served.Load())
	}
	// What has no session goes away too; of two that leave, the one that got it serves it.
	b.served.Store(0)
	if status, _ := c.ask(a, http.MethodPost, "", `{"method":"initialize"}`); status != 200 || b.served.Load() != 1 {
		t.Errorf("%d, %d", status, b.served.Load())
	}
	b.Leave()
	a.served.Store(0)
	if status, _ := c.ask(b, http.MethodPost, "", call); status != 200 || a.served.Load() != 1 {
		t.Errorf("%d, %d", status, a.served.Load())
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if a.Drain(ctx); ctx.Err() != nil {
		t.Error("a request that was passed on counts as open")
	}
}

// TestState: the retry of a modern request goes to the replica that has asked the client, while it is there.
func TestState(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	for i := range 2 {
		if status, _ := c.ask(c.nodes[i], http.MethodPost, "", call, "Test-State", "r1.sealed"); status != 200 || a.served.Load() != int64(i)+1 {
			t.Errorf("replica %d: %d, %d", i, status, a.served.Load())
		}
	}
	a.kill()
	for _, state := range []string{"r1.sealed", "r3.sealed", "sealed", ".b", strings.Repeat("r", 100) + ".b", ""} {
		b.served.Store(0)
		if status, _ := c.ask(b, http.MethodPost, "", call, "Test-State", state); status != 200 || b.served.Load() != 1 {
			t.Errorf("%q: %d, %d", state, status, b.served.Load())
		}
	}
}

// TestAway: without the database nothing is claimed or passed on, and a replica whose lease has lapsed does not serve a
// session. When the database is back, it has its sessions still.
func TestAway(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	a.o.wait, b.o.wait = time.Second, time.Second
	token, s := c.begin(a)
	before := a.lease.Holder()
	c.db.set(true)
	if status, _ := c.ask(a, http.MethodPost, token, call); status != 200 {
		t.Errorf("the store is on the path of a call: %d", status)
	}
	waittest.Until(t, "the leases lapse", func() bool { return !a.lease.Held() && !b.lease.Held() })
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
		if _, err := x.lease.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status, answer := c.ask(x, http.MethodPost, token, call); status != 200 {
			t.Errorf("%d %q", status, answer)
		}
	}
	if c.db.owner(s.ID()) != before || a.lease.Holder() != before || a.served.Load() != served+2 {
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

// TestNoLoop: a replica that gets a request of a session which it does not have never passes it on: two replicas with one
// address, or with another's, cannot send each other a request for ever.
func TestNoLoop(t *testing.T) {
	c := newCluster(t, 3)
	a, b := c.nodes[0], c.nodes[1]
	b.o.wait = time.Second
	token, _ := c.begin(a)
	c.db.mu.Lock() // a's address is that of the third
	row := c.db.rows["replica/r1"]
	row.Address = c.db.rows["replica/r3"].Address
	c.db.rows["replica/r1"] = row
	c.db.mu.Unlock()
	if status, _ := c.ask(b, http.MethodPost, token, call); status != http.StatusServiceUnavailable {
		t.Errorf("%d", status)
	}
	if n := a.served.Load() + b.served.Load() + c.nodes[2].served.Load(); n != 0 {
		t.Errorf("served %d times", n)
	}
}

// TestHandlerRefuses: what is not spelled as a replica spells it is refused.
func TestHandlerRefuses(t *testing.T) {
	served := 0
	h := new(Forwarder).Handler(func(r *http.Request, caller string) (*http.Request, bool) { return r, caller == alice },
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if served++; !wasPassedOn(r) || r.Header.Get(headerCaller) != "" {
				t.Error("a request of a replica is not known as one")
			}
		}))
	for _, tt := range []struct {
		caller []string
		status int
	}{{[]string{"YWxpY2U"}, 200}, {[]string{"YWxpY2U="}, 400}, {[]string{"!"}, 400}, {[]string{""}, 400}, {nil, 400}, {[]string{"YWxpY2U", "YWxpY2U"}, 400},
		{[]string{"Ym9i"}, 400}, {[]string{strings.Repeat("YWxp", 1<<14)}, 400}} {
		r, w := httptest.NewRequest(http.MethodPost, "/mcp", nil), httptest.NewRecorder()
		r.Header[headerCaller] = tt.caller
		if h.ServeHTTP(w, r); w.Code != tt.status {
			t.Errorf("%.20q: %d", tt.caller, w.Code)
		}
	}
	if served != 1 {
		t.Errorf("%d were served", served)
	}
}
