// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// ParseOptions say what is known of a context beside its bytes. The zero value
// trusts nothing but what system, user and the list of tools say.
type ParseOptions struct {
	// Key verifies frames: what one holds has a known origin. nil: nothing has.
	Key *frame.Key
	// UntrustedTool says of which tools the descriptions are untrusted too; nil: of none.
	UntrustedTool func(name string) bool
	// Trust is the weight of a source in thousandths; nil: 0.
	Trust func(Source) int
	// Task, where it is not "", is the task that the host has declared. It is the user's words;
	// what stands in turns of the user is then a segment, unless UserTurns.
	Task      string
	UserTurns bool
	// SharedHosts are further hosts where each owner has pages below the first part of the path.
	SharedHosts []string
}

// Parse takes a request apart: a JSON object as it is sent to the provider, or the
// bare array of its messages. src is copied.
func Parse(f format.Name, src []byte, opt ParseOptions) (*Assembly, error) {
	a := &Assembly{Format: f, src: bytes.Clone(src), doc: new(strictjson.Doc), sharedHosts: opt.SharedHosts}
	if err := a.doc.Reset(a.src, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("counterfactual: parse context: %w", err)
	}
	form := format.Of(f)
	if form == nil {
		return nil, errors.New("counterfactual: parse context: no such format")
	}
	if opt.Task == "" {
		opt.UserTurns = true
	}
	r := &reader{a: a, opt: opt, calls: map[string]format.Place{}, last: map[string]int{}}
	if opt.Task != "" {
		r.task.add(opt.Task)
	}
	if !form.Places(a.doc.Root(), r.place) {
		return nil, errors.New("counterfactual: parse context: not a context of this format")
	}
	if len(a.Segments) > maxSegments {
		return nil, errors.New("counterfactual: parse context: too many segments")
	}
	a.Task, a.Instructions = r.task.text(), r.instructions.text()
	r.group()
	r.carry()
	return a, a.seal()
}

// Sniff guesses the format of a request; "" if it looks like none. A recorded run
// is none: see ParseRun.
func Sniff(src []byte) format.Name {
	var doc strictjson.Doc
	if doc.Reset(src, strictjson.Limits{}) != nil {
		return ""
	}
	if f := format.Sniff(doc.Root()); f != nil {
		return f.Name()
	}
	return ""
}

// reader takes one context apart.
type reader struct {
	a     *Assembly
	opt   ParseOptions
	calls map[string]format.Place // by id
	kinds []format.Round          // of the list's elements
	made  []made                  // the calls, in their order
	last  map[string]int          // by what the agent wrote: the last such call, from 1

	// Of the result that has begun: its source, and what the agent wrote to get it.
	source  Source
	asked   string
	answers string // id of the call that the result answers
	said    string // by the agent, since the last turn of the user
	// fenced is the origin of the last verified fence: those behind it leave it out.
	fenced frame.Origin

	task, instructions paragraphs
}

// place takes a place of the request.
func (r *reader) place(p format.Place) {
	switch p.Kind {
	case format.PlaceTool:
		r.tool(p)
	case format.PlaceTools:
		r.trusted(p.Name, p.Value)
	case format.PlaceSystem:
		r.system(p.Value)
	case format.PlaceUser:
		r.user(p.Value, p.Instead)
	case format.PlaceAgent:
		r.agent(p.Value, p.Instead)
	case format.PlaceCall:
		if p.ID != "" {
			r.calls[p.ID] = p
		}
		r.call(p)
	case format.PlaceResult:
		r.result(p)
	case format.PlaceServed:
		r.call(p)
		r.resultOf(p)
	case format.PlaceOutput:
		if saysFailed(p.Value) {
			r.failed(r.answers)
		}
		if p.Whole {
			r.whole(p)
		} else {
			r.untrusted(r.source, p.Value, r.asked, p.Instead)
		}
	case format.PlaceRetrieved:
		r.untrusted(Source{Class: ClassRetrieved}, p.Value, "", p.Instead)
	case format.PlaceUnknown:
		r.untrusted(Source{Class: ClassUnknown}, p.Value, "", p.Instead)
	case format.PlaceStrange:
		r.odd(OddKind, p.Value)
	case format.PlaceUnseen:
		r.odd(OddUnseen, p.Value)
	case format.PlaceTied:
		r.a.drops = append(r.a.drops, p.Value)
	case format.PlaceList:
		r.a.list = p.Value
	case format.PlaceElement:
		r.kinds = append(r.kinds, p.Round)
	}
}

func (r *reader) odd(code string, v strictjson.Value) {
	const most = 1000
	if len(r.a.Odd) < most {
		r.a.Odd = append(r.a.Odd, Oddity{code, v.Offset()})
	}
}

func (r *reader) trusted(role string, v strictjson.Value) {
	if v.Exists() {
		r.a.Trusted = append(r.a.Trusted, Part{role, len(v.Raw())})
	}
}

