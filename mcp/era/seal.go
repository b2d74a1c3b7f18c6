// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Sealer seals the requestState of servers. A server behind a gateway cannot tell
// the gateway's clients apart, and so cannot see that one presents the state that
// another was given; the gateway can. What a client gets is
//
//	base64url(key id ‖ nonce ‖ AES-256-GCM(key, time of expiry in Unix seconds, 8 bytes ‖ state))
//
// behind the name of the replica that has sealed it and a point, where there are several (Home),
// with whose it is, which replica has sealed it, and which question it belongs to, as associated data: what one server
// of several behind one endpoint has given does not go to another, nor to another of its
// tools, nor to the same tool with other arguments. A client may repeat a retry, and gets
// the same answer; what it has answered it cannot answer otherwise. The server gets back the bytes that it gave.
// The zero value has no key and is not to be used.
type Sealer struct {
	// Home is the label of this replica: a retry is sent there, since what a legacy server has asked, and what a
	// client has answered, is known there only. It has no point. "": there is one replica.
	Home string

	box   *keyring.Box
	now   func() time.Time
	spent spentStates
}

// sealWait is how long a client may take to come back: a person is asked meanwhile.
const sealWait = time.Hour

// NewSealer seals with keys that replicas of a gateway share, or do not: then each accepts its own
// states only.
func NewSealer(ring *keyring.Ring) *Sealer {
	return &Sealer{box: ring.Box("pellucid requestState v1"), now: time.Now}
}

func (s *Sealer) seal(state, owner string) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(s.now().Add(sealWait).Unix()))
	home := ""
	if s.Home != "" {
		home = s.Home + "."
	}
	return home + base64.RawURLEncoding.EncodeToString(s.box.Seal(append(plain, state...), []byte(home+owner)))
}

func (s *Sealer) open(sealed, owner string) (state string, ok bool) {
	home := ""
	if at := strings.IndexByte(sealed, '.'); at >= 0 {
		home, sealed = sealed[:at+1], sealed[at+1:]
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return "", false
	}
	plain, err := s.box.Open(b, []byte(home+owner))
	if err != nil || len(plain) < 8 || int64(binary.BigEndian.Uint64(plain)) <= s.now().Unix() {
		return "", false
	}
	return string(plain[8:]), true
}

// Client returns a Conn to the client at conn, which is the principal and talks to
// the server of that name: states go there sealed, and others than its own are
// refused.
func (s *Sealer) Client(conn wire.Conn, server, principal string) wire.Conn {
	return &sealing{Conn: conn, s: s, owner: server + "\x00" + principal, asked: map[string]string{}, using: map[string]*spent{}}
}

// sealing is the Conn that Sealer.Client returns. Each call of a method is about one message;
// several goroutines may call at the same time.
type sealing struct {
	wire.Conn
	s     *Sealer
	r     wire.Receiver // of Start
	owner string

	mu    sync.Mutex
	asked map[string]string // by id: the subjects of requests under way
	using map[string]*spent // by id: the states that requests under way have used; nil: closed
}

var _ wire.Receiver = (*sealing)(nil)

// maxAsked bounds the requests that the client has not answered; a front has no more under way at once.
const maxAsked = 1 << 14

// subject identifies what a request is about: a retry of the request has the same subject. It is
// a digest, since the request may be long.
func subject(m *wire.Message) string {
	print := fingerprint(m)
	sum := sha256.Sum256(append([]byte(m.Method+"\x00"), print[:]...))
	return string(sum[:])
}

// ask remembers a request, and forgets one that the client cancels.
func (c *sealing) ask(m *wire.Message) {
	switch {
	case m.Kind == wire.Notification && m.Method == mcpmsg.Cancelled:
		id := string(m.Params.Get("requestId").Raw())
		c.mu.Lock()
		delete(c.asked, id)
		c.mu.Unlock()
		if of := c.used(id); of != nil {
			c.s.spent.settle(of, nil, false)
		}
	case m.Kind == wire.Request:
		about := subject(m)
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.asked) >= maxAsked {
			clear(c.asked) // the states of these requests are refused later
		}
		c.asked[string(m.ID.Append(nil))] = about
	}
}

// answered is the owner of a state in the answer to a request, which is forgotten.
func (c *sealing) answered(id wire.ID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := string(id.Append(nil))
	of := c.asked[key]
	delete(c.asked, key)
	return c.owner + "\x00" + of
}

// AllowBatches passes on what the Conn can do.
func (c *sealing) AllowBatches(on bool) { wire.AllowBatches(c.Conn, on) }

// Start implements wire.Conn.
func (c *sealing) Start(r wire.Receiver) {
	c.r = r
	c.Conn.Start(c)
}

// Message implements wire.Receiver for the client: the server gets its own state.
func (c *sealing) Message(m *wire.Message) {
	c.ask(m)
	if m.Kind != wire.Request || !m.Params.Get("requestState").Exists() {
		c.r.Message(m)
		return
	}
	defer m.Release()
	opened := c.opened(m)
	switch {
	case opened == nil:
		c.answered(m.ID)
		c.say(new(spent).to(m.Alias, m.ID))
	case c.spend(m):
		c.r.Message(opened)
	default:
		opened.Release()
	}
}

// Violation implements wire.Receiver for the client.
func (c *sealing) Violation(v *wire.Violation) { c.r.Violation(v) }

// Ended implements wire.Receiver for the client.
func (c *sealing) Ended(err error) { c.r.Ended(err) }

// say gives the client an answer that is not the server's. A client that has gone needs none.
func (c *sealing) say(out *wire.Message) {
	ctx, stop := context.WithTimeout(context.Background(), sayWait)
	defer stop()
	_ = c.Conn.Write(ctx, out)
}

// sayWait bounds a write of such an answer.
const sayWait = 10 * time.Second

// opened is m with the server's own state; nil if it is not the client's.
func (c *sealing) opened(m *wire.Message) *wire.Message {
	sealed := m.Params.Get("requestState")
	if sealed.Kind() != '"' {
		return nil
	}
	state, ok := c.s.open(sealed.Text(), c.owner+"\x00"+subject(m))
	if !ok {
		return nil
	}
	var e strictjson.Edits
	e.Replace(sealed, quoted(state))
	n, err := m.Edited(&e)
	if err != nil {
		return nil
	}
	return n
}

// Write seals. A server that spells the member's name with escapes keeps its state
// unsealed, and will not get it back.
func (c *sealing) Write(ctx context.Context, out *wire.Message) error {
	if out.Kind == wire.Response || out.Kind == wire.ErrorResponse {
		owner := c.answered(out.ID)
		if out.Kind == wire.Response && bytes.Contains(out.Body(), []byte(`"requestState"`)) {
			c.seal(out, owner)
		}
		if of := c.used(string(out.ID.Append(nil))); of != nil {
			c.s.spent.settle(of, out.Body(), out.Kind == wire.ErrorResponse)
		}
	}
	return c.Conn.Write(ctx, out)
}

// seal seals the state in m. A message that cannot be read has none.
func (c *sealing) seal(m *wire.Message, owner string) {
	if m.Parse() != nil {
		return
	}
	state := m.Result.Get("requestState")
	if state.Kind() != '"' {
		return
	}
	var e strictjson.Edits
	e.Replace(state, quoted(c.s.seal(state.Text(), owner)))
	_ = m.Edit(&e) // it has been parsed, and a quoted string is strict JSON
}
