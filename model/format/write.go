// SPDX-License-Identifier: Apache-2.0

package format

import "github.com/pellucid-mcp/pellucid/text/strictjson"

// A writer puts JSON and events together.
type writer struct{ b []byte }

func (w *writer) raw(s string)   { w.b = append(w.b, s...) }
func (w *writer) text(s string)  { w.b = strictjson.AppendQuote(w.b, s) }
func (w *writer) value(v []byte) { w.b = append(w.b, v...) }

// with writes before, and s as a string after it.
func (w *writer) with(before, s string) {
	w.raw(before)
	w.text(s)
}

// or writes a value, or absent where it is absent.
func (w *writer) or(v strictjson.Value, absent string) {
	if v.Exists() {
		w.value(v.Raw())
	} else {
		w.raw(absent)
	}
}

// event writes one event; data writes its data, which holds no end of a line.
func (w *writer) event(name string, data func()) {
	if name != "" {
		w.raw("event: " + name + "\n")
	}
	w.raw("data: ")
	start := len(w.b)
	data()
	for i, c := range w.b[start:] { // white space of the provider's between values
		if c == '\n' || c == '\r' {
			w.b[start+i] = ' '
		}
	}
	w.raw("\n\n")
}

// done writes the line that ends a stream of chat completions.
func (w *writer) done() { w.raw("data: [DONE]\n\n") }
