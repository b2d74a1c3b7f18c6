// SPDX-License-Identifier: Apache-2.0

// Package webhook tells receivers that the operator has named what waits for a reviewer.
//
// A message is a Standard Webhook (https://www.standardwebhooks.com): a JSON body with the
// headers webhook-id, webhook-timestamp and webhook-signature. The body holds constants,
// codes, ids, counts, times and names of the configuration. It holds no text of a third
// party, no argument and no name of a person.
//
// The store keeps a message in the transaction that keeps what the message is about. A
// [Sender] delivers it at least once, and tries again for three days.
package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/lease"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A Type says what has happened. It is a member of every body.
type Type string

// The types.
const (
	ResultHeld      Type = "result.held"      // a result waits for a reviewer
	CallHeld        Type = "call.held"        // a call waits, and the server has not got it
	SurfaceChanged  Type = "surface.changed"  // items of a server wait, which a model does not see
	SurfaceRejected Type = "surface.rejected" // a server was refused as a whole
	SourceBlocked   Type = "source.blocked"   // all results of a text, tool or server are held
	QueueFull       Type = "queue.full"       // the next item may find no room: it is withheld, and no reviewer can release it
	Test            Type = "test"             // an operator has asked for it
)

// Types are those that a receiver can ask for. It gets Test in any case.
var Types = []Type{ResultHeld, CallHeld, SurfaceChanged, SurfaceRejected, SourceBlocked, QueueFull}

// A Notice is what a message tells. Members that do not apply are zero.
type Notice struct {
	Type    Type
	At      time.Time
	ID      string // of the held item or the block
	Server  string
	Tool    string // may be third-party text
	Rule    string // that held the item
	Code    string // of the finding
	Bytes   int    // of the held item; of QueueFull, of all that wait
	Scope   string // of the block; of QueueFull, what is full: "queue", "server" or "principal"
	Waiting int    // items of the server's surface that wait; of QueueFull, held items
	Until   time.Time
}

// Approved says which names may stand in a message.
type Approved struct {
	Server func(name string) bool         // the configuration names it
	Tool   func(server, name string) bool // the operator has approved it
}

type body struct {
	Type      Type   `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      data   `json:"data"`
}

type data struct {
	ID         string `json:"id,omitempty"`
	Server     string `json:"server,omitempty"`
	Tool       string `json:"tool,omitempty"`
	ToolDigest string `json:"tool_digest,omitempty"`
	Rule       string `json:"rule,omitempty"`
	Code       string `json:"code,omitempty"`
	Bytes      int    `json:"bytes,omitempty"`
	Scope      string `json:"scope,omitempty"`
	Waiting    int    `json:"waiting,omitempty"`
	Expires    string `json:"expires,omitempty"`
}

// Body is the JSON of e. A name that is not approved is "other". Its digest follows for a
// tool, so that a reviewer can compare it with the one that the queue shows.
func (a Approved) Body(e Notice) []byte {
	d := data{ID: e.ID, Server: e.Server, Tool: e.Tool, Rule: label(e.Rule), Code: label(e.Code), Bytes: e.Bytes, Scope: label(e.Scope), Waiting: e.Waiting}
	if e.Server != "" && (!frame.IsLabel(e.Server) || a.Server == nil || !a.Server(e.Server)) {
		d.Server = frame.Other
	}
	if e.Tool != "" && (!frame.IsLabel(e.Tool) || a.Tool == nil || !a.Tool(e.Server, e.Tool)) {
		sum := sha256.Sum256([]byte(e.Tool))
		d.Tool, d.ToolDigest = frame.Other, "sha256:"+hex.EncodeToString(sum[:])
	}
	if !e.Until.IsZero() {
		d.Expires = e.Until.UTC().Format(time.RFC3339)
	}
	b, err := json.Marshal(body{e.Type, e.At.UTC().Format(time.RFC3339), d})
	if err != nil {
		panic("webhook: a struct of strings and numbers does not marshal: " + err.Error())
	}
	return b
}

// label passes a rule or code of this program: words, and names of the configuration.
func label(s string) string {
	for _, r := range s {
		if r < '!' || r > '~' {
			return frame.Other
		}
	}
	if len(s) > 128 {
		return frame.Other
	}
	return s
}

// A Message is one that waits for its delivery, or was given up.
type Message struct {
	ID       string // of the Standard Webhook: the same for every attempt
	Receiver string // name in the configuration
	Type     Type
	At       time.Time
	Body     []byte // nil in a list, and once it was given up

	Tries   int       // attempts that were begun
	Next    time.Time // before which no attempt is made
	Failure Failure   // of the last attempt; "": none has failed
	GivenUp time.Time // zero: it still waits
}

// A Summary counts the messages of one receiver.
type Summary struct {
	Receiver string
	Waiting  int64 // all that are not given up
	Failing  int64 // of these, those of which an attempt has failed
	GivenUp  int64
}

// Bounds of the messages that are kept.
const (
	MaxWaiting   = 10_000              // of one receiver; a further message is dropped
	TryFor       = 3 * 24 * time.Hour  // after which a message is given up
	KeepGivenUp  = 30 * 24 * time.Hour // after which one that was given up is removed
	MaxAttempt   = time.Minute         // of one attempt
	sweepEvery   = time.Hour
	pollEvery    = 2 * time.Second
	firstPause   = time.Second
	longestPause = time.Minute
)

// A Store keeps messages. Its methods may be called at the same time, also from several
// processes on one store.
type Store interface {
	lease.Store
	// MessageDue reports whether the time of a message of the receiver has come.
	MessageDue(ctx context.Context, receiver string, now time.Time) (bool, error)
	// NextMessage returns a message of the receiver whose time has come, or nil. It counts the attempt.
	// The caller holds the lease of the receiver.
	NextMessage(ctx context.Context, receiver string, now time.Time) (*Message, error)
	// MessageDelivered removes a message that has arrived.
	MessageDelivered(ctx context.Context, m *Message) error
	// MessageFailed stores what became of an attempt: Next, Failure, GivenUp. A
	// message of which another attempt has begun since stays as it is.
	MessageFailed(ctx context.Context, m *Message) error
	// ListMessages returns messages without their Body, those that were given up last.
	ListMessages(ctx context.Context, most int) ([]Message, error)
	// MessageSummaries counts, by receiver.
	MessageSummaries(ctx context.Context) ([]Summary, error)
	// SweepMessages gives up what waits since before stale, and removes what was given up
	// before old.
	SweepMessages(ctx context.Context, now, stale, old time.Time) error
}
