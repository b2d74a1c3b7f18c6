// SPDX-License-Identifier: Apache-2.0

package era

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
)

// sealedFor is a client's Conn and what stands for its transport.
func sealedFor(t *testing.T, s *Sealer, server, principal string) (wire.ReadConn, *fake) {
	t.Helper()
	f := newFake()
	c := wire.Pull(s.Client(wire.Push(f), server, principal))
	t.Cleanup(func() { c.Close() })
	return c, f
}

// testSealer seals with keys that are made of the words in keys; the first one is current.
func testSealer(t testing.TB, keys ...string) *Sealer {
	t.Helper()
	var all []keyring.Key
	for _, word := range keys {
		secret := sha256.Sum256([]byte(word))
		k, err := keyring.NewKey(secret[:])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	ring, err := keyring.New(all...)
	if err != nil {
		t.Fatal(err)
	}
	return NewSealer(ring)
}

// TestSealRotated: what one key has sealed opens while that key is in the ring.
func TestSealRotated(t *testing.T) {
	sealed := testSealer(t, "one").seal("state", "files\x00alice")
	if state, ok := testSealer(t, "two", "one").open(sealed, "files\x00alice"); !ok || state != "state" {
		t.Errorf("after a rotation: %q, %v", state, ok)
	}
	if _, ok := testSealer(t, "two").open(sealed, "files\x00alice"); ok {
		t.Error("opened without its key")
	}
}

// TestSeal: the server gets back the bytes that it gave, from the client that it
// gave them to, and nobody else's.
func TestSeal(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	sealer := func(key string) *Sealer {
		s := testSealer(t, key)
		s.now = func() time.Time { return now }
		return s
	}
	s := sealer("key")
	const state = `a"b\u00e9 ` + "\u200b"
	alice, wireOf := sealedFor(t, s, "files", "alice")
	result := []byte(`{"resultType":"input_required","x":1.50,"requestState":` + string(quoted(state)) + `}`)
	wireOf.say(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
	read(t, alice)
	done := make(chan error, 1)
	go func() {
		done <- alice.Write(t.Context(), wire.NewResult(wire.IntID(1), result))
	}()
	out := <-wireOf.out
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	m, err := wire.Decode(out.Append(nil), testLimits)
	if err != nil {
		t.Fatal(err)
	}
	sealed := m.Result.Get("requestState").Text()
	if strings.Contains(sealed, "a") && strings.Contains(sealed, `"`) || string(m.Result.Get("x").Raw()) != "1.50" || len(sealed) < 40 {
		t.Fatalf("client got %s", out.Append(nil))
	}
	other := sealer("another key")
	flipped := sealed[:len(sealed)-4] + "AAAA"
	for _, tt := range []struct {
		name              string
		s                 *Sealer
		server, principal string
		state             string
		later             time.Duration
		ok                bool
	}{
		{"the same", s, "files", "alice", string(quoted(sealed)), 0, true},
		{"a replica with the same key", sealer("key"), "files", "alice", string(quoted(sealed)), time.Minute, true},
		{"another principal", s, "files", "bob", string(quoted(sealed)), 0, false},
		{"another server", s, "mail", "alice", string(quoted(sealed)), 0, false},
		{"names that run together", s, "file", "s\x00alice", string(quoted(sealed)), 0, false},
		{"a replica with another key", other, "files", "alice", string(quoted(sealed)), 0, false},
		{"too late", s, "files", "alice", string(quoted(sealed)), sealWait, false},
		{"changed", s, "files", "alice", string(quoted(flipped)), 0, false},
		{"unsealed", s, "files", "alice", string(quoted(state)), 0, false},
		{"empty", s, "files", "alice", `""`, 0, false},
		{"no string", s, "files", "alice", `{"a":1}`, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := now
			now = now.Add(tt.later)
			defer func() { now = start }()
			c, f := sealedFor(t, tt.s, tt.server, tt.principal)
			for _, spelled := range []string{"requestState", `request\u0053tate`} {
				tt.s.spent.used, tt.s.spent.order = nil, nil
				f.say(t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","`+spelled+`":`+tt.state+`,"n":1.0}}`)
				f.say(t, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
				first := make(chan *wire.Message, 1)
				go func() { first <- read(t, c) }()
				if tt.ok {
					m := <-first
					if got := m.Params.Get("requestState").Text(); got != state || m.ID != wire.IntID(7) || string(m.Params.Get("n").Raw()) != "1.0" {
						t.Errorf("server gets %s", m.Append(nil))
					}
					m = read(t, c)
					if m.ID != wire.IntID(8) {
						t.Errorf("then %s", m.Append(nil))
					}
					continue
				}
				out := <-f.out
				if !strings.Contains(string(out.Append(nil)), `"id":7,"error":{"code":-32602,"message":"`+errState.text) {
					t.Errorf("client gets %s", out.Append(nil))
				}
				if m := <-first; m.ID != wire.IntID(8) {
					t.Errorf("server gets %s", m.Append(nil))
				}
			}
		})
	}
	for _, about := range []string{
		`"tools/call","params":{"name":"u"`, `"tools/call","params":{"name":"t","arguments":{"to":"mallory"}`, `"tools/call","params":{"name":"t","uri":"x"`, `"tools/call","params":{"uri":"t"`, `"prompts/get","params":{"name":"t"`,
	} {
		c, f := sealedFor(t, s, "files", "alice")
		f.say(t, `{"jsonrpc":"2.0","id":7,"method":`+about+`,"requestState":`+string(quoted(sealed))+`}}`)
		f.say(t, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
		first := make(chan *wire.Message, 1)
		go func() { first <- read(t, c) }()
		if out := <-f.out; !strings.Contains(string(out.Append(nil)), errState.text) {
			t.Errorf("%s: client gets %s", about, out.Append(nil))
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	// What is answered or withdrawn is forgotten.
	f := newFake()
	bobs := s.Client(wire.Push(f), "files", "bob").(*sealing)
	bob := wire.Pull(bobs)
	t.Cleanup(func() { bob.Close() })
	f.say(t, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t"}}`)
	f.say(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`)
	f.say(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
	id := read(t, bob).ID
	read(t, bob)
	read(t, bob)
	go func() { <-f.out }()
	if n := len(bobs.asked); n != 1 || id.IsZero() {
		t.Errorf("%d requests are under way", n)
	}
	if err := bob.Write(t.Context(), wire.NewError(wire.IntID(2), []byte(`{"code":1,"message":"x"}`))); err != nil || len(bobs.asked) != 0 {
		t.Errorf("%v, %d requests are under way", err, len(bobs.asked))
	}
	if _, err := alice.Read(ctx); err == nil {
		t.Error("a message out of nothing")
	}
}

// TestSealSpent presents one state several times: the same retry gets the same answer,
// while it is under way and afterwards, and the server hears of it once. Another retry is
// refused, and a retry that was withdrawn may be repeated.
func TestSealSpent(t *testing.T) {
	s := testSealer(t, "key")
	c, f := sealedFor(t, s, "bank", "alice")
	const ask = `"tools/call","params":{"name":"pay","arguments":{"to":"bob","n":5}`
	retry := func(id int, state, inputs string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s,"requestState":%q,"inputResponses":%s}}`, id, ask, state, inputs)
	}
	const yes, no = `{"ok":{"action":"accept","content":{"a":1,"b":2}}}`, `{"ok":{"action":"decline"}}`
	answer := func(id int64, result string) {
		t.Helper()
		if err := c.Write(t.Context(), wire.NewResult(wire.IntID(id), []byte(result))); err != nil {
			t.Error(err)
		}
	}
	given := func(id int64) string {
		t.Helper()
		f.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s}}`, id, ask))
		read(t, c)
		go answer(id, `{"resultType":"input_required","requestState":"s"}`)
		m, err := wire.Decode((<-f.out).Append(nil), testLimits)
		if err != nil {
			t.Fatal(err)
		}
		return m.Result.Get("requestState").Text()
	}
	ping := func(id int) { // what the connection reads once the retries before it are dealt with
		t.Helper()
		f.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
		if m := read(t, c); m.Method != "ping" {
			t.Errorf("the server hears of %s again", m.Method)
		}
	}
	state := given(1)
	f.say(t, retry(2, state, yes))
	if m := read(t, c); m.Params.Get("requestState").Text() != "s" {
		t.Fatalf("the server gets %s", m.Append(nil))
	}
	f.say(t, retry(3, state, `{"ok":{"content":{"b":2,"a":1},"action":"accept"}}`)) // while it is under way
	ping(4)
	go answer(2, `{"content":[],"paid":5}`)
	got := map[string]bool{}
	for range 2 {
		got[string((<-f.out).Append(nil))] = true
	}
	for _, id := range []string{"2", "3"} {
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[],"paid":5}}`; !got[want] {
			t.Errorf("want %s, have %v", want, got)
		}
	}
	for id, tt := range map[int]struct{ inputs, want string }{5: {yes, `"paid":5`}, 6: {no, errState.text}} {
		f.say(t, retry(id, state, tt.inputs))
		var pinged sync.WaitGroup
		pinged.Go(func() { ping(id + 10) })
		if out := <-f.out; !strings.Contains(string(out.Append(nil)), tt.want) || !strings.Contains(string(out.Append(nil)), fmt.Sprintf(`"id":%d,`, id)) {
			t.Errorf("retry %d gets %s", id, out.Append(nil))
		}
		pinged.Wait()
	}
	state = given(30)
	f.say(t, retry(31, state, yes))
	read(t, c)
	f.say(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":31}}`)
	read(t, c)
	ping(33)
	f.say(t, retry(32, state, yes))
	if m := read(t, c); m.ID != wire.IntID(32) {
		t.Errorf("after it was withdrawn: %s", m.Append(nil))
	}
}

// TestSealAtOnce presents one state from many goroutines and sessions at a time: the server hears of
// one, and each has the same answer.
func TestSealAtOnce(t *testing.T) {
	s := testSealer(t, "key")
	const ask = `"method":"tools/call","params":{"name":"pay"`
	var underWay, most, heard, paid atomic.Int32
	var wait sync.WaitGroup
	session := func() (*played, wire.Conn) {
		p := &played{write: func(_ context.Context, m *wire.Message) error {
			if strings.Contains(rawOf(m), `"paid":5`) {
				paid.Add(1)
			}
			wait.Done()
			return nil
		}}
		c := s.Client(p, "bank", "alice")
		c.Start(&listener{t: t, message: func(m *wire.Message) {
			if m.Kind != wire.Request {
				return
			}
			heard.Add(1)
			if n := underWay.Add(1); n > 1 {
				most.Store(n)
			}
			id := m.ID
			wait.Go(func() {
				time.Sleep(20 * time.Millisecond)
				underWay.Add(-1)
				_ = c.Write(context.Background(), wire.NewResult(id, []byte(`{"content":[],"paid":5}`)))
			})
		}})
		return p, c
	}
	state := s.seal("s", "bank\x00alice\x00"+subjectOf(t, `{"jsonrpc":"2.0","id":1,`+ask+`}}`))
	var all sync.WaitGroup
	for range 8 {
		p, c := session()
		for i := range 3 {
			wait.Add(1)
			all.Go(func() {
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s,"requestState":%q,"inputResponses":{"a":{}}}}`, i, ask, state))
			})
		}
		defer c.Close()
	}
	all.Wait()
	wait.Wait()
	if heard.Load() != 1 || paid.Load() != 24 || most.Load() > 1 {
		t.Errorf("the server heard of %d, %d at a time; %d have their answer", heard.Load(), most.Load(), paid.Load())
	}
	// A client that leaves while it is served makes the state good for another.
	p, c := session()
	state = s.seal("t", "bank\x00alice\x00"+subjectOf(t, `{"jsonrpc":"2.0","id":1,`+ask+`}}`))
	retry := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,%s,"requestState":%q,"inputResponses":{"a":{}}}}`, ask, state)
	wait.Add(2)
	p.say(retry)
	c.Close()
	q, d := session()
	defer d.Close()
	q.say(retry)
	wait.Wait()
	if heard.Load() != 3 {
		t.Errorf("the server heard of %d", heard.Load())
	}
}

func subjectOf(t *testing.T, line string) string {
	t.Helper()
	m, err := wire.Decode([]byte(line), testLimits)
	if err != nil {
		t.Fatal(err)
	}
	return subject(m)
}
