// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/lab/measured"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// patterns is an output schema of some 300 bytes whose patterns are costly for a text of equal letters.
var patterns = func() string {
	var all []string
	for _, p := range []string{"[ab]{1,900}c", "(?:a?b?){400}c", "[^c]{1,900}d"} {
		all = append(all, fmt.Sprintf(`%q:{"type":"string","pattern":%q}`, "p"+fmt.Sprint(len(all)), p))
	}
	return `{"type":"object","properties":{` + strings.Join(all, ",") + `}}`
}()

// startServers starts the server behind the gateway: its tools answer honest text, results that are held, and
// results for the costly patterns.
func startServers() (*httptest.Server, error) {
	tools := fmt.Sprintf(`{"tools":[{"name":"read","inputSchema":{"type":"object"}},{"name":"hidden","inputSchema":{"type":"object"}},{"name":"patterns","inputSchema":{"type":"object"},"outputSchema":%s}]}`, patterns)
	long := strings.Repeat("a", 50_000)
	structured := fmt.Sprintf(`{"p0":%q,"p1":%q,"p2":%q}`, long, long, long)
	text, err := json.Marshal(structured)
	if err != nil {
		return nil, err
	}
	var honest sync.Map // by size: a server that makes its answers would slow the honest client beside it
	var n atomic.Int64
	results := map[string]func(size int) string{
		"read": func(size int) string {
			made, known := honest.Load(size)
			if !known {
				made, _ = honest.LoadOrStore(size, `{"content":[{"type":"text","text":"`+strings.Repeat("Honest text. ", size/13+1)[:size]+`"}]}`)
			}
			return made.(string)
		},
		"hidden": func(int) string {
			return fmt.Sprintf(`{"content":[{"type":"text","text":"page %d %s %s"}]}`, n.Add(1), "\U000e0041\U000e0042\U000e0043", long) // each is another text
		},
		"patterns": func(int) string {
			return `{"content":[{"type":"text","text":` + string(text) + `}],"structuredContent":` + structured + `}`
		},
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string `json:"name"`
				Arguments struct {
					Bytes int `json:"bytes"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"attacked","version":"1"}}`
		case "tools/list":
			result = tools
		case "tools/call":
			result = results[m.Params.Name](m.Params.Arguments.Bytes)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":`, m.ID)
		_, _ = io.WriteString(w, result)
		_, _ = io.WriteString(w, "}")
	})), nil
}

// session is a session of one principal.
type session struct {
	measured.Session
	base string
	n    int
}

func newSession(client *http.Client, addr, token string) *session {
	base := "http://" + addr
	return &session{Session: measured.Session{Client: client, URL: base + "/mcp/s", Token: token}, base: base}
}

// callBody returns a call of a tool that is asked for a text of that size.
func (s *session) callBody(tool string, size int) []byte {
	s.n++
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"bytes":%d}}}`, s.n, tool, size)
}

// call calls a tool and checks the text of its result.
func (s *session) call(tool string, size int) error {
	_, err := s.Post(s.callBody(tool, size))
	if body := s.Answer.Bytes(); err == nil && (len(body) < size || !bytes.Contains(body, []byte("Honest text."))) {
		err = errors.New("not the result: " + finding.Quote(string(body[:min(len(body), 200)])))
	}
	return err
}