// system takes a trusted text. Frames in it are segments all the same: a server's
// instructions may stand there.
func (r *reader) system(v strictjson.Value) {
	if v.Kind() != '"' {
		r.trusted("system", v)
		return
	}
	r.trusted("system", v)
	r.instructions.add(r.pieces(v, slotSystem, Source{Class: ClassUnknown}, ""))
}

// user takes what the user wrote.
func (r *reader) user(v strictjson.Value, instead format.Instead) {
	if !r.opt.UserTurns {
		r.untrusted(Source{Class: ClassUserTurn}, v, "", instead)
		return
	}
	r.trusted("user", v)
	if v.Kind() != '"' {
		r.a.slots = append(r.a.slots, slot{v: v, role: slotTask, block: instead.JSON(taskPlaceholder), pieces: []piece{{segment: -1}}})
		return
	}
	text := r.pieces(v, slotTask, Source{Class: ClassUnknown}, "")
	r.task.add(text)
	if text != "" {
		r.a.Turn, r.a.Proposed, r.said = text, r.said, ""
	}
}

// agent takes the agent's own text. Where untrusted text stands before it, it may
// repeat that, and no variant shows it.
func (r *reader) agent(v strictjson.Value, instead format.Instead) {
	switch block := instead.JSON(agentPlaceholder); {
	case block == "":
	case v.Kind() == '[' || v.Kind() == '"' && len(r.a.Segments) > 0: // reasoning that is signed
		r.a.slots = append(r.a.slots, slot{v: v, role: slotAgent, block: block})
		return
	default:
		return
	}
	if v.Text() == "" {
		return
	}
	r.trusted("agent", v)
	r.said = v.Text()
	if len(r.a.Segments) > 0 {
		r.a.slots = append(r.a.slots, slot{v: v, role: slotAgent})
	}
}

// untrusted takes a text, or something else that instead would replace.
func (r *reader) untrusted(src Source, v strictjson.Value, call string, instead format.Instead) {
	if v.Kind() == '"' {
		r.pieces(v, slotSegment, src, call)
		return
	}
	if !v.Exists() || v.Kind() == 'n' {
		return
	}
	r.odd(OddNoText, v)
	i := r.segment(Segment{Source: src, Digest: sha256.Sum256(v.Raw()), Call: call})
	r.a.slots = append(r.a.slots, slot{v: v, block: instead.JSON(Placeholder), pieces: []piece{{segment: i}}})
}

// whole takes a value that is no string as the text that its JSON is.
func (r *reader) whole(p format.Place) {
	text := string(p.Value.Raw())
	if !p.Value.Exists() || p.Value.Kind() == 'n' {
		return
	}
	i := r.segment(Segment{Source: r.source, Text: text, Digest: sha256.Sum256([]byte(text)), Call: r.asked})
	r.a.slots = append(r.a.slots, slot{v: p.Value, whole: p.Instead, pieces: []piece{{0, len(text), i}}})
}

// pieces cuts a text at the frames in it, adds a slot for it, and returns what is
// no segment.
func (r *reader) pieces(v strictjson.Value, role slotRole, src Source, call string) string {
	text := v.Text()
	s := slot{v: v, role: role}
	var own paragraphs
	at := 0
	plain := func(end int) {
		if at == end {
			return
		}
		part := text[at:end]
		i := -1
		if role != slotSegment {
			own.add(part)
		} else if strings.TrimSpace(part) != "" {
			i = r.segment(Segment{Source: src, Text: part, Digest: sha256.Sum256([]byte(part)), Call: call})
		}
		s.pieces = append(s.pieces, piece{at, end, i})
		at = end
	}
	if r.opt.Key != nil {
		for f := range r.opt.Key.Scan(text, r.fenced) {
			if !f.Verified {
				r.odd(OddForged, v)
				continue
			}
			r.fenced = f.Origin
			plain(f.Start)
			class := src.Class
			if role != slotSegment {
				class = ClassToolResult
			}
			i := r.segment(Segment{
				Source: Source{Class: class, Origin: f.Origin, Verified: true},
				Text:   f.Body, Digest: sha256.Sum256([]byte(f.Body)), Call: call,
			})
			s.pieces = append(s.pieces, piece{f.Start, f.End, i})
			at = f.End
		}
	}
	plain(len(text))
	if len(s.pieces) > 0 {
		r.a.slots = append(r.a.slots, s)
	}
	return own.text()
}

func (r *reader) segment(s Segment) int {
	i := len(r.a.Segments)
	s.ID = "s" + strconv.Itoa(i+1)
	s.made = r.last[s.Call]
	if r.opt.Trust != nil {
		s.Trust = min(max(r.opt.Trust(s.Source), 0), 1000)
	}
	r.a.Segments = append(r.a.Segments, s)
	return i
}

