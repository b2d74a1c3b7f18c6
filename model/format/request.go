// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Likeness says how much a request looks like one of a format.
type Likeness uint8

// The degrees.
const (
	Unlike   Likeness = iota
	Possible          // it has a list of messages
	Likely            // a message has a part that no other format has
	Sure              // the request has a member that no other format has
)

// Sniff guesses the format of a request; nil if it looks like none.
func Sniff(root strictjson.Value) (best Format) {
	most := Unlike
	for _, f := range All {
		if l := f.Looks(root); l > most {
			best, most = f, l
		}
	}
	return best
}

// A PlaceKind says what a Place is.
type PlaceKind uint8

// The kinds.
const (
	PlaceTool      PlaceKind = iota // a definition of a tool: Name, and More with all that describes it
	PlaceTools                      // a member that defines tools: Name
	PlaceSystem                     // a text of the operator
	PlaceUser                       // a text of the user, or something else that the user has sent
	PlaceAgent                      // a text of the model, or a list that holds nothing but its signed reasoning
	PlaceCall                       // an earlier call: ID, Name, Arguments
	PlaceResult                     // the result of the earlier call ID begins; Value is where
	PlaceServed                     // the result of a call that stands beside it begins: Name, Arguments
	PlaceOutput                     // a text of the result that has begun, or something else in it
	PlaceRetrieved                  // something that was found for the user
	PlaceUnknown                    // a text of an author that this package does not know
	PlaceStrange                    // Value is of a kind that this package does not know
	PlaceUnseen                     // Value names a part of the context that the provider keeps
	PlaceTied                       // Value fits nothing but this very context: signed reasoning, the id of an item
	PlaceList                       // the list of messages begins
	PlaceElement                    // an element of the list has been read; Round says what it holds
)

// A Round says what an element of the list of messages is to those beside it.
type Round uint8

// What an element is.
const (
	RoundFixed  Round = iota // it stays where it is
	RoundCall                // it holds calls
	RoundResult              // it holds nothing but results of calls
)

// A Place is a place in a request. Its strings may be third-party text. Value lies in the
// bytes of the request, so that an edit changes nothing beside it.
type Place struct {
	Kind  PlaceKind
	Value strictjson.Value
	// Instead writes what may stand in the place of a Value that is no string. The zero
	// Instead: the request has to go without it.
	Instead Instead
	// Whole: a Value that is no string is a text all the same, the JSON that it is. Instead
	// writes it where a part of it is changed.
	Whole bool
	// Failed: the client says that the call whose result begins has failed.
	Failed bool

	ID, Name  string
	Arguments strictjson.Value // a string, or the arguments themselves
	More      []strictjson.Value
	Round     Round
}

// An Instead writes a text as a value that a format allows in a certain place.
type Instead struct {
	before, after string
	says          bool // the text stands between them; else before is the value, whatever the text
}

// JSON is the value that says text; "" if nothing may stand there.
func (i Instead) JSON(text string) string {
	if !i.says {
		return i.before
	}
	return i.before + string(strictjson.AppendQuote(nil, text)) + i.after
}

// What says a text as a string, and as a block of chat completions and of messages.
var (
	asString = Instead{says: true}
	asText   = Instead{before: `{"type":"text","text":`, after: "}", says: true}
)

// places takes the places of one request.
type places func(Place)

func (p places) at(k PlaceKind, v strictjson.Value) { p(Place{Kind: k, Value: v}) }

// list begins the list of messages.
func (p places) list(root strictjson.Value, f Format) strictjson.Value {
	list := listOf(root, f)
	p.at(PlaceList, list)
	return list
}

// listOf is the list of messages: a member of the request, or the request itself.
func listOf(root strictjson.Value, f Format) strictjson.Value {
	if root.Kind() == '{' {
		return root.Get(f.List())
	}
	return root
}

func (p places) element(r Round) { p(Place{Kind: PlaceElement, Round: r}) }

