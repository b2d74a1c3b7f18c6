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

// A session is a legacy session of one principal.
type session struct {
	client *http.Client
	addr   string
	token  string
	id     string
	n      int
}

func (s *session) post(path, body string) (*http.Response, error) {
	return s.postTo(path, "application/json", strings.NewReader(body))
}

func (s *session) postTo(path, kind string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+s.addr+path, body)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {kind}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + s.token}}
	if s.id != "" {
		req.Header["Mcp-Session-Id"], req.Header["Mcp-Protocol-Version"] = []string{s.id}, []string{"2025-11-25"}
	}
	return s.client.Do(req)
}

func (s *session) open() error {
	resp, err := s.post("/mcp/s", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"attack","version":"1"}}}`)
	if err != nil {
		return err
	}
	if _, err := drain(resp); err != nil {
		return err
	}
	s.id = resp.Header.Get("Mcp-Session-Id")
	if resp, err = s.post("/mcp/s", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return err
	}
	_, err = drain(resp)
	return err
}

// call calls a tool, and demands a text of so many bytes.
func (s *session) call(tool string, size int) error {
	s.n++
	resp, err := s.post("/mcp/s", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"bytes":%d}}}`, s.n, tool, size))
	if err != nil {
		return err
	}
	body, err := drain(resp)
	if err == nil && (len(body) < size || !bytes.Contains(body, []byte("Honest text."))) {
		err = errors.New("not the result: " + finding.Quote(string(body[:min(len(body), 200)])))
	}
	return err
}

// drain reads an answer. The error is a status of failure, too.
func drain(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return body, err
}
