// SPDX-License-Identifier: Apache-2.0

package format

import (
	"slices"
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// geminiGet is the member of that name in either spelling.
func geminiGet(v strictjson.Value, name string) strictjson.Value {
	if m := v.Get(name); m.Exists() {
		return m
	}
	return v.Get(snake(name))
}

// elements calls each with the elements of a list. Google takes one value for a list of one.
func elements(list strictjson.Value, each func(strictjson.Value)) {
	if list.Kind() == '{' {
		each(list)
	}
	for e := range list.Elements() {
		each(e)
	}
}

func (gemini) List() string { return "contents" }

func (gemini) Looks(root strictjson.Value) Likeness {
	if root.Get("contents").Exists() {
		return Sure
	}
	if root.Kind() == '[' {
		for m := range root.Elements() {
			if m.Get("parts").Exists() {
				return Likely
			}
		}
	}
	return Unlike
}

// geminiMembers are members of a request that this package reads.
var geminiMembers = []string{"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "cachedContent"}

func (gemini) Asks(root strictjson.Value) (a Asked) {
	a.InPath = true
	config := geminiGet(root, "generationConfig")
	a.bounded(geminiGet(config, "maxOutputTokens"))
	n := geminiGet(config, "candidateCount")
	count, one := n.Int64()
	var f fields
	f.strays(root, geminiMembers...)
	f.strays(config, "maxOutputTokens", "candidateCount")
	switch {
	case f.odd != 0 || geminiTwice(root, geminiMembers...) || geminiTwice(config, "maxOutputTokens", "candidateCount"):
		a.Wrong = wrongStray
	case n.Exists() && n.Kind() != 'n' && !(one && count == 1):
		a.Wrong = wrongMany
	}
	return a
}

// geminiTwice reports whether a member is there in both spellings.
func geminiTwice(v strictjson.Value, names ...string) bool {
	for _, name := range names {
		if other := snake(name); other != name && v.Get(name).Exists() && v.Get(other).Exists() {
			return true
		}
	}
	return false
}

// What stands in the place of a part, of the parts of a message, and of what a function has
// returned.
var (
	asPart     = Instead{before: `{"text":`, after: "}", says: true}
	asParts    = Instead{before: `[{"text":`, after: "}]", says: true}
	asReturned = Instead{before: `{"result":`, after: "}", says: true}
	// unsigned is the signature that Google has for a call that another model has made.
	unsigned = Instead{before: `"skip_thought_signature_validator"`}
)

func (gemini) Places(root strictjson.Value, each func(Place)) bool {
	p := places(each)
	elements(root.Get("tools"), func(t strictjson.Value) {
		elements(geminiGet(t, "functionDeclarations"), func(fn strictjson.Value) {
			more := []strictjson.Value{fn.Get("description")}
			for _, name := range []string{"parameters", "parametersJsonSchema", "response", "responseJsonSchema"} {
				more = append(more, geminiGet(fn, name))
			}
			p(Place{Kind: PlaceTool, Name: fn.Get("name").Text(), More: more})
		})
	})
	p(Place{Kind: PlaceTools, Name: "tools", Value: root.Get("tools")})
	system := geminiGet(root, "systemInstruction")
	if system.Kind() == '"' {
		p.at(PlaceSystem, system)
	}
	elements(system.Get("parts"), func(part strictjson.Value) { p.at(PlaceSystem, part.Get("text")) })
	if v := geminiGet(root, "cachedContent"); says(v) {
		p.at(PlaceUnseen, v)
	}
	list := p.list(root, gemini{})
	ok := list.Kind() == '[' || list.Kind() == '{'
	elements(list, func(m strictjson.Value) {
		ok = ok && m.Kind() == '{'
		p.element(p.geminiMessage(m))
	})
	return ok
}

func (p places) geminiMessage(m strictjson.Value) Round {
	is, own := RoundFixed, false
	role := m.Get("role").Text()
	if role == "model" {
		return p.geminiModel(m)
	}
	elements(m.Get("parts"), func(part strictjson.Value) {
		returned, text := geminiGet(part, "functionResponse"), part.Get("text")
		own = own || !returned.Exists()
		switch {
		case geminiTwice(part, "functionResponse", "functionCall"):
			p.at(PlaceUnseen, part)
		case returned.Exists():
			p.geminiReturned(returned)
			is = RoundResult
		case role != "user" && role != "":
			p.at(PlaceStrange, part)
			p(Place{Kind: PlaceUnknown, Value: part, Instead: asPart})
		case text.Kind() == '"':
			p(Place{Kind: PlaceUser, Value: text, Instead: asPart})
		default:
			p(Place{Kind: PlaceUser, Value: part, Instead: asPart})
		}
	})
	if own {
		return RoundFixed
	}
	return is
}

// geminiModel takes a message of the model.
func (p places) geminiModel(m strictjson.Value) Round {
	is, rest := RoundFixed, 0
	var thoughts []strictjson.Value
	parts := m.Get("parts")
	elements(parts, func(part strictjson.Value) {
		rest++
		text, call, signature := part.Get("text"), geminiGet(part, "functionCall"), geminiGet(part, "thoughtSignature")
		ran, code := geminiGet(part, "codeExecutionResult"), geminiGet(part, "executableCode")
		thought, _ := part.Get("thought").Bool()
		switch {
		case geminiTwice(part, "functionCall", "thoughtSignature", "codeExecutionResult"):
			p.at(PlaceUnseen, part)
		case call.Exists():
			p.call(geminiID(call), call)
			is = RoundCall
			if signature.Exists() {
				p(Place{Kind: PlaceAgent, Value: signature, Instead: unsigned})
			}
			return
		case thought:
			thoughts = append(thoughts, part)
			rest--
			return
		case text.Kind() == '"':
			p.at(PlaceAgent, text)
		case ran.Exists():
			p(Place{Kind: PlaceServed, Value: part, Name: "code_execution"})
			p.at(PlaceOutput, ran.Get("output"))
		case code.Exists():
			p.at(PlaceAgent, code.Get("code"))
		default:
			p.at(PlaceStrange, part)
			p(Place{Kind: PlaceUnknown, Value: part, Instead: asPart})
			return
		}
		if signature.Exists() {
			p.at(PlaceTied, signature)
		}
	})
	if rest == 0 && len(thoughts) > 0 {
		p(Place{Kind: PlaceAgent, Value: parts, Instead: asParts})
		return is
	}
	for _, part := range thoughts {
		p.at(PlaceTied, part)
	}
	return is
}

// geminiID is the id of a call or a result. Where there is none, the result is of the last
// call of that function.
func geminiID(v strictjson.Value) string {
	if id := v.Get("id").Text(); id != "" {
		return id
	}
	return chatFunctionID(v)
}

// geminiReturned takes what a function has returned. A frame is found, and a text is cut,
// where it is a string of its own. What says more than that, by the names of members or by
// numbers, is one text: the JSON that it is.
func (p places) geminiReturned(v strictjson.Value) {
	p.result(geminiID(v), v, geminiFailed(v))
	response := v.Get("response")
	if geminiPlain(response, 0) {
		p.geminiTexts(response)
	} else {
		p(Place{Kind: PlaceOutput, Value: response, Instead: asReturned, Whole: true})
	}
	elements(v.Get("parts"), func(part strictjson.Value) { p(Place{Kind: PlaceOutput, Value: part}) })
}

// geminiTexts takes each string of a plain response.
func (p places) geminiTexts(v strictjson.Value) {
	switch v.Kind() {
	case '"':
		p(Place{Kind: PlaceOutput, Value: v})
	case '{':
		for name, m := range v.Members() {
			if name.Text() != "type" {
				p.geminiTexts(m)
			}
		}
	case '[':
		for e := range v.Elements() {
			p.geminiTexts(e)
		}
	}
}

// plainNames are names of members that say nothing by themselves: those that clients wrap
// the text of a result in.
var plainNames = []string{"result", "output", "error", "content", "text", "isError", "is_error"}

// geminiPlain reports whether a response says what it says in strings alone.
func geminiPlain(v strictjson.Value, depth int) bool {
	const deepest, most = 4, 16
	switch v.Kind() {
	case '{':
		for name, m := range v.Members() {
			kind := name.Text() == "type" && m.Text() == "text"
			if depth > deepest || !kind && (!slices.Contains(plainNames, name.Text()) || !geminiPlain(m, depth+1)) {
				return false
			}
		}
	case '[':
		if v.Len() > most || depth > deepest {
			return false
		}
		for e := range v.Elements() {
			if !geminiPlain(e, depth+1) {
				return false
			}
		}
	}
	return v.Kind() != '0'
}

func (gemini) Question(e *strictjson.Edits, root strictjson.Value, answer int64) (int64, error) {
	left := 0
	tools := root.Get("tools")
	elements(tools, func(t strictjson.Value) {
		if !geminiGet(t, "functionDeclarations").Exists() && !geminiGet(t, "computerUse").Exists() {
			e.Remove(t) // one that the provider runs by itself
			return
		}
		left++
		for name, m := range t.Members() {
			switch name.Text() {
			case "functionDeclarations", "function_declarations", "computerUse", "computer_use":
			default:
				e.Remove(m)
			}
		}
	})
	if left == 0 {
		e.Remove(tools)
		e.Remove(geminiGet(root, "toolConfig"))
	}
	e.Remove(root.Get("store"))
	config := geminiGet(root, "generationConfig")
	at := geminiGet(config, "maxOutputTokens")
	most, err := atMost(at, answer)
	if err != nil {
		return 0, err
	}
	bound := strconv.AppendInt(nil, most, 10)
	switch {
	case at.Exists():
		e.Replace(at, bound)
	case config.Kind() == '{':
		e.Append(config, "maxOutputTokens", bound)
	default:
		e.Remove(root.Get("generation_config")) // null
		e.Append(root, "generationConfig", []byte(`{"maxOutputTokens":`+string(bound)+"}"))
	}
	return most, nil
}

func (gemini) Sign(key string, set func(name, value string)) {
	if key != "" {
		set("X-Goog-Api-Key", key)
	}
}

func (gemini) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	w := &body{writer: writer{dst}}
	w.raw("{")
	if r.System != "" {
		w.with(`"systemInstruction":{"parts":[{"text":`, r.System)
		w.raw("}]},")
	}
	turns := turnsOf(r.Messages)
	names := map[string]string{} // of functions, by the id of a call
	w.raw(`"contents":`)
	w.list(len(turns), func(i int) { w.geminiTurn(turns[i], names) })
	if len(r.Tools) > 0 {
		w.raw(`,"tools":[{"functionDeclarations":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{`, &r.Tools[i], `,"parametersJsonSchema":`)
			w.raw("}")
		})
		w.raw("}]")
		if r.Choice != ChooseAuto {
			mode := map[Choice]string{ChooseNone: "NONE", ChooseAny: "ANY"}[r.Choice]
			w.raw(`,"toolConfig":{"functionCallingConfig":{"mode":"` + mode + `"}}`)
		}
	}
	w.raw(`,"generationConfig":{"maxOutputTokens":`)
	w.number(r.MaxTokens)
	w.temperature(`,"temperature":`, r)
	if r.Seed != nil {
		w.raw(`,"seed":`)
		w.number(*r.Seed)
	}
	w.raw("}}")
	return w.b, w.err
}

func (w *body) geminiTurn(turn []Message, names map[string]string) {
	role := "user"
	if turn[0].Role == RoleAssistant {
		role = "model"
	}
	w.raw(`{"role":"` + role + `","parts":[`)
	for i := range turn {
		w.items(&turn[i], func(m *Message) {
			w.with(`{"functionResponse":{"id":`, m.CallID)
			w.with(`,"name":`, names[m.CallID])
			member := "result"
			if m.Failed {
				member = "error"
			}
			w.with(`,"response":{"`+member+`":`, m.Text)
			w.raw("}}")
		}, func(m *Message) {
			w.with(`{"text":`, m.Text)
		}, func(c *Call) {
			names[c.ID] = c.Name
			w.with(`{"functionCall":{"id":`, c.ID)
			w.with(`,"name":`, c.Name)
			w.raw(`,"args":`)
			w.object(c.arguments(), "arguments of a tool call")
			w.raw("}")
		})
	}
	w.raw("]}")
}

// geminiFailed reports whether a result is that of a call that has failed: it has a member error,
// and none for an output.
func geminiFailed(returned strictjson.Value) bool {
	r := returned.Get("response")
	return r.Get("error").Exists() && !r.Get("output").Exists() && !r.Get("result").Exists()
}
