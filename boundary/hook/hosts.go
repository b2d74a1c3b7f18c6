// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/hook/socket"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Host is a program that runs an agent, with the events of its hooks that are answered, the places of texts in the results
// of its tools, and the form of an answer. Measured with the versions that docs/agents.md names.
type Host struct {
	Name string // as the server of its tools, in frames, records and the configuration

	before, after string // the events: a tool is about to run, a tool has returned
	resultMember  string // of tool_response that holds the result, if not all of it does
	showsError    bool   // a changed result reaches the model as an error: it changes only where something was found

	around    [2]string // the host puts these around untrusted texts
	takesText bool      // a changed result is always a text: a result of another kind changes only where something was found

	changeInput, changeResult func(value []byte) []byte
	hint                      func(answer []byte) []byte // adds a hint about defused tokens
	tools                     map[string]tool            // by name; a name that ends with * is a prefix
}

// A tool says where text stands in the results of a tool. Every string passes the choke point whether a row names it or
// not; the strings of a tool without a row are treated like those of its plain text.
type tool struct {
	fenced       places
	plain        places // for a program that parses it or an agent that edits it: lines of a file
	data         places // base64 passes as it is
	noTextIf     string // a member that is true where there is no text
	lossNote     string // behind a changed result, which lacks something: it changes only where something was found
	withheldForm string // a result with the text %s; if it is empty, the strings of the result are replaced
}

// places are JSON pointers without their first slash; * is each element.
type places []string

// Hosts are those whose hooks may change what a model sees of a result.
var Hosts = []*Host{claudeCode, codex, geminiCLI, openCode}

// HostOf returns the host of that name.
func HostOf(name string) (*Host, bool) {
	i := slices.IndexFunc(Hosts, func(h *Host) bool { return h.Name == name })
	if i < 0 {
		return nil, false
	}
	return Hosts[i], true
}

// hintTokens stands beside a result of Claude Code: it looks for the old string of an edit before it runs hooks.
const hintTokens = "pellucid: The result has look-alikes of delimiters of control tokens (U+27E6 to U+27ED, U+2982). " +
	"In what you write the tokens are restored, but Edit finds no old_string that holds one: choose one beside it, or use Bash or Write."

// ofMCP has the texts of what an MCP tool returned, as hosts hand it on: a text, blocks, or a whole result.
var ofMCP = tool{
	fenced:       places{"", "text", "*/text", "*/resource/text", "content/*/text", "content/*/resource/text"},
	data:         places{"*/data", "*/source/data", "*/inlineData/data", "*/resource/blob", "content/*/data", "content/*/resource/blob"},
	withheldForm: `[{"type":"text","text":%s}]`,
}

var claudeShell = tool{
	fenced: places{"stdout", "stderr"}, data: places{"stdout"}, noTextIf: "isImage",
	withheldForm: `{"stdout":%s,"stderr":"","interrupted":false,"isImage":false}`,
}

