// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

const (
	toolName   = "read"
	streamPath = "/stream" // where every answer is an event
	maxResult  = 16 << 20
)

// serveUpstream is an MCP server of the least possible cost: every result exists
// before it is asked for.
func serveUpstream(w http.ResponseWriter, r *http.Request) {
	_, raw := readPost(w, r)
	if raw == nil {
		return
	}
	if r.URL.Path == streamPath {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(append(append([]byte("event: message\ndata: "), raw...), "\n\n"...))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

// readPost reads a message and returns the answer to it; nil where none is wanted: then the
// response is written.
func readPost(w http.ResponseWriter, r *http.Request) (body, raw []byte) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil
	}
	if raw = answerTo(body); raw == nil {
		w.WriteHeader(http.StatusAccepted)
	}
	return body, raw
}

// serveLines is the same over pipes.
func serveLines(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil
		}
		if raw := answerTo(bytes.TrimSpace(line)); raw != nil {
			if _, err := out.Write(append(raw, '\n')); err != nil {
				return fmt.Errorf("speed: %w", err)
			}
		}
	}
}

// answerTo returns the answer to a message, nil if it wants none.
func answerTo(body []byte) []byte {
	m, err := wire.Decode(body, limits)
	if err != nil || m.Kind != wire.Request {
		return nil
	}
	switch m.Method {
	case "initialize":
		return wire.NewResult(m.ID, []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"upstream","version":"1"}}`)).Append(nil)
	case "tools/list":
		return wire.NewResult(m.ID, []byte(`{"tools":[{"name":"`+toolName+`","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)).Append(nil)
	case "tools/call":
		a := m.Params.Get("arguments")
		n, _ := a.Get("bytes").Int64()
		return wire.NewResult(m.ID, result(a.Get("script").Text(), int(n))).Append(nil)
	}
	return wire.NewResult(m.ID, []byte(`{}`)).Append(nil)
}

var results sync.Map // "script bytes" → []byte

// result is a tool's result with a text of that script and size.
func result(script string, size int) []byte {
	key := fmt.Sprint(script, size)
	if r, ok := results.Load(key); ok {
		return r.([]byte)
	}
	text, err := json.Marshal(sample(script, min(max(size, 0), maxResult)))
	if err != nil {
		panic(err) // of a string: never
	}
	raw := append(append([]byte(`{"content":[{"type":"text","text":`), text...), `}]}`...)
	results.Store(key, raw)
	return raw
}

// scripts are the texts that results are made of.
var scripts = []string{"ascii", "mixed"}

// sample is honest text of exactly so many bytes.
func sample(script string, size int) string {
	source := ascii
	if script == "mixed" {
		source = french + russian + japanese + korean + jsonText + ascii
	}
	s := strings.Repeat(source, size/len(source)+1)
	cut := size
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + strings.Repeat(".", size-cut)
}
