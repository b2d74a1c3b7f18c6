// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Framing says what is framed beside the text of tools, and what becomes of
// structuredContent. Its zero value frames what no program parses.
type Framing struct {
	Resources bool // plain text that resources/read returns
	Prompts   bool // text of the messages that prompts/get returns
	// AnyType frames the text of a resource whatever its mimeType says, also if a
	// program has to parse it.
	AnyType bool
	// StructuredText delivers structuredContent as JSON in a text block, and takes
	// outputSchema from what the client is told of the tool.
	StructuredText bool
}

// isFramed reports whether text of a treatment is framed in this message.
func (w *walker) isFramed(t mcpmsg.Treatment) bool {
	switch t {
	case mcpmsg.ToolText:
		return w.frames
	case mcpmsg.ResourceText:
		return w.frames && w.framing.Resources
	case mcpmsg.PromptText:
		return w.frames && w.framing.Prompts
	}
	return false
}

// holdsTag reports whether text of a type can stand between tags: no program parses it.
func holdsTag(mimeType string) bool {
	kind, _, _ := strings.Cut(mimeType, ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "", "text/plain", "text/markdown":
		return true
	}
	return false
}

// everywhere is the place of a message in which nothing is framed.
var everywhere = frame.Places{List: []string{"."}}

// placing notes which places of a message are framed and which are not.
type placing struct {
	framing   Framing
	frames    bool // something in the message may be framed
	muted     int  // above 0: a place that holds this one is noted
	words     int  // names and strings of a third party that stay
	removed   bool // the last unit was
	noticed   bool // a frame of the message has the notice
	first     bool // the last frame has it
	framed    frame.Places
	notFramed frame.Places
}

func (p *placing) reset() {
	clear(p.framed.List)
	clear(p.notFramed.List)
	*p = placing{framing: p.framing, frames: p.frames, framed: frame.Places{List: p.framed.List[:0]}, notFramed: frame.Places{List: p.notFramed.List[:0]}}
}

// placed notes the place where the walker stands.
func (w *walker) placed(framed bool) {
	switch {
	case !w.frames || w.muted > 0:
	case framed:
		w.framed.Add(w.spell(true))
	default:
		w.notFramed.Add(w.spell(true))
	}
}

// A placeMark is how much was noted at some time.
type placeMark struct {
	framed, framedMore, not, notMore int
	noticed                          bool
}

func (p *placing) mark() placeMark {
	return placeMark{len(p.framed.List), p.framed.More, len(p.notFramed.List), p.notFramed.More, p.noticed}
}

// backTo forgets what was noted since.
func (p *placing) backTo(m placeMark) {
	p.framed.List, p.framed.More = p.framed.List[:m.framed], m.framedMore
	p.notFramed.List, p.notFramed.More = p.notFramed.List[:m.not], m.notMore
	p.noticed = p.noticed && m.noticed
}

// forget forgets a place and what is below it: it is not delivered.
func (p *placing) forget(place string) {
	for _, all := range [...]*frame.Places{&p.framed, &p.notFramed} {
		kept := all.List[:0]
		for _, s := range all.List {
			if s != place && !strings.HasPrefix(s, place+"/") {
				kept = append(kept, s)
			}
		}
		all.List = kept
	}
}
