// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// defaultAnswer is how many tokens an answer may have where neither the request nor
// the budget bounds it.
const defaultAnswer = 4096

// bounds are the members that bound an answer, the one that is added first.
var bounds = map[format.Name][]string{
	format.Chat:      {"max_tokens", "max_completion_tokens"},
	format.Messages:  {"max_tokens"},
	format.Responses: {"max_output_tokens"},
}

// unwanted are members that would make a question something else: a stream, a job
// in the background, a thing to keep.
var unwanted = []string{"stream_options", "background", "store", "include", "mcp_servers", "container"}

// Question is the body that asks a model to answer a rendered variant: one answer,
// no stream, of at most answer tokens (0 = what src says, else 4096), nothing that
// the provider keeps, and no tool that the provider would run by itself, since to
// ask must do nothing. It returns the bound of the answer as well.
func Question(f format.Name, src []byte, answer int64) (body []byte, output int64, err error) {
	var doc strictjson.Doc
	if err := doc.Reset(src, strictjson.Limits{}); err != nil || doc.Root().Kind() != '{' {
		return nil, 0, errors.New("run: question: no strict JSON object")
	}
	root := doc.Root()
	var e strictjson.Edits
	if v := root.Get("stream"); v.Exists() {
		e.Replace(v, []byte("false"))
	}
	for _, name := range unwanted {
		if v := root.Get(name); v.Exists() && (name != "store" || f != format.Responses) {
			e.Remove(v)
		}
	}
	if f == format.Responses { // there, to be kept is the default
		e.Append(root, "store", []byte("false"))
	}
	withoutProviders(&e, root)
	output, err = bound(&e, root, bounds[f], answer)
	return e.Apply(make([]byte, 0, len(src)+64), root), output, err
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
	most := answer
	if most <= 0 {
		most = defaultAnswer
	}
	if n, ok := at.Int64(); ok {
		if n <= 0 {
			return 0, errors.New("run: question: a bound of the answer that is none")
		}
		if answer <= 0 || n < answer {
			most = n
		}
	}
	most = min(most, 1<<24)
	raw := strconv.AppendInt(nil, most, 10)
	if at.Exists() {
		e.Replace(at, raw)
	} else if len(names) > 0 {
		e.Append(root, names[0], raw)
	}
	return most, nil
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