// call hands over a call of an earlier turn, as each of the formats spells it.
func (p places) call(id string, v strictjson.Value) {
	if fn := v.Get("function"); fn.Kind() == '{' {
		v = fn
	}
	c := Place{Kind: PlaceCall, ID: id, Name: v.Get("name").Text()}
	for _, name := range []string{"arguments", "input", "args"} {
		if args := v.Get(name); args.Exists() {
			c.Arguments = args
			break
		}
	}
	p(c)
}

// result begins the result of the call of that id. failed: the client says that the call has failed.
func (p places) result(id string, at strictjson.Value, failed bool) {
	p(Place{Kind: PlaceResult, ID: id, Value: at, Failed: failed})
}

// eachBlock calls text with each string of a content: the string itself, or the
// member of each block that is not another kind of block; other takes the rest.
func eachBlock(content strictjson.Value, member string, text func(text, block strictjson.Value), other func(strictjson.Value)) {
	switch content.Kind() {
	case '"':
		text(content, strictjson.Value{})
	case '[':
		for b := range content.Elements() {
			switch {
			case b.Get(member).Kind() == '"':
				text(b.Get(member), b)
			case b.Kind() == '"':
				text(b, strictjson.Value{})
			case other != nil:
				other(b)
			}
		}
	case '{':
		if other != nil {
			other(content)
		}
	}
}

// texts hands over the texts of a content, and what else stands there only if other is set.
func (p places) texts(k PlaceKind, content strictjson.Value, i Instead, other bool) {
	var rest func(strictjson.Value)
	if other {
		rest = func(b strictjson.Value) { p(Place{Kind: k, Value: b, Instead: i}) }
	}
	eachBlock(content, "text", func(text, _ strictjson.Value) { p(Place{Kind: k, Value: text, Instead: i}) }, rest)
}

// blocks hands over all of a content whose author is not trusted.
func (p places) blocks(k PlaceKind, content strictjson.Value, i Instead) {
	eachBlock(content, "text", func(text, block strictjson.Value) {
		p(Place{Kind: k, Value: text, Instead: i})
		p.beside(k, block)
	}, func(b strictjson.Value) { p(Place{Kind: k, Value: b, Instead: i}) })
}

// beside hands over what a block says beside its text, as a title or citations. A request
// may go without it.
func (p places) beside(k PlaceKind, block strictjson.Value) {
	for name, v := range block.Members() {
		switch name.Text() {
		case "text", "type", "cache_control":
			continue
		}
		if bytes.IndexByte(v.Raw(), '"') >= 0 {
			p.at(k, v)
		}
	}
}

// Asked is what a request asks for, beside its context.
type Asked struct {
	Model  string // "" where the request does not name it
	Stream bool
	// InPath: the path names the model and asks for a stream, and not the request.
	InPath bool
	// Bound is the most tokens that the answer may have; 0: not bounded, -1: there are two
	// bounds, or one that is no number above 0.
	Bound int64
	// Wrong says, as constant text, why the answer could not be read for sure; "": it can.
	Wrong string
}

// Why an answer could not be read for sure.
const (
	wrongStray      = "a member's name is almost that of another"
	wrongMany       = "only one answer at a time can be inspected (n)"
	wrongBackground = "answers of background jobs cannot be inspected"
)

// askedMembers are the members of requests of OpenAI's and Anthropic's formats that this
// package reads.
var askedMembers = []string{"model", "messages", "input", "system", "instructions", "tools", "functions", "stream", "n", "background",
	"max_tokens", "max_completion_tokens", "max_output_tokens", "previous_response_id", "conversation", "prompt"}

