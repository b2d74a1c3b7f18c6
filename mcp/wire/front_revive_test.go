// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// ledgerOfSessions is a Registry that outlives the Fronts of a test, as a store does.
type ledgerOfSessions struct {
	mu    sync.Mutex
	known map[string]Kept
	ended map[string]bool
	away  error
}

func (l *ledgerOfSessions) Name(_ context.Context, o Opening) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away != nil {
		return "", l.away
	}
	id := fmt.Sprintf("session-%030d", len(l.known))
	l.known[id] = Kept{Opening: o}
	return id, nil
}

func (l *ledgerOfSessions) Find(_ context.Context, id, principal string) (Kept, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.known[id]
	switch {
	case !ok || k.Principal != principal:
		return Kept{}, ErrNoSession
	case l.away != nil:
		return Kept{}, l.away
	case l.ended[id]:
		return Kept{}, ErrNoSession
	}
	return k, nil
}

func (l *ledgerOfSessions) Keep(_ context.Context, id, principal string, s SessionState) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away != nil {
		return l.away
	}
	k := l.known[id]
	k.SessionState = s
	l.known[id] = k
	return nil
}

func (l *ledgerOfSessions) End(_ context.Context, id, _ string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away == nil {
		l.ended[id] = true
	}
	return l.away
}

func (l *ledgerOfSessions) goAway(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = err
}

// processes are Fronts that have one registry: what one has begun another brings back.
func processes(t *testing.T, adjust ...func(*FrontOptions)) (l *ledgerOfSessions, next func() *bench) {
	l = &ledgerOfSessions{known: map[string]Kept{}, ended: map[string]bool{}}
	return l, func() *bench {
		return newBench(t, append([]func(*FrontOptions){func(o *FrontOptions) { o.Registry = l }}, adjust...)...)
	}
}

const capable = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{},"logging":{}}}`

// greet plays the server's part when a session is brought back; it returns what the server heard after
// notifications/initialized, up to the first request that no revival makes.
func (v *server) greet(result string, replays int) (heard []string) {
	v.t.Helper()
	m := v.read()
	if m.Method != methodInitialize || m.Params.Get("protocolVersion").Text() != "2025-11-25" || !strings.HasPrefix(string(m.ID.Append(nil)), `"pellucid-`) {
		v.t.Errorf("a revival begins with %s", m.Append(nil))
	}
	v.result(m, result)
	if m = v.read(); m.Method != methodInitialized {
		v.t.Errorf("then came %s", m.Append(nil))
	}
	for range replays {
		m = v.read()
		heard = append(heard, m.Method+string(m.Params.Raw()))
		v.result(m, `{}`)
	}
	return heard
}

