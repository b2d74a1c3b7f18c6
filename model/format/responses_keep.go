// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Keeper is a Format whose provider keeps conversations: a request names the answer that it
// continues, and holds what is new alone.
type Keeper interface {
	Format
	// AppendContinued appends a request, whose body is root, with all of its conversation in it:
	// items, a JSON array of what was said up to the answer that it names, stand before its own.
	AppendContinued(dst []byte, root strictjson.Value, items []byte) []byte
	// AppendTurn appends the JSON array of a conversation: said, which is Asked.Said, and what an
	// answer, whose body is root, says. id is that of the answer; "": it cannot be continued.
	// own: the provider does not know the answer, nor what ids in it stand for.
	AppendTurn(dst, said []byte, root strictjson.Value, own bool) (items []byte, id string)
	// Ended is the body of the answer that the last event of a stream repeats; absent if it
	// does not.
	Ended(e eventstream.Event) strictjson.Value
}

var _ Keeper = responses{}

// responsesKeeps reports whether the provider keeps the answer to a request, and the request
// names nothing else that the provider keeps.
func responsesKeeps(root strictjson.Value) bool {
	if stored, is := root.Get("store").Bool(); is && !stored {
		return false
	}
	for _, name := range []string{"conversation", "prompt"} {
		if v := root.Get(name); v.Exists() && v.Kind() != 'n' {
			return false
		}
	}
	for item := range root.Get("input").Elements() {
		if item.Get("type").Text() == "item_reference" {
			return false
		}
	}
	return true
}

func (responses) AppendContinued(dst []byte, root strictjson.Value, items []byte) []byte {
	var e strictjson.Edits
	e.Remove(root.Get("previous_response_id"))
	list := appendItems([]byte{'['}, items)
	list = append(appendItems(list, root.Get("input").Raw()), ']')
	e.Append(root, "input", list)
	return e.Apply(dst, root)
}

// appendItems appends the elements of a list of items, or the item that a text stands for, to
// a list that has begun.
func appendItems(dst, raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || raw[0] != '[' && raw[0] != '"':
		return dst
	case raw[0] == '[':
		if raw = bytes.TrimSpace(raw[1 : len(raw)-1]); len(raw) == 0 {
			return dst
		}
	}
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	if raw[0] != '"' {
		return append(dst, raw...)
	}
	return append(append(append(dst, `{"role":"user","content":`...), raw...), '}')
}

func (responses) AppendTurn(dst, said []byte, root strictjson.Value, own bool) ([]byte, string) {
	output := root.Get("output")
	switch root.Get("status").Text() {
	case "completed", "incomplete":
	default:
		return dst, ""
	}
	id := root.Get("id").Text()
	if id == "" || output.Kind() != '[' {
		return dst, ""
	}
	dst = appendItems(append(dst, '['), said)
	if !own {
		return append(appendItems(dst, output.Raw()), ']'), id
	}
	var e strictjson.Edits
	for item := range output.Elements() {
		// Reasoning, and ids of items, mean something only to the provider that keeps them.
		if item.Get("type").Text() == "reasoning" {
			e.Remove(item)
		} else {
			e.Remove(item.Get("id"))
		}
	}
	return append(appendItems(dst, e.Apply(nil, output)), ']'), id
}

func (responses) Ended(e eventstream.Event) strictjson.Value {
	root := Parse(e.Data)
	if t := root.Get("type").Text(); t != "response.completed" && t != "response.incomplete" {
		return strictjson.Value{}
	}
	return root.Get("response")
}