// tool takes the descriptions of a tool, its own and those in its schema, as one
// segment, if they are not trusted.
func (r *reader) tool(p format.Place) {
	t := Tool{Name: p.Name}
	untrusted := r.opt.UntrustedTool != nil && r.opt.UntrustedTool(p.Name)
	for i, v := range p.More {
		if i == 0 && !untrusted {
			t.Description = v.Text()
		}
		for param := range v.Get("properties").Members() {
			t.Parameters = append(t.Parameters, param.Text())
		}
	}
	if r.a.Tools = append(r.a.Tools, t); !untrusted {
		return
	}
	var texts []strictjson.Value
	for _, v := range p.More {
		texts = descriptions(texts, v, true)
	}
	if len(texts) == 0 {
		return
	}
	var all []string
	for _, v := range texts {
		all = append(all, v.Text())
	}
	text := strings.Join(all, "\n")
	i := r.segment(Segment{Source: Source{Class: ClassDescription, Origin: frame.Origin{Tool: frame.Label(p.Name)}}, Text: text, Digest: sha256.Sum256([]byte(text))})
	for _, v := range texts {
		r.a.slots = append(r.a.slots, slot{v: v, pieces: []piece{{0, len(v.Text()), i}}})
	}
}

// descriptions appends v, if it is a string, or every "description" and "title" in
// it. A property may be called so too: then it is an object and no string.
func descriptions(dst []strictjson.Value, v strictjson.Value, itself bool) []strictjson.Value {
	switch v.Kind() {
	case '"':
		if itself && v.Text() != "" {
			dst = append(dst, v)
		}
	case '{':
		for name, val := range v.Members() {
			dst = descriptions(dst, val, name.Text() == "description" || name.Text() == "title")
		}
	case '[':
		for e := range v.Elements() {
			dst = descriptions(dst, e, false)
		}
	}
	return dst
}

// call notes a call.
func (r *reader) call(p format.Place) {
	args := p.Arguments
	r.a.Prior = append(r.a.Prior, Call{ID: p.ID, Name: p.Name, Arguments: []byte(written(args))})
	if args.Exists() {
		r.made = append(r.made, made{args: args, before: len(r.a.Segments)})
		r.last[written(args)] = len(r.made)
	}
}

// written is what the agent wrote as the arguments of a call.
func written(args strictjson.Value) string {
	if args.Kind() == '"' {
		return args.Text()
	}
	return string(args.Raw())
}

// result begins the result of a call.
func (r *reader) result(p format.Place) {
	call, ok := r.calls[p.ID]
	if !ok {
		r.odd(OddOrphan, p.Value)
		r.answers = ""
		r.source, r.asked = Source{Class: ClassToolResult}, ""
		return
	}
	if p.Failed {
		r.failed(p.ID)
	}
	r.answers = p.ID
	r.resultOf(call)
}

// saysFailed reports whether a result begins with the word that a call has failed, for formats that have no member for it.
func saysFailed(v strictjson.Value) bool {
	root := v
	text := strings.TrimLeft(v.Text(), " \t\r\n[(*")
	if inner := within(v); inner.Exists() {
		root = inner
	}
	if root.Kind() == '{' {
		status := strings.ToLower(root.Get("status").Text())
		err := root.Get("error")
		return err.Exists() && err.Kind() != 'n' && err.Kind() != 'f' || root.Get("isError").Kind() == 't' || string(root.Get("success").Raw()) == "false" || status == "error" || status == "failed"
	}
	first := words(text[:min(len(text), 40)])
	return len(first) > 0 && slices.Contains([]string{"error", "failed", "failure", "exception", "timeout", "traceback", "fehler"}, first[0])
}

// failed notes that the last call of an id has failed.
func (r *reader) failed(id string) {
	if id == "" {
		return
	}
	for i, c := range slices.Backward(r.a.Prior) {
		if c.ID == id {
			if r.a.Failed == nil {
				r.a.Failed = map[int]bool{}
			}
			r.a.Failed[i] = true
			return
		}
	}
}

// resultOf begins the result of a call: its source, and what the agent wrote to get it.
func (r *reader) resultOf(call format.Place) {
	r.source, r.asked = Source{Class: ClassToolResult}, written(call.Arguments)
	r.source.Origin.Tool = frame.Label(call.Name)
}

// group finds the rounds: calls and the results behind them.
func (r *reader) group() {
	var neighbours []round
	flush := func() {
		if len(neighbours) > 0 {
			r.a.rounds = append(r.a.rounds, neighbours)
		}
		neighbours = nil
	}
	for i := 0; i < len(r.kinds); {
		if r.kinds[i] != format.RoundCall {
			flush()
			i++
			continue
		}
		start := i
		for i < len(r.kinds) && r.kinds[i] == format.RoundCall {
			i++
		}
		for i < len(r.kinds) && r.kinds[i] == format.RoundResult {
			i++
		}
		neighbours = append(neighbours, round{start, i})
	}
	flush()
}

// paragraphs are texts that are one, with line feeds between those that are not empty.
// There may be very many: each is copied once.
type paragraphs []string

func (p *paragraphs) add(s string) {
	if s != "" {
		*p = append(*p, s)
	}
}

func (p paragraphs) text() string { return strings.Join(p, "\n") }
