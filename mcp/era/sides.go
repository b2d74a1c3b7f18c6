// SPDX-License-Identifier: Apache-2.0

package era

import (
	"encoding/base64"
	"io"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	modernVersion = mcpmsg.Modern
	lastLegacy    = "2025-11-25"

	probeParams = `{"_meta":{"` + mcpmsg.KeyVersion + `":"` + modernVersion + `","` + mcpmsg.KeyClientInfo + `":` + ownInfo +
		`,"` + mcpmsg.KeyClientCaps + `":{}}}`
	ownInfo = `{"name":"pellucid","version":"1"}`
)

// A fault is an error that this package answers with. Its text is constant. Codes beyond those of
// JSON-RPC are in package wire.
type fault struct {
	code int
	text string
}

// Error implements error.
func (f *fault) Error() string { return f.text }

var (
	errNoMethod     = &fault{wire.CodeNoMethod, "pellucid: the protocol revision has no such method"}
	errCannotAsk    = &fault{wire.CodeNoMethod, "pellucid: the client cannot be asked"}
	errNoSampling   = &fault{wire.CodeNoMethod, mcpmsg.NoSampling}
	errState        = &fault{wire.CodeParams, "pellucid: unknown or expired requestState"}
	errParams       = &fault{wire.CodeParams, "pellucid: params are not acceptable"}
	errAgain        = &fault{wire.CodeInvalid, "pellucid: already initialized"}
	errID           = &fault{wire.CodeInvalid, "pellucid: id is out of range"}
	errSilent       = &fault{wire.CodeSilent, "pellucid: the server did not answer in time"}
	errHandshake    = &fault{wire.CodeHandshake, "pellucid: the server could not be initialized"}
	errRounds       = &fault{wire.CodeRounds, "pellucid: the server asked for input too often"}
	errInput        = &fault{wire.CodeInput, "pellucid: the client did not give the input that the server asked for"}
	errAnswer       = &fault{wire.CodeEraAnswer, "pellucid: the server's answer was not acceptable MCP"}
	errBusy         = &fault{wire.CodeEraBusy, "pellucid: too many requests under way"}
	errExpired      = &fault{wire.CodeExpired, "pellucid: the client did not come back in time"}
	errUnsubscribed = &fault{wire.CodeUnsubscribed, "pellucid: the server did not accept the subscription"}
)

