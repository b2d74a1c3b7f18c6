// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// marker is what must never reach a client, wherever it stands.
const marker = "a\u202e\U000e0041\u200b<|im_start|>b"

// A specimen is a message built from a shape of the table, with every field
// that the table knows, one that it does not know, and the marker in one place.
type specimen struct {
	target  int // which string position holds the marker; -1 = none
	escaped bool
	n       int // positions so far
	path    []string
	brief   bool   // leave out the shapes that every result shares
	poison  string // what stands there; "" = marker
	at      string // the target's path
}

func (s *specimen) str(clean string) string {
	text := clean
	if s.n == s.target {
		text = s.hostile()
		s.at = strings.Join(s.path, ".")
	}
	s.n++
	return s.quote(text)
}

func (s *specimen) hostile() string {
	if s.poison != "" {
		return s.poison
	}
	return marker
}

func (s *specimen) quote(text string) string {
	if s.escaped {
		var b strings.Builder
		for _, u := range text {
			if u > 0xffff {
				u -= 0x10000
				fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+u>>10, 0xdc00+u&0x3ff)
				continue
			}
			fmt.Fprintf(&b, `\u%04x`, u)
		}
		return `"` + b.String() + `"`
	}
	return jsonQuote(text)
}

func (s *specimen) object(sh *mcpmsg.Shape, seen []*mcpmsg.Shape) string {
	again := 0
	for _, x := range seen {
		if x == sh {
			again++
		}
	}
	if again > 1 || len(seen) > 6 {
		return "null"
	}
	seen = append(seen, sh)
	var b strings.Builder
	b.WriteString("{")
	for i := range sh.Fields {
		f := &sh.Fields[i]
		s.path = append(s.path, f.Name)
		fmt.Fprintf(&b, `"%s": %s ,`, f.Name, s.field(f, seen))
		s.path = s.path[:len(s.path)-1]
	}
	s.path = append(s.path, "unknown")
	fmt.Fprintf(&b, `"unknown":%s}`, s.data())
	s.path = s.path[:len(s.path)-1]
	return b.String()
}

// data is any JSON with strings as names and values.
func (s *specimen) data() string {
	return `{"n":1.50,` + s.str("key") + `:[` + s.str("value") + `,{"deep":` + s.str("deep") + `,"_meta":{` + s.str("k") + `:` + s.str("v") + `}}]}`
}

func (s *specimen) field(f *mcpmsg.Field, seen []*mcpmsg.Shape) string {
	if s.brief && (f.Name == "task" || f.Name == "inputRequests") {
		return "null"
	}
	one := func() string {
		if f.Shape != nil {
			return s.object(f.Shape, seen)
		}
		switch f.Treat {
		case mcpmsg.Data, mcpmsg.Schema, mcpmsg.Meta:
			return s.data()
		case mcpmsg.Blob:
			text := "clean"
			if s.n == s.target {
				text, s.at = s.hostile(), strings.Join(s.path, ".")
			}
			s.n++
			return `"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`
		case mcpmsg.Opaque:
			if f.Name == "requestState" { // no other member may be, whatever the table says
				return `"\u200b opaque"`
			}
		}
		return s.str(sample(f.Name))
	}
	switch f.Arity {
	case mcpmsg.List:
		if v := one(); v != "null" {
			return "[ " + v + "]"
		}
		return "[]"
	case mcpmsg.Map:
		return "{" + s.str("key") + ":" + one() + "}"
	}
	return one()
}

// sample is a clean value for a field of that name.
func sample(name string) string {
	switch name {
	case "resultType":
		return "complete"
	case "method":
		return "elicitation/create"
	case "mimeType":
		return "text/plain"
	case "protocolVersion":
		return "2025-11-25"
	case "supportedVersions":
		return mcpmsg.Modern
	case "level":
		return "error"
	case "mode":
		return "form"
	case "url":
		return "https://clean.example/"
	}
	return "clean " + name
}

// eras are how a client asks.
var eras = map[string]string{
	"legacy": `{"name":"read"}`,
	"modern": `{"name":"read","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}}}`,
}

// TestMarker walks every position of every row of the table, and of messages
// that no row knows, and demands that the marker never arrives.
func TestMarker(t *testing.T) {
	collectSeldom(t)
	for era, params := range eras {
		if testing.Short() && era == "legacy" {
			continue
		}
		t.Run(era, func(t *testing.T) {
			total := 0
			for _, row := range markerRows() {
				t.Run(strings.ReplaceAll(row.Method, "/", "-")+"-"+row.Part.String(), func(t *testing.T) {
					total += walkMarker(t, row, params, era == "modern")
				})
			}
			t.Logf("%d positions", total)
		})
	}
}

// markerRows are the table and what a future revision might send.
func markerRows() []mcpmsg.Row {
	rows := append([]mcpmsg.Row(nil), mcpmsg.Rows()...)
	for _, p := range []mcpmsg.Part{mcpmsg.Params, mcpmsg.Result, mcpmsg.Error} {
		r := *mcpmsg.Lookup(p, "future/method")
		r.Method = "future/method"
		rows = append(rows, r)
	}
	e := *mcpmsg.Lookup(mcpmsg.Error, mcpmsg.ReadResource)
	e.Method = mcpmsg.ReadResource
	return append(rows, e)
}