var claudeCode = &Host{
	Name: "claude-code", before: "PreToolUse", after: "PostToolUse",
	changeInput:  wrapIn(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":`, `}}`),
	changeResult: wrapIn(`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":`, `}}`),
	hint: func(answer []byte) []byte {
		return append(answer[:len(answer)-len("}}")], `,"additionalContext":"`+hintTokens+`"}}`...)
	},
	tools: map[string]tool{
		"Bash":       claudeShell,
		"PowerShell": claudeShell,
		"WebFetch":   {fenced: places{"result"}},
		"WebSearch":  {fenced: places{"results/*"}, plain: places{"results/*/content/*/title"}},
		"Agent":      {fenced: places{"content/*/text"}},
		"Task":       {fenced: places{"content/*/text"}},
		"Read": {
			plain: places{"file/content"}, data: places{"file/base64", "file/cells/*/outputs/*/image/image_data"},
			withheldForm: `{"type":"text","file":{"filePath":"","content":%s,"numLines":1,"startLine":1,"totalLines":1}}`,
		},
		"Grep":   {plain: places{"content", "filenames/*"}},
		"Glob":   {plain: places{"filenames/*"}},
		"mcp__*": ofMCP,
	},
}

var codex = &Host{
	Name: "codex", before: "PreToolUse", after: "PostToolUse", takesText: true,
	// Codex takes no updatedInput without "allow". That approves nothing: a call that needs an approval still asks for it.
	changeInput:  wrapIn(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":`, `}}`),
	changeResult: asText(`{"decision":"block","reason":`, `}`),
	tools: map[string]tool{
		"Bash":        {fenced: places{""}, lossNote: "pellucid: The exit code of the command is not shown."},
		"apply_patch": {plain: places{""}},
		"mcp__*":      ofMCP,
	},
}

var geminiCLI = &Host{
	Name: "gemini-cli", before: "BeforeTool", after: "AfterTool", resultMember: "llmContent", showsError: true, takesText: true,
	around:       [2]string{"<untrusted_context>\n", "\n</untrusted_context>"},
	changeInput:  wrapIn(`{"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":`, `}}`),
	changeResult: asText(`{"decision":"deny","reason":`, `}`),
	tools: map[string]tool{
		"run_shell_command": ofMCP,
		"web_fetch":         ofMCP,
		"google_web_search": ofMCP,
		"mcp_*":             ofMCP,
	},
}

// openCode gets its events through a plugin in JavaScript (boundary/protect/opencode.js).
var openCode = &Host{
	Name: "opencode", before: "tool.execute.before", after: "tool.execute.after",
	changeInput:  wrapIn(`{"args":`, `}`),
	changeResult: wrapIn(`{"output":`, `}`),
	tools: map[string]tool{
		"bash":      {fenced: places{""}},
		"webfetch":  {fenced: places{""}},
		"websearch": {fenced: places{""}},
		"task":      {fenced: places{""}},
		"*":         {fenced: places{"*/text", "*/resource/text"}, data: ofMCP.data, withheldForm: ofMCP.withheldForm}, // blocks: of an MCP tool, whose name has no prefix
	},
}

func wrapIn(before, behind string) func([]byte) []byte {
	return func(value []byte) []byte { return slices.Concat([]byte(before), value, []byte(behind)) }
}

// asText is wrapIn for a host that takes only a text. Blocks of text become their text, and another value its JSON.
func asText(before, behind string) func([]byte) []byte {
	return func(value []byte) []byte {
		text, is := textOf(value)
		if !is {
			text = string(value)
		}
		return wrapIn(before, behind)(strictjson.AppendQuote(nil, text))
	}
}

// textOf returns the text of a value that is a text, blocks of text, or a result of an MCP tool with only such blocks.
func textOf(value []byte) (string, bool) {
	var doc strictjson.Doc
	if doc.Reset(value, strictjson.Limits{Bytes: 2 * socket.MaxEvent, MendSurrogates: true}) != nil {
		return "", false
	}
	v := doc.Root()
	if v.Kind() == '"' {
		return strings.Clone(v.Text()), true
	}
	if v.Kind() == '{' {
		for name := range v.Members() {
			if !slices.Contains([]string{"content", "isError", "_meta"}, name.Text()) {
				return "", false
			}
		}
		v = v.Get("content")
	}
	var texts []string
	for block := range v.Elements() {
		for name := range block.Members() {
			if name.Text() != "text" && name.Text() != "type" {
				return "", false
			}
		}
		if block.Get("text").Kind() != '"' {
			return "", false
		}
		texts = append(texts, block.Get("text").Text())
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}

// toolRow returns the row for the tool of that name, or an empty one.
func (h *Host) toolRow(name string) tool {
	if t, found := h.tools[name]; found {
		return t
	}
	for row, t := range h.tools {
		if prefix, is := strings.CutSuffix(row, "*"); is && strings.HasPrefix(name, prefix) {
			return t
		}
	}
	return tool{}
}

// fencedTexts returns the strings of a result that get a fence.
func (t tool) fencedTexts(result strictjson.Value) []strictjson.Value {
	if none, _ := result.Get(t.noTextIf).Bool(); none {
		return nil
	}
	return t.fenced.findIn(result)
}

// findIn returns the strings of v at the places, in their order.
func (p places) findIn(v strictjson.Value) (found []strictjson.Value) {
	for _, pointer := range p {
		found = stringsAt(found, v, strings.FieldsFunc(pointer, func(r rune) bool { return r == '/' }))
	}
	return found
}

func stringsAt(found []strictjson.Value, v strictjson.Value, names []string) []strictjson.Value {
	switch {
	case len(names) == 0:
		if v.Kind() == '"' {
			found = append(found, v)
		}
	case names[0] == "*":
		for e := range v.Elements() {
			found = stringsAt(found, e, names[1:])
		}
	case v.Kind() == '{':
		found = stringsAt(found, v.Get(names[0]), names[1:])
	}
	return found
}

// discriminators are members whose value tells a host the form of a result.
var discriminators = []string{"type", "status", "mode", "kind"}
