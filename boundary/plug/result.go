// SPDX-License-Identifier: Apache-2.0

package plug

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// resultAnswer is what POST /v1/result answers. Result is always one that may go
// to a model; of one that was withheld it is a constant text.
type resultAnswer struct {
	Verdict string `json:"verdict"` // passed, changed or withheld
	validation
	Result       jsontext.Value `json:"result"`
	Findings     jsontext.Value `json:"findings"`      // as in docs/spec/frame.md
	NotInspected jsontext.Value `json:"not_inspected"` // likewise
	Evidence     string         `json:"evidence"`
}

// result answers POST /v1/result.
func (h *handler) result(q *query) (any, *refusal) {
	server, okServer := q.text("server")
	tool, okTool := q.text("tool")
	name, okProfile := q.text("profile")
	profile, known := map[string]gateway.Profile{"": gateway.DefaultProfile, "mcp": gateway.MCP, "faithful": gateway.Faithful}[name]
	raw, schema := q.raw("result"), q.raw("outputSchema")
	if !q.has("server", "tool", "result", "outputSchema", "profile") || !okServer || !okTool || !okProfile || !known || raw == nil {
		return nil, errShape
	}
	clean, d, err := h.inspector(server).Inspect(q.ctx, gateway.ToolResult{Server: server, Tool: tool, Raw: raw, Schema: schema, Profile: profile, Room: q.room})
	if err != nil {
		return nil, errInternal
	}
	var doc strictjson.Doc
	if doc.Reset(clean, strictjson.Limits{}) != nil {
		return nil, errInternal
	}
	note := doc.Root().Get("_meta").Get(frame.MetaKey)
	a := resultAnswer{
		Verdict: string(d.Verdict), Result: clean, Evidence: d.ID.String(),
		Findings: listOf(note.Get("findings")), NotInspected: listOf(note.Get("not_inspected")),
	}
	var messages []message
	for f := range note.Get("findings").Elements() {
		n, _ := f.Get("count").Int64()
		path := "/result"
		if field := f.Get("field").Text(); field != frame.Other { // of the result as a whole
			path += "/" + field
		}
		messages = append(messages, messageOf(path, finding.Code(f.Get("code").Text()), int(n)))
	}
	worst := finding.Info
	for _, c := range append(d.Findings, d.Withheld...) {
		worst = max(worst, c.Code.Severity())
	}
	a.validation = validationOf(messages, worst)
	a.Valid = a.Valid && d.Verdict != gateway.Withheld
	return a, nil
}

func listOf(v strictjson.Value) jsontext.Value {
	if v.Kind() != '[' {
		return jsontext.Value("[]")
	}
	return v.Raw()
}

// notInspected is a tool's result that says that there is none.
const notInspected = `{"content":[{"type":"text","text":"[pellucid could not inspect this result]"}],"isError":true}`

// dockerServer is the server's label where the URL does not say another.
const dockerServer = "docker"

// docker answers an interceptor of Docker's MCP gateway that runs after a tool: a
// tool's result, or null if the call failed, comes; a tool's result goes. That
// gateway looks at no status and takes an answer without a body for consent, so that
// a refusal is a tool's result as well.
func (h *handler) docker(w http.ResponseWriter, r *http.Request) {
	b, room, no := h.readBody(w, r)
	defer room.Leave()
	if no != nil {
		h.write(w, r, no, []byte(notInspected))
		return
	}
	about := r.URL.Query()
	server := about.Get("server")
	if server == "" {
		server = dockerServer
	}
	clean, _, err := h.inspector(server).Inspect(r.Context(), gateway.ToolResult{Server: server, Tool: about.Get("tool"), Raw: b, Room: room})
	if err != nil {
		h.write(w, r, errInternal, []byte(notInspected))
		return
	}
	h.write(w, r, nil, clean)
}
