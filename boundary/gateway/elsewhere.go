// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An Elsewhere is a kind of message of a server, beside answers to calls of tools, that
// classifiers can judge. What a server says of itself is not one: package descriptions judges it.
type Elsewhere string

// The kinds.
const (
	InPrompts     Elsewhere = "prompts"     // answers to prompts/get
	InResources   Elsewhere = "resources"   // answers to resources/read
	InCompletions Elsewhere = "completions" // answers to completion/complete
	InSampling    Elsewhere = "sampling"    // requests to ask the client's model
	InElicitation Elsewhere = "elicitation" // questions to the person at the client
	InProgress    Elsewhere = "progress"    // messages about the progress of a request or task
	InLogs        Elsewhere = "logs"        // messages of the server's log
	InErrors      Elsewhere = "errors"      // errors that answer any other request than a call
)

// InDescriptions is what a server says of itself: no message, and judged by package descriptions.
const InDescriptions Elsewhere = "descriptions"

// Elsewheres are all kinds of messages.
var Elsewheres = []Elsewhere{InPrompts, InResources, InCompletions, InSampling, InElicitation, InProgress, InLogs, InErrors}

// elsewhereOf is of which kind a message is; "": of none.
func elsewhereOf(p *passage) Elsewhere {
	switch p.msg.Kind {
	case wire.ErrorResponse:
		return InErrors
	case wire.Response:
		switch p.method {
		case mcpmsg.GetPrompt:
			return InPrompts
		case mcpmsg.ReadResource:
			return InResources
		case mcpmsg.Complete:
			return InCompletions
		}
	case wire.Request:
		switch p.method {
		case mcpmsg.Sample:
			return InSampling
		case mcpmsg.Elicit:
			return InElicitation
		}
	case wire.Notification:
		switch p.method {
		case mcpmsg.Progress, mcpmsg.TaskStatus, mcpmsg.TaskChanged:
			return InProgress
		case mcpmsg.LogMessage:
			return InLogs
		}
	}
	return ""
}

// judgesElsewhere says which classifiers have to do with a message that answers no call of
// a tool; nil: none.
func (c *Config) judgesElsewhere(p *passage) *judged {
	if c.Classifiers.Also == nil {
		return nil
	}
	kind := elsewhereOf(p)
	if kind == "" {
		return nil
	}
	members := c.Classifiers.Also(kind)
	if len(members) == 0 {
		return nil
	}
	return &judged{members: members, kind: kind}
}

// unrecorded notes that a message is delivered as it came, of which no decision is recorded.
// j may be nil.
func (j *judged) unrecorded(d *Decision, came strictjson.Value) {
	if j != nil {
		j.server, j.input, j.shown = d.Server, digestOf(came.Raw()), true
	}
}

// watch has a request or a notification of the server, which was delivered, judged behind that.
func (r *relay) watch(p *passage) {
	if p.judged == nil || !p.judged.shown {
		return
	}
	if !r.pace.allows(time.Now()) {
		r.quiet.warn("a server sends more requests and notifications than classifiers are asked about: the others are not judged")
		return
	}
	r.in.behindCopy(p, p.judged.asks(policy.Shadow))
}

// behindCopy has classifiers judge a copy of a message, whose bytes are another's.
func (in *inspector) behindCopy(p *passage, asked []*classify.Member) {
	if len(asked) == 0 {
		return
	}
	_, root, _ := partOf(p.msg)
	doc := new(strictjson.Doc)
	if doc.Reset(bytes.Clone(root.Raw()), strictjson.Limits{MendSurrogates: true}) != nil {
		return // never: it was parsed before
	}
	q := *p
	q.msg = &wire.Message{Kind: wire.Response, ID: wire.IntID(0), Result: doc.Root()}
	in.behind(q, asked, func() {})
}

// pace bounds how many requests and notifications of a server are judged: they answer
// nothing, so that a server can send any number.
type pace struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

// perSecond is how many of a session are judged in a second.
const perSecond = 20

func (p *pace) allows(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.since) >= time.Second {
		p.since, p.n = now, 0
	}
	p.n++
	return p.n <= perSecond
}