// walkMarker tries every position: every second one with the marker in escapes, which are the even ones or the odd ones,
// so that two eras try each position both ways.
func walkMarker(t *testing.T, row mcpmsg.Row, params string, even bool) int {
	// The messages have every member at once, which no type allows: the walk has to hold alone.
	r := newRig(t, func(c *Config) { c.DangerouslyAllowSampling, c.Validation.Mode = true, policy.Off })
	// What every result can hold is walked in full in a few of them.
	brief := testing.Short() || row.Method != mcpmsg.CallTool && row.Method != mcpmsg.ListTools && row.Method != "future/method"
	probe := specimen{target: -1, brief: brief}
	clean := probe.object(row.Shape, nil)
	expected := clean
	if row.Method == mcpmsg.Cancelled { // speaks of a request that is under way
		r.server.send(`{"jsonrpc":"2.0","id":"clean requestId","method":"roots/list"}`)
		id := string(parse(t, r.client.next())["id"])
		expected = strings.Replace(clean, `"clean requestId"`, id, 1)
	}
	checkClean(t, r, row, expected, r.exchange(row, params, clean))
	for target := range probe.n {
		s := specimen{target: target, escaped: (target%2 == 0) == even, brief: brief}
		body := s.object(row.Shape, nil)
		for _, line := range r.exchange(row, params, body) {
			checkNoMarker(t, s.at, line)
		}
	}
	return probe.n
}

// exchange has the server send body as the row's part, and returns everything
// that reached the client.
func (r *rig) exchange(row mcpmsg.Row, params, body string) (lines []string) {
	if row.Method == mcpmsg.Progress { // of a request that is under way
		if token := parse(r.t, body)["progressToken"]; token != nil {
			up := r.request(`"of progress"`, "ping", `{"_meta":{"progressToken":`+string(token)+`}}`)
			defer r.result(up, `{}`)
		}
	}
	switch {
	case row.Part == mcpmsg.Params && strings.HasPrefix(row.Method, "notifications/"):
		r.server.send(`{"jsonrpc":"2.0","method":"` + row.Method + `","params":` + body + `}`)
	case row.Part == mcpmsg.Params:
		r.server.send(`{"jsonrpc":"2.0","id":"ask","method":"` + row.Method + `","params":` + body + `}`)
	default:
		up := r.request(`"id"`, row.Method, params)
		member := "result"
		if row.Part == mcpmsg.Error {
			member = "error"
			body = `{"code":7,` + strings.TrimPrefix(body, "{")
		}
		r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"` + member + `":` + body + `}`)
	}
	const sync = `{"jsonrpc":"2.0","method":"notifications/sync"}`
	r.server.send(sync)
	for {
		line := r.client.next()
		if line == sync {
			break
		}
		lines = append(lines, line)
		if m := parse(r.t, line); m["method"] != nil && m["id"] != nil {
			r.client.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":{}}`)
			r.server.next()
		}
	}
	if row.Part == mcpmsg.Params && !strings.HasPrefix(row.Method, "notifications/") && len(lines) == 0 {
		r.server.next() // the refusal
	}
	return lines
}

func checkNoMarker(t *testing.T, at, line string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("%s: not JSON: %v", at, err)
	}
	eachString(v, func(s string) {
		if strings.ContainsAny(s, "\u202e\U000e0041") || strings.Contains(s, "<|im_start|>") ||
			strings.Contains(s, "\u200b") && s != "\u200b opaque" {
			t.Errorf("%s: marker arrived in %+q", at, s)
		}
		if b, err := base64.StdEncoding.DecodeString(s); err == nil && strings.Contains(string(b), "\u202e") {
			t.Errorf("%s: marker arrived in base64", at)
		}
	})
}

func eachString(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			eachString(e, f)
		}
	case map[string]any:
		for k, e := range v {
			f(k)
			eachString(e, f)
		}
	}
}

// checkClean demands that a message in which nothing was found arrived byte
// for byte, but for what is ours: fences, the sentence about them, and the mark.
func checkClean(t *testing.T, r *rig, row mcpmsg.Row, sent string, lines []string) {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("clean message: %d lines", len(lines))
	}
	got := string(parse(t, lines[0])[row.Part.String()])
	if row.Part == mcpmsg.Error {
		sent = `{"code":7,` + strings.TrimPrefix(sent, "{")
	}
	if i := strings.Index(got, `,"`+frame.MetaKey+`":{`); i >= 0 {
		var note json.RawMessage
		_ = json.NewDecoder(strings.NewReader(got[i+len(frame.MetaKey)+4:])).Decode(&note)
		got = got[:i] + got[i+len(frame.MetaKey)+4+len(note):]
	} else if row.Mark == mcpmsg.Always && row.Part != mcpmsg.Error {
		t.Errorf("no mark: %s", got)
	}
	var v any
	_ = json.Unmarshal([]byte(got), &v)
	var first frame.Origin
	eachString(v, func(s string) {
		if o, _, err := r.key.Open(s, frame.Origin{}); err == nil {
			first = o
		}
	})
	eachString(v, func(s string) {
		if _, body, err := r.key.Open(s, first); err == nil {
			got = strings.Replace(got, jsonQuote(s), jsonQuote(body), 1)
		}
	})
	if row.Instructions {
		got = strings.Replace(got, strings.Trim(jsonQuote("\n\n"+frame.Instructions), `"`), "", 1)
	}
	if got != sent {
		i := 0
		for i < min(len(got), len(sent)) && got[i] == sent[i] {
			i++
		}
		t.Errorf("clean message changed:\nsent …%.200s\ngot  …%.200s", sent[max(0, i-50):], got[max(0, i-50):])
	}
}

func jsonQuote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