// asked reads a request of one of these formats, in which members of those names bound the answer.
func asked(root strictjson.Value, bounds ...string) (a Asked) {
	a.Model = root.Get("model").Text()
	a.Stream, _ = root.Get("stream").Bool()
	for _, name := range bounds {
		a.bounded(root.Get(name))
	}
	_, stray := root.Strays(askedMembers)
	n := root.Get("n")
	count, one := n.Int64()
	background, _ := root.Get("background").Bool()
	switch {
	case stray:
		a.Wrong = wrongStray
	case n.Exists() && n.Kind() != 'n' && !(one && count == 1):
		a.Wrong = wrongMany
	case background:
		a.Wrong = wrongBackground
	}
	return a
}

// maxBound is the most tokens that a request may ask for.
const maxBound = 1 << 24

func (a *Asked) bounded(v strictjson.Value) {
	if !v.Exists() {
		return
	}
	n, ok := v.Int64()
	if !ok || n <= 0 || n > maxBound || a.Bound != 0 {
		n = -1
	}
	a.Bound = n
}

// defaultAnswer is how many tokens an answer may have where neither the request nor the
// caller bounds it.
const defaultAnswer = 4096

// errBound is about a request that allows its answer no token.
var errBound = errors.New("a bound of the answer that is not above 0")

// unwanted are members that would make a question something else: a stream, a job in the
// background, a thing to keep, a search.
var unwanted = []string{"stream_options", "background", "include", "mcp_servers", "container",
	"plugins", "web_search_options", "search_parameters"}

// question edits a request of one of OpenAI's and Anthropic's formats, in which members of
// those names bound the answer, the one that is added first.
func question(e *strictjson.Edits, root strictjson.Value, answer int64, bounds ...string) (int64, error) {
	if v := root.Get("stream"); v.Exists() {
		e.Replace(v, []byte("false"))
	}
	for _, name := range unwanted {
		e.Remove(root.Get(name))
	}
	withoutProviders(e, root)
	return bound(e, root, bounds, answer)
}

// bound finds or sets the bound of the answer.
func bound(e *strictjson.Edits, root strictjson.Value, names []string, answer int64) (int64, error) {
	var at strictjson.Value
	for _, name := range names {
		if v := root.Get(name); v.Exists() {
			if at.Exists() {
				e.Remove(at)
			}
			at = v
		}
	}
	most, err := atMost(at, answer)
	if err != nil {
		return 0, err
	}
	raw := strconv.AppendInt(nil, most, 10)
	if at.Exists() {
		e.Replace(at, raw)
	} else {
		e.Append(root, names[0], raw)
	}
	return most, nil
}

// atMost is the bound of an answer of which the request says at, and the caller answer.
func atMost(at strictjson.Value, answer int64) (int64, error) {
	most := answer
	if most <= 0 {
		most = defaultAnswer
	}
	if n, ok := at.Int64(); ok {
		if n <= 0 {
			return 0, errBound
		}
		if answer <= 0 || n < answer {
			most = n
		}
	}
	return min(most, maxBound), nil
}

// clients are the kinds of tools, by how they begin, that the client runs.
var clients = []string{"function", "custom", "bash_", "text_editor_", "computer", "memory_", "local_shell", "apply_patch", "shell"}

// withoutProviders removes the tools that the provider runs by itself.
func withoutProviders(e *strictjson.Edits, root strictjson.Value) {
	tools, left := root.Get("tools"), 0
	for t := range tools.Elements() {
		kind := t.Get("type").Text()
		ours := kind == ""
		for _, c := range clients {
			ours = ours || strings.HasPrefix(kind, c)
		}
		if ours {
			left++
		} else {
			e.Remove(t)
		}
	}
	if left == 0 {
		e.Remove(tools)
		e.Remove(root.Get("tool_choice"))
	}
}

// thoughts hands over the signed reasoning in a message of the model. Where the message holds
// nothing else, it is content that has to stay in some form.
func (p places) thoughts(list []strictjson.Value, others int, content strictjson.Value, instead Instead) {
	switch {
	case others > 0:
		for _, v := range list {
			p.at(PlaceTied, v)
		}
	case len(list) > 0:
		p(Place{Kind: PlaceAgent, Value: content, Instead: instead})
	}
}
