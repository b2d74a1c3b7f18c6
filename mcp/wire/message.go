// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Message is one JSON-RPC 2.0 message, on its way in or out. It is decoded where it
// comes in, changed as a value, and written where it leaves. Its values alias bytes that
// it owns: they are valid until Release.
type Message struct {
	Kind   Kind
	ID     ID
	Method string
	// Params, Result and Error are what the message carries, by its Kind. All are absent
	// in a message that was put together (NewRequest, NewResult, NewError), until Parse.
	Params, Result, Error strictjson.Value

	// Alias is how the peer spells ID where its Conn has given the message an ID of
	// its own, because another of its requests may bear the same; zero: as ID. What is
	// written to the peer shows it.
	Alias ID
	// Related is the peer's request that the message belongs to: the one on whose stream
	// it came, or is to go; zero: none.
	Related ID
	// Whole says that an answer came as one body and not in a stream, and may go so.
	Whole bool
	// Route is what a transport tells the peer of the message beside it.
	Route Route
	// Claim is what the peer's headers say of the message; nil where the
	// transport has none, or the revision does not ask for them. A decision is made
	// on the body, and what differs is refused.
	Claim *Claim

	// Recheck is set on a request about something that a server lists. A transport that has
	// to make a new session does not send the request again, but answers with ErrRenewed:
	// the caller first reads the new lists.
	Recheck bool

	// Caller holds the claims of the caller's token as JSON, if it has any. It must not be changed.
	Caller []byte

	// Local is set on an error response that this program made itself on
	// behalf of a peer that did not answer: its text is constant and ours.
	Local bool
	// Cause is set with Local and says why; it may wrap [ErrUnreachable],
	// [ErrSessionGone] or [ErrRenewed]. Without Local it is the [StatusError] that came with the peer's
	// own error. For the operator: it never goes to the other peer.
	Cause error

	raw []byte                      // of one that was put together: the JSON of what it carries; nil: nothing
	doc *reuse.Held[strictjson.Doc] // of the values; nil if other messages have it too
	buf *reuse.Buffer               // bytes that the values alias, or raw does; nil: shared, or of no Buffer

	kept *kept        // how many have the bytes; nil: the message alone
	room *intake.Room // memory that is counted for the message, if any
}

// NewRequest puts a request together, or a notification if id is zero. params is JSON of
// this program, which the message keeps; nil leaves the member out.
func NewRequest(id ID, method string, params []byte) *Message {
	m := &Message{Kind: Request, ID: id, Method: method, raw: params}
	if id.IsZero() {
		m.Kind = Notification
	}
	return m
}

// NewCancellation puts together the notification that the request of that id is withdrawn.
// reason is constant text of this program, or "". A message to a modern server has modern.
func NewCancellation(of ID, reason string, modern bool) *Message {
	params := of.Append([]byte(`{"requestId":`))
	if reason != "" {
		params = append(params, `,"reason":"`+reason+`"`...)
	}
	if modern {
		params = append(params, `,"_meta":{"`+keyVersion+`":"`+firstModern+`"}`...)
	}
	m := NewRequest(ID{}, methodCancelled, append(params, '}'))
	m.Route.Cancels = of
	return m
}

// NewResult puts the response to id together. result is JSON of this program, which the
// message keeps.
func NewResult(id ID, result []byte) *Message { return &Message{Kind: Response, ID: id, raw: result} }

// NewError puts the error response to id (zero: null) together. object is the JSON of the
// error object, which the message keeps.
func NewError(id ID, object []byte) *Message {
	return &Message{Kind: ErrorResponse, ID: id, raw: object}
}

// Owning says that what the message was put together of stands in b: Release gives it back.
func (m *Message) Owning(b *reuse.Buffer) *Message {
	m.buf = b
	return m
}

// Value is what the message carries: Params, Result or Error.
func (m *Message) Value() strictjson.Value {
	switch m.Kind {
	case Response:
		return m.Result
	case ErrorResponse:
		return m.Error
	}
	return m.Params
}

// Body is the JSON of what the message carries; nil if it carries nothing. It must not be
// changed.
func (m *Message) Body() []byte {
	m.touch()
	if v := m.Value(); v.Exists() {
		return v.Raw()
	}
	return m.raw
}

// carry makes v what the message carries.
func (m *Message) carry(v strictjson.Value) {
	m.raw = nil
	switch m.Kind {
	case Response:
		m.Result = v
	case ErrorResponse:
		m.Error = v
	default:
		m.Params = v
	}
}

// ownLimits are for what has passed the limits of a transport with size bytes, which
// an operator sets, and was changed since.
func ownLimits(size int) strictjson.Limits {
	return strictjson.Limits{Bytes: max(40<<20, size+8<<20), Values: 1<<20 + 1<<16, MendSurrogates: true}
}

// Parse gives a message that was put together its values. The error is that of JSON which
// is not strict.
func (m *Message) Parse() error {
	if m.raw == nil || m.Value().Exists() {
		return nil
	}
	doc := docs.Get()
	decoded.Add(1)
	if err := doc.Value().Reset(m.raw, ownLimits(0)); err != nil {
		doc.Release()
		return err
	}
	m.doc = doc
	m.carry(doc.Value().Root())
	return nil
}

