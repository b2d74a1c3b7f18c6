// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// LabelMember is the member of an answer that holds a label. No provider has a member of this
// name, and clients pass over members that they do not know.
const LabelMember = "pellucid"

// AppendLabelled appends an answer, or the data of an event of one, whose body is root, with label,
// one JSON value, as one more member. Where an event has an answer in it, the label stands there,
// since clients put the answer together from it.
func AppendLabelled(dst []byte, root strictjson.Value, label []byte) []byte {
	in := root
	switch root.Get("type").Text() {
	case "response.created", "response.completed", "response.incomplete":
		in = root.Get("response")
	case "message_start":
		in = root.Get("message")
	}
	if in.Kind() != '{' {
		in = root
	}
	var e strictjson.Edits
	e.Append(in, LabelMember, label)
	return e.Apply(dst, root)
}

// AppendLabelledEvents appends events of an answer with label in the last of them, and with first
// in the first of them, too, that has a JSON object for its data. Every other byte stays.
func AppendLabelledEvents(dst []byte, f Format, events, label []byte, first bool) []byte {
	type object struct{ start, end int } // of the data in events
	var objects []object
	split := f.Split(len(events)+1, true)
	split.Feed(events)
	at := 0
	for e, ok, err := split.Next(); ok && err == nil; e, ok, err = split.Next() {
		// Data that stands in several lines is not found, and stays as it is.
		if i := bytes.Index(events[at:], e.Data); len(e.Data) > 0 && e.Data[0] == '{' && i >= 0 {
			objects = append(objects, object{at + i, at + i + len(e.Data)})
			at += i + len(e.Data)
		}
	}
	at = 0
	for i, o := range objects {
		if i != len(objects)-1 && !(first && i == 0) {
			continue
		}
		dst = append(dst, events[at:o.start]...)
		if root := Parse(events[o.start:o.end]); root.Exists() {
			dst = AppendLabelled(dst, root, label)
		} else {
			dst = append(dst, events[o.start:o.end]...)
		}
		at = o.end
	}
	return append(dst, events[at:]...)
}
