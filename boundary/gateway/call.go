// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A call is a request on its way to the server and back.
type call struct {
	id     wire.ID // the client's; zero if the request is our own
	shown  wire.ID // how the client spells it
	n      int64   // ours
	method string
	tool   string // name as the client gave it; a label only if it was listed
	cursor string
	token  string         // raw progressToken
	meta   []byte         // of a request of our own
	task   hold.Digest    // that it is about, if any
	digest hold.Digest    // of the question, where results may be held
	facts  *policy.Facts  // that rules read
	asked  *hold.Question // the arguments as they are kept for a reviewer, if they are
	limit  time.Duration  // of silence, if it has its own
	sent   string         // token that the server gets instead, because another request bears the same
	claim  *wire.Claim    // what the client's headers say
	item   surface.Key    // what it is about; without a name if no server lists that
	wants  uint32         // of a subscription: bits of changing
	watched
	store          storeTime
	restored       restoring // of its params; set before it is sent
	paramsToRepeat []byte    // set before it is sent
	repeated       bool      // the request was sent before, in a session that the server had forgotten

	revision    string      // that the request names, if it does
	unawaited   atomic.Bool // the client does not wait for the answer
	minLogLevel int         // the least that its client wants of log messages, by place in mcpmsg.Levels; negative for none
	abilities   mcpmsg.Abilities
	born        time.Time

	// Guarded by the lock of calls while the call is under way; not changed once it is not, but for next.
	stage     stage
	heard     time.Time
	endless   bool          // a subscription: silence is no fault
	cancelled bool          // by the client, who waits no longer
	held      *wire.Message // waits for the server's tools to be listed
	next      *wire.Message // to be sent behind the request, which is being sent
}

// A stage is how far a call is on its way.
type stage uint8

const (
	fresh    stage = iota // nothing of it goes to the server yet
	sending               // it is being written
	sent                  // the server has it
	answered              // the server has answered it
)

// A callContext ends with the session, and when the client stops waiting for the answer to k.
type callContext struct {
	context.Context
	k *call
}

// Err implements context.Context.
func (c callContext) Err() error {
	if c.k.unawaited.Load() {
		return context.Canceled
	}
	return c.Context.Err()
}

// longest returns the longest time that the call may take.
func (k *call) longest(timeout time.Duration) time.Duration {
	return longestFactor * max(k.patience(timeout), timeout)
}

// Patience with calls that the client has cancelled, and with the lists that this package asks for.
const (
	cancelPatience = 30 * time.Second
	listPatience   = 10 * time.Second
)

func (k *call) patience(timeout time.Duration) time.Duration {
	switch {
	case k.limit > 0 && !k.cancelled:
		return k.limit
	case k.id.IsZero():
		return min(timeout, listPatience)
	case k.cancelled:
		return min(timeout, cancelPatience)
	}
	return timeout
}

// newCall notes the parts of a client's request that its answer will need.
func newCall(m *wire.Message, now time.Time) *call {
	k := &call{id: m.ID, shown: m.ID, claim: m.Claim, method: m.Method, born: now, heard: now, endless: m.Method == mcpmsg.Listen}
	if !m.Alias.IsZero() {
		k.shown = m.Alias
	}
	k.item, k.wants = itemOf(m), wants(m)
	meta := m.Params.Get("_meta")
	k.revision = revision(meta.Get(mcpmsg.KeyVersion).Text())
	k.abilities, k.minLogLevel = mcpmsg.AbilitiesOf(meta.Get(mcpmsg.KeyClientCaps), true), mcpmsg.LevelOf(meta.Get(mcpmsg.KeyLogLevel).Text())
	switch m.Method {
	case mcpmsg.Initialize:
		k.abilities = mcpmsg.AbilitiesOf(m.Params.Get("capabilities"), true)
	case mcpmsg.SetLevel:
		k.minLogLevel = mcpmsg.LevelOf(m.Params.Get("level").Text())
	case mcpmsg.CallTool:
		k.tool = clip(k.item.Name)
	case mcpmsg.ListTools, mcpmsg.ListPrompts, mcpmsg.ListResources, mcpmsg.ListTemplates, mcpmsg.ListTasks:
		k.cursor = strings.Clone(m.Params.Get("cursor").Text())
	}
	if token := meta.Get("progressToken").Raw(); len(token) <= maxToken {
		k.token = string(token)
	}
	return k
}

// wireToken returns the token by which the server knows the call.
func (k *call) wireToken() string {
	if k.sent != "" {
		return k.sent
	}
	return k.token
}

// applyEdits makes m, the client's request, what the server gets. e has the other edits.
func (k *call) applyEdits(m *wire.Message, e *strictjson.Edits) error {
	if k.sent != "" {
		e.Replace(m.Params.Get("_meta").Get("progressToken"), []byte(k.sent))
	}
	if k.restored.tokens > 0 {
		k.restored.came = digestOf(m.Params.Raw())
	}
	if err := m.Edit(e); err != nil {
		return err
	}
	if k.restored.tokens > 0 {
		k.restored.went = digestOf(m.Params.Raw())
	}
	return nil
}

// addressed makes m the answer to the call.
func (k *call) addressed(m *wire.Message) *wire.Message {
	m.ID, m.Alias = k.id, wire.ID{}
	if k.shown != k.id {
		m.Alias = k.shown
	}
	return m
}

const (
	maxToken = 1 << 10
	maxTool  = 1 << 10
)

// clip copies the name of a tool, and drops one that is too long.
func clip(s string) string {
	if len(s) > maxTool {
		return ""
	}
	return strings.Clone(s)
}