// parsed is a message of constants, numbers and canonical ids, with its values.
func parsed(m *Message) *Message {
	if err := m.Parse(); err != nil {
		panic("wire: own message: " + err.Error())
	}
	return m
}

// Edited is the message with the edits e of its values, in memory of its own; m stays as
// it is. What is not edited is not parsed again. The error is that of an edit which is not
// strict JSON.
func (m *Message) Edited(e *strictjson.Edits) (*Message, error) {
	m.touch()
	v := m.Value()
	if !v.Exists() {
		n := *m
		n.doc, n.buf, n.kept, n.raw = nil, nil, nil, bytes.Clone(m.raw)
		return &n, nil
	}
	doc, buf := docs.Get(), reuse.NewBuffer(len(v.Raw())+e.Grows())
	text, err := doc.Value().ResetEdited(buf.Bytes(), v, e, ownLimits(len(v.Raw())))
	buf.Set(text)
	if err != nil {
		buf.Release()
		doc.Release()
		return nil, err
	}
	n := *m
	n.doc, n.buf, n.kept = doc, buf, nil
	n.carry(doc.Value().Root())
	return &n, nil
}

// Clone is the message in memory of its own.
func (m *Message) Clone() *Message {
	n, err := m.Edited(new(strictjson.Edits))
	if err != nil {
		panic("wire: a message that cannot be copied: " + err.Error()) // it has been parsed
	}
	return n
}

// Edit is Edited in place: the values from before are void, unless there is an error.
func (m *Message) Edit(e *strictjson.Edits) error {
	m.touch()
	if e.Len() == 0 {
		return nil
	}
	n, err := m.Edited(e)
	if err != nil {
		return err
	}
	m.room = nil // n has it
	m.Release()
	*m = *n
	return nil
}

// WithRoom sets the memory that is counted for the message.
func (m *Message) WithRoom(room *intake.Room) *Message {
	m.room = room
	return m
}

// Room returns the memory that is counted for the message, if any. Release gives it back.
func (m *Message) Room() *intake.Room { return m.room }

// answers reports whether the message is a response of either kind.
func (m *Message) answers() bool { return m.Kind == Response || m.Kind == ErrorResponse }

// shown is the message's id as its peer spells it.
func (m *Message) shown() ID {
	if m.Alias.IsZero() {
		return m.ID
	}
	return m.Alias
}

// appendHead appends what stands before the body; a brace stands behind it.
func (m *Message) appendHead(dst []byte) []byte {
	m.touch()
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if m.Kind != Notification {
		dst = m.shown().Append(append(dst, `,"id":`...))
	}
	switch m.Kind {
	case Response:
		return append(dst, `,"result":`...)
	case ErrorResponse:
		return append(dst, `,"error":`...)
	}
	dst = strictjson.AppendQuote(append(dst, `,"method":`...), m.Method)
	if m.Params.Exists() || m.raw != nil {
		dst = append(dst, `,"params":`...)
	}
	return dst
}

// Append appends the message as its peer gets it.
func (m *Message) Append(dst []byte) []byte {
	return append(append(m.appendHead(dst), m.Body()...), '}')
}

// Len is how many bytes Append appends.
func (m *Message) Len() int {
	var head [128]byte
	return len(m.appendHead(head[:0])) + len(m.Body()) + 1
}

// Release gives the message's bytes back for reuse. Calling it is optional, and it is called
// at most once. After it no value of the message, and nothing that aliases one, may be used.
func (m *Message) Release() {
	if m == nil {
		return
	}
	m.touch()
	if m.buf == nil {
		return
	}
	own := kept{buf: m.buf, doc: m.doc, room: m.room}
	of := m.kept
	*m = Message{}
	if reuse.Checked {
		m.buf = own.buf // so that a later use of the message shows
	}
	if of == nil {
		own.free()
		return
	}
	of.doc, of.room = own.doc, own.room
	of.done()
}

// touch is called where a message is used. It panics in a checked build if the message was
// released.
func (m *Message) touch() {
	watch()
	if reuse.Checked {
		_ = m.buf.Bytes()
	}
}

// kept are the bytes of a message that more than the message have, and its values.
type kept struct {
	buf  *reuse.Buffer
	doc  *reuse.Held[strictjson.Doc] // set by Release, like room
	room *intake.Room
	n    atomic.Int32
}

// Keep keeps the message's bytes, behind its Release too, until free is called, once. It is
// for a reader beside the message's way, which has a slice of them. It must not be called at
// the same time as another method of the message.
func (m *Message) Keep() (free func()) {
	m.touch()
	if m.buf == nil {
		return func() {} // the collector keeps them
	}
	if m.kept == nil {
		m.kept = &kept{buf: m.buf}
		m.kept.n.Store(1)
	}
	m.kept.n.Add(1)
	return m.kept.done
}

// done gives the bytes back once nothing has them.
func (k *kept) done() {
	switch n := k.n.Add(-1); {
	case n == 0:
		k.free()
	case n < 0 && reuse.Checked:
		panic("wire: the bytes of a message were given back more often than kept")
	}
}

func (k *kept) free() {
	k.buf.Release()
	k.room.Leave()
	if k.doc != nil {
		k.doc.Release()
	}
}

var decoded atomic.Int64

// Decoded is how many messages, and parts of messages, this process has parsed.
func Decoded() int64 { return decoded.Load() }