func (f *fault) raw(data []byte) []byte {
	dst := strconv.AppendInt([]byte(`{"code":`), int64(f.code), 10)
	dst = strictjson.AppendQuote(append(dst, `,"message":`...), f.text)
	if data != nil {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return append(dst, '}')
}

// A translator makes of each message of one side what the other understands.
// It is a state machine without a clock or goroutines: what it has to say is
// left in its sides.
type translator interface {
	client(m *wire.Message, now time.Time)
	server(m *wire.Message, now time.Time)
	violation(v *wire.Violation, now time.Time)
	tick(now time.Time)
	// pending is when tick is due; zero = never.
	pending() time.Time
	// passage is what needs no translation, as long as no other message comes.
	passage() passage
}

// item is one thing for a side: a message or, for the client's, what ended the server's.
type item struct {
	m    *wire.Message
	v    *wire.Violation
	over error
	done chan error // told how it went; nil: nothing waits for that
}

// sides hold what a translator has to say to either side.
type sides struct {
	o       Options
	up      []item
	down    []item
	lastID  int64
	errands map[wire.ID]*errand
	next    translator // takes over
	batches *bool      // whether arrays of messages are admitted from the server, if that is news
}

// An errand is a request of our own to the server.
type errand struct {
	due time.Time
	// then takes the answer, which it must not keep; nil if not found.
	then func(m *wire.Message, now time.Time)
}

// firstID begins the ids of our own requests. Those of a relay are counted from
// 1; 32 bits hold both.
const firstID = 1 << 30

func (s *sides) ownID() wire.ID {
	s.lastID++
	return wire.IntID(firstID + s.lastID)
}

func isOwn(id wire.ID) bool {
	n, isInt := id.Int()
	return isInt && n >= firstID
}

// maxHeld bounds the messages that wait for a handshake.
const maxHeld = 256

// delay puts out behind those that wait; a request that is one too many is refused.
func (s *sides) delay(waiting []*wire.Message, out *wire.Message) []*wire.Message {
	if len(waiting) < maxHeld {
		return append(waiting, out)
	}
	if out.Kind == wire.Request {
		s.fail(out.ID, errBusy)
	}
	return waiting
}

// handle returns an unguessable string; false if there is no randomness.
func (s *sides) handle() (string, bool) {
	var b [24]byte
	_, err := io.ReadFull(s.o.rand, b[:])
	return base64.RawURLEncoding.EncodeToString(b[:]), err == nil
}

// ask sends the server a request of our own.
func (s *sides) ask(method string, params []byte, route wire.Route, now time.Time, then func(*wire.Message, time.Time)) wire.ID {
	id := s.ownID()
	if then != nil {
		s.errands[id] = &errand{now.Add(s.o.Patience), then}
	}
	s.send(id, method, params, route)
	return id
}

// tell gives the server a message.
func (s *sides) tell(m *wire.Message) { s.up = append(s.up, item{m: m}) }

// send gives the server a request or, if id is zero, a notification.
func (s *sides) send(id wire.ID, method string, params []byte, route wire.Route) {
	m := wire.NewRequest(id, method, params)
	m.Route = route
	s.tell(m)
}

// cancel tells the server that the client does not wait for the request id any longer.
func (s *sides) cancel(id wire.ID, version string) {
	m := wire.NewCancellation(id, "", false)
	m.Route.Version = version
	s.tell(m)
}

// reply answers a request of the server.
func (s *sides) reply(id wire.ID, result []byte) {
	s.tell(wire.NewResult(id, result))
}

func (s *sides) refuse(id wire.ID, f *fault) {
	s.tell(wire.NewError(id, f.raw(nil)))
}

// answer gives the client a result.
func (s *sides) answer(id wire.ID, result []byte) {
	m := wire.NewResult(id, result)
	m.Whole = true
	s.deliver(m, id)
}

// fail gives the client an error of our own.
func (s *sides) fail(id wire.ID, f *fault) { s.failWith(id, f, nil) }

func (s *sides) failWith(id wire.ID, f *fault, data []byte) {
	s.pass(f.local(id, data))
}

// local is the error response of a fault.
func (f *fault) local(id wire.ID, data []byte) *wire.Message {
	m := wire.NewError(id, f.raw(data))
	if err := m.Parse(); err != nil {
		panic("era: own error: " + err.Error()) // constants and quoted text only
	}
	m.Local, m.Cause, m.Whole = true, f, true
	return m
}

// notify gives the client a notification.
func (s *sides) notify(method string, params []byte, related wire.ID) {
	m := wire.NewRequest(wire.ID{}, method, params)
	m.Related = related
	s.deliver(m, wire.ID{})
}

// deliver gives the client a message that was put together. In place of one that is not
// acceptable the client gets an error, if it waits as id.
func (s *sides) deliver(m *wire.Message, id wire.ID) {
	if m.Parse() == nil {
		s.pass(m)
	} else if !id.IsZero() {
		s.fail(id, errAnswer)
	}
}

// change gives the client, who waits for it as id, the server's message with edits.
func (s *sides) change(m *wire.Message, e *strictjson.Edits, id wire.ID) {
	if m.Edit(e) == nil {
		m.ID = id
		s.pass(m)
		return
	}
	m.Release()
	if !id.IsZero() {
		s.fail(id, errAnswer)
	}
}

// pass gives the client the server's own message.
func (s *sides) pass(m *wire.Message) { s.down = append(s.down, item{m: m}) }

// settle takes the answer to an errand; false if m answers no errand.
func (s *sides) settle(m *wire.Message, now time.Time) bool {
	if m.Kind != wire.Response && m.Kind != wire.ErrorResponse {
		return false
	}
	e := s.errands[m.ID]
	if e == nil {
		return false
	}
	delete(s.errands, m.ID)
	e.then(m, now)
	m.Release()
	return true
}

// overdue ends the errands that got no answer.
func (s *sides) overdue(now time.Time) {
	for id, e := range s.errands {
		if !now.Before(e.due) {
			delete(s.errands, id)
			e.then(nil, now)
		}
	}
}

func (s *sides) nextDue() (due time.Time) {
	for _, e := range s.errands {
		due = earlier(due, e.due)
	}
	return due
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