// TestRevive: a session goes on in another process. The server is initialized anew and hears again what the
// client had set; the client hears what may have changed, on the stream on which it listens.
func TestRevive(t *testing.T) {
	t.Parallel()
	l, next := processes(t)
	one := next()
	v, id := one.begin("2025-11-25", "X-Principal", "ada")
	mine := []string{"Mcp-Session-Id", id, "X-Principal", "ada", "Mcp-Protocol-Version", "2025-11-25"}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:1"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:2"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"a:1"}}`,
	} {
		all(t, one.postTo(v, body, mine, func(m *Message) { v.result(m, "{}") }))
	}
	if k := l.known[id]; k.Level != "info" || !slices.Equal(k.Subscriptions, []string{"a:2"}) || k.Version != "2025-11-25" {
		t.Errorf("kept %+v", k)
	}

	two := next()
	for _, other := range [][]string{{"Mcp-Session-Id", id, "X-Principal", "bob"}, {"Mcp-Session-Id", id + "x", "X-Principal", "ada"}} {
		if resp := two.post(listBody, other...); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%q: %d", other, resp.StatusCode)
		}
	}
	// Many requests at once wait for one revival.
	const many = 8
	var clients sync.WaitGroup
	for i := range many {
		clients.Go(func() {
			body := all(t, two.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i), mine...))
			if !strings.Contains(body, fmt.Sprintf(`"id":%d,"result":{"n":%d}`, i, i)) {
				t.Errorf("%q", body)
			}
		})
	}
	w := two.next()
	if w.s.Principal != "ada" {
		t.Errorf("principal %q", w.s.Principal)
	}
	if heard := w.greet(capable, 2); !slices.Equal(heard, []string{`logging/setLevel{"level":"info"}`, `resources/subscribe{"uri":"a:2"}`}) {
		t.Errorf("heard %q", heard)
	}
	for range many {
		m := w.read()
		w.result(m, `{"n":`+string(m.ID.Append(nil))+`}`)
	}
	clients.Wait()
	if len(two.sessions) > 0 || two.f.Sessions() != 1 {
		t.Errorf("%d sessions", two.f.Sessions())
	}
	// The client says initialized again where its first word was lost.
	if resp := two.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, mine...); resp.StatusCode != http.StatusAccepted {
		t.Errorf("initialized: %d", resp.StatusCode)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listen := two.do(ctx, http.MethodGet, "", append(mine, "Last-Event-Id", "AAAABBBBCC.0-7")...)
	got := strings.Join(events(t, listen.Body, 3), "\n")
	if !strings.Contains(got, "notifications/tools/list_changed") || !strings.Contains(got, newsOfRevival) || strings.Contains(got, "prompts") {
		t.Errorf("heard %q", got)
	}

	// Its end is for good.
	if resp := two.do(t.Context(), http.MethodDelete, "", mine...); resp.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
	for _, b := range []*bench{two, next()} {
		if resp := b.post(listBody, mine...); resp.StatusCode != http.StatusNotFound {
			t.Errorf("after DELETE: %d", resp.StatusCode)
		}
	}
}

// slowEnd is a Registry that takes its time to end a session.
type slowEnd struct {
	*ledgerOfSessions
	begun, end chan struct{}
}

func (l *slowEnd) End(ctx context.Context, id, principal string) error {
	close(l.begun)
	<-l.end
	return l.ledgerOfSessions.End(ctx, id, principal)
}

// TestReviveEnded: a request that arrives while the client ends its session does not bring it back for
// longer than the end takes.
func TestReviveEnded(t *testing.T) {
	t.Parallel()
	l, next := processes(t)
	_, id := next().begin("2025-11-25")
	session := []string{"Mcp-Session-Id", id}
	slow := &slowEnd{l, make(chan struct{}), make(chan struct{})}
	two := newBench(t, func(o *FrontOptions) { o.Registry = slow })
	var client, end sync.WaitGroup
	end.Go(func() {
		if resp := two.do(t.Context(), http.MethodDelete, "", session...); resp.StatusCode != http.StatusNoContent {
			t.Errorf("DELETE: %d", resp.StatusCode)
		}
	})
	<-slow.begun
	client.Go(func() { all(t, two.post(listBody, session...)) })
	v := two.next()
	m := v.read() // initialize, which is not answered
	close(slow.end)
	end.Wait()
	if two.f.Sessions() != 0 || m.Method != methodInitialize {
		t.Errorf("%d sessions after %s", two.f.Sessions(), m.Method)
	}
	client.Wait()
}

// TestReviveLater: what keeps a session from coming back ends the request, and not the session.
func TestReviveLater(t *testing.T) {
	t.Parallel()
	l, next := processes(t)
	one := next()
	_, id := one.begin("2025-11-25")
	session := []string{"Mcp-Session-Id", id}
	two := next()
	fails := func(why string, want string, deal func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); deal() }()
		resp := two.post(listBody, session...)
		if body := all(t, resp); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"id":7,"error"`) || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q", why, resp.StatusCode, body)
		}
		<-done
	}
	l.goAway(errors.New("no store"))
	fails("the store is away", "7409", func() {})
	if resp := two.post(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, session...); resp.StatusCode != http.StatusAccepted {
		t.Errorf("a notification while the store is away: %d", resp.StatusCode)
	}
	listen := two.do(t.Context(), http.MethodGet, "", session...)
	if body := all(t, listen); listen.StatusCode != http.StatusOK || listen.Header.Get("Content-Type") != "text/event-stream" || body != "retry: 1000\n\n" {
		t.Errorf("a client that wants to listen while the store is away: %d %q", listen.StatusCode, body)
	}
	if resp := two.do(t.Context(), http.MethodDelete, "", session...); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("an end while the store is away: %d", resp.StatusCode)
	}
	l.goAway(nil)
	fails("no server", "7408", func() { v := two.next(); v.read(); v.s.Close(); v.ended(nil) })
	fails("refused", `"code":7603`, func() {
		v := two.next()
		v.write(NewError(v.read().ID, []byte(`{"code":7603,"message":"refused"}`)))
	})
	if two.f.Sessions() != 0 {
		t.Errorf("%d sessions", two.f.Sessions())
	}
	// It comes back all the same, and what cannot be kept is refused.
	got := make(chan string)
	go func() { got <- all(t, two.post(listBody, session...)) }()
	v := two.next()
	v.greet(capable, 0)
	v.result(v.read(), `{"tools":[]}`)
	if body := <-got; !strings.Contains(body, `"tools":[]`) {
		t.Errorf("%q", body)
	}
	l.goAway(errors.New("no store"))
	body := all(t, two.post(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}`, session...))
	if !strings.Contains(body, "7409") {
		t.Errorf("a subscription that is not kept: %q", body)
	}
	l.goAway(nil)
	// Another version than the client speaks is the end.
	three := next()
	go func() {
		v := three.next()
		v.result(v.read(), `{"protocolVersion":"2025-06-18","capabilities":{}}`)
	}()
	if body := all(t, three.post(listBody, session...)); !strings.Contains(body, "7407") {
		t.Errorf("another version: %q", body)
	}
}

// TestReviveUpgraded: a server that has learnt newer versions of the protocol since the session began is asked for
// the version that the client speaks, and the session goes on. With a server that no longer speaks it, the session ends.
func TestReviveUpgraded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		knows string // the newest version that the server has when the session comes back
		goes  bool
	}{
		{"newer", "2025-11-25", true},
		{"the same", "2025-06-18", true},
		{"older", "2025-03-26", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, next := processes(t)
			_, id := next().begin("2025-06-18") // the client has proposed 2025-11-25
			two := next()
			got := make(chan string)
			go func() { got <- all(t, two.post(listBody, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-06-18")) }()
			v := two.next()
			m := v.read()
			asked := m.Params.Get("protocolVersion").Text()
			v.result(m, `{"protocolVersion":"`+min(asked, tt.knows)+`","capabilities":{}}`)
			if asked != "2025-06-18" || string(m.Params.Raw()) != `{"protocolVersion":"2025-06-18"}` {
				t.Errorf("the server is asked by %s", m.Params.Raw())
			}
			if tt.goes {
				v.read() // initialized
				v.result(v.read(), `{"tools":[]}`)
			}
			if body := <-got; strings.Contains(body, `"tools":[]`) != tt.goes || strings.Contains(body, "7407") == tt.goes {
				t.Errorf("%q", body)
			}
		})
	}
}

// TestReviveStream: a stream that broke with its process ends with one clear error for each request of it.
func TestReviveStream(t *testing.T) {
	t.Parallel()
	_, next := processes(t)
	one := next()
	v, id := one.begin("2025-11-25")
	session := []string{"Mcp-Session-Id", id}
	ctx, stop := context.WithCancel(t.Context())
	resp := one.do(ctx, http.MethodPost, listBody, session...) // the header comes before the answer
	m := v.read()
	primed := events(t, resp.Body, 1)
	stop()
	if len(primed) != 1 || !strings.HasSuffix(primed[0], ".Wzdd") {
		t.Fatalf("events %q", primed)
	}
	// In the same process the stream goes on.
	again := one.do(t.Context(), http.MethodGet, "", append(session, "Last-Event-Id", primed[0])...)
	v.result(m, `{"tools":[]}`)
	if body := all(t, again); !strings.Contains(body, `"tools":[]`) {
		t.Errorf("resumed: %q", body)
	}
	two := next()
	go two.playRevival()
	again = two.do(t.Context(), http.MethodGet, "", append(session, "Last-Event-Id", primed[0])...)
	body := all(t, again)
	if strings.Count(body, "data:") != 1 || !strings.Contains(body, `"id":7,"error":{"code":7410`) {
		t.Errorf("in another process: %q", body)
	}
	_, rest, _ := strings.Cut(body, "id: ")
	last, _, _ := strings.Cut(rest, "\n")
	if again = two.do(t.Context(), http.MethodGet, "", append(session, "Last-Event-Id", last)...); again.StatusCode != http.StatusMethodNotAllowed || again.Header.Get("Allow") != "POST, DELETE" {
		t.Errorf("after that: %d %v", again.StatusCode, again.Header)
	}
	for _, bad := range []string{"x", "AAAABBBBCC.1-0.", "AAAABBBBCC.1-0.W10", "AAAABBBBCC.1-0.WzFdXQ", "aaaabbbbcc.1-0", "AAAABBBBCC.1-0." + strings.Repeat("A", 4000)} {
		if again = two.do(t.Context(), http.MethodGet, "", append(session, "Last-Event-Id", bad)...); again.StatusCode != http.StatusBadRequest {
			t.Errorf("%.40s: %d", bad, again.StatusCode)
		}
	}
}

func (b *bench) playRevival() { b.next().greet(capable, 0) }

// TestShutdownKeepsSessions: a session that can come back is not ended for its client, and what was under way
// for too long gets an error.
func TestShutdownKeepsSessions(t *testing.T) {
	t.Parallel()
	_, next := processes(t)
	one := next()
	v, id := one.begin("2025-11-25")
	session := []string{"Mcp-Session-Id", id}
	got := make(chan string)
	go func() { got <- all(t, one.post(listBody, session...)) }()
	slow := v.read()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	shut := make(chan error)
	go func() { shut <- one.f.Shutdown(ctx) }()
	waittest.Until(t, "the process ends", one.f.isDraining)
	quick := one.postTo(v, `{"jsonrpc":"2.0","id":8,"method":"tools/list"}`, session, func(m *Message) { v.result(m, `{"tools":[]}`) })
	if body := all(t, quick); !strings.Contains(body, `"tools":[]`) {
		t.Errorf("a request during the shutdown: %q", body)
	}
	if slow.Method != "tools/list" {
		t.Errorf("%+v", slow)
	}
	if body := <-got; !strings.Contains(body, `"id":7,"error":{"code":7410`) {
		t.Errorf("a request that took too long: %q", body)
	}
	v.ended(nil)
	<-shut
	if resp := one.post(listBody, session...); resp.StatusCode != http.StatusOK {
		t.Errorf("after the shutdown: %d %q", resp.StatusCode, all(t, resp))
	}
}
