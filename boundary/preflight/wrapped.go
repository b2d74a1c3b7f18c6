// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Wrapped is what a command line of pellucid wrap says of the server behind it.
type Wrapped struct {
	Name    string // what people call it
	Pin     string
	URL     string // env:NAME where the entry's environment has it
	SSE     bool   // the URL speaks HTTP+SSE
	Header  []string
	Bearer  string           // a reference to a token
	TLS     *rules.ClientTLS // of the URL
	Command []string         // without the -- before it
	Env     []string         // NAME=VALUE, or NAME alone to pass it on
	Cwd     string
}

var errUnknownWrap = errors.New("its entry runs behind pellucid wrap, but in a way that this release does not understand")

// unwrapped is the entry as it was before pellucid protect rewrote it, and how it is
// wrapped; nil if it is not. The parser of the command line reads what protect writes.
func (f *Finder) unwrapped(v strictjson.Value) (*Wrapped, []byte, error) {
	from, member := v, "command"
	if v.Get("command").Kind() == '{' { // older Zed
		from, member = v.Get("command"), "path"
	}
	command := []string{from.Get(member).Text()}
	for a := range from.Get("args").Elements() {
		command = append(command, a.Text())
	}
	words := build.WrapWords(command, "")
	if words == nil {
		return nil, nil, nil
	}
	w, err := f.ParseWrap(words)
	if err != nil {
		return nil, nil, errUnknownWrap
	}
	values := map[string]string{}
	for name, val := range from.Get("env").Members() {
		values[name.Text()] = val.Text()
	}
	if cwd := v.Get("cwd"); w.Cwd == "" && cwd.Kind() == '"' {
		w.Cwd = strings.Clone(cwd.Text())
	}
	raw, err := w.entry(values)
	return w, raw, err
}

// entry is what a client's file would say of the server. values is the environment of the
// entry that wraps it.
func (w *Wrapped) entry(values map[string]string) ([]byte, error) {
	given := func(ref string) string {
		if name, ok := strings.CutPrefix(ref, "env:"); ok {
			return values[name]
		}
		return ref
	}
	out := map[string]any{}
	switch {
	case w.URL != "":
		headers := map[string]string{}
		for _, spec := range w.Header {
			name, ref, _ := strings.Cut(spec, "=")
			headers[name] = given(ref)
		}
		if w.Bearer != "" {
			headers["Authorization"] = "Bearer " + given(w.Bearer)
		}
		out["url"], out["headers"] = given(w.URL), headers
		if w.SSE {
			out["type"] = "sse"
		}
	case len(w.Command) > 0:
		environ := map[string]string{}
		for _, spec := range w.Env {
			name, value, here := strings.Cut(spec, "=")
			if !here {
				value = values[name]
			}
			environ[name] = value
		}
		out["command"], out["args"], out["env"] = w.Command[0], append([]string{}, w.Command[1:]...), environ
		if w.Cwd != "" {
			out["cwd"] = w.Cwd
		}
	default:
		return nil, errors.New("its entry wraps nothing")
	}
	return json.Marshal(out)
}
