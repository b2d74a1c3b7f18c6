// SPDX-License-Identifier: Apache-2.0

package format

import (
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// behind parts a notice from what the model says, since some clients join the parts of an answer.
const behind = "\n\n"

// noticed appends an answer whose list has one more part, element, before the others.
func noticed(dst []byte, root, list strictjson.Value, element []byte) []byte {
	if list.Kind() != '[' {
		return append(dst, root.Raw()...)
	}
	all := append([]byte{'['}, element...)
	for part := range list.Elements() {
		all = append(append(all, ','), part.Raw()...)
	}
	var e strictjson.Edits
	e.Replace(list, append(all, ']'))
	return e.Apply(dst, root)
}

func (chat) AppendNotice(dst []byte, root strictjson.Value, text string) []byte {
	var e strictjson.Edits
	for c := range root.Get("choices").Elements() {
		m := c.Get("message")
		if v := m.Get("content"); v.Kind() == '"' && v.Text() != "" {
			e.ReplaceText(v, text+behind+v.Text())
		} else {
			e.Append(m, "content", strictjson.AppendQuote(nil, text))
		}
	}
	return e.Apply(dst, root)
}

func (messages) AppendNotice(dst []byte, root strictjson.Value, text string) []byte {
	w := &writer{}
	w.with(`{"type":"text","text":`, text+behind)
	w.raw("}")
	return noticed(dst, root, root.Get("content"), w.b)
}

func (responses) AppendNotice(dst []byte, root strictjson.Value, text string) []byte {
	w := &responsesWriter{}
	w.textItem(itemID+"_notice", text+behind, "completed")
	return noticed(dst, root, root.Get("output"), w.b)
}

func (gemini) AppendNotice(dst []byte, root strictjson.Value, text string) []byte {
	for c := range root.Get("candidates").Elements() {
		w := &writer{}
		w.with(`{"text":`, text+behind)
		w.raw("}")
		return noticed(dst, root, c.Get("content").Get("parts"), w.b)
	}
	return append(dst, root.Raw()...)
}
