// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"bytes"
	"fmt"
	"net/http"
)

// The messages that open a session.
const (
	Initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"lab","version":"1"}}}`
	Initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// Session is a legacy session over streamable HTTP.
type Session struct {
	Client *http.Client
	URL    string
	Token  string       // of the principal, if any
	Answer bytes.Buffer // body of the last answer that Post has read
	id     string
}

// Open opens a session, or a new one.
func (s *Session) Open() error {
	s.id = ""
	_, err := s.Post([]byte(Initialize))
	if err == nil {
		_, err = s.Post([]byte(Initialized))
	}
	return err
}

// Send posts a message to a URL.
func (s *Session) Send(url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if s.Token != "" {
		req.Header["Authorization"] = []string{"Bearer " + s.Token}
	}
	if s.id != "" {
		req.Header["Mcp-Session-Id"] = []string{s.id}
		req.Header["Mcp-Protocol-Version"] = []string{"2025-11-25"}
	}
	return s.Client.Do(req)
}

// Post posts a message and reads the answer. The error may be a status of failure.
func (s *Session) Post(body []byte) (http.Header, error) {
	resp, err := s.Send(s.URL, body)
	if err != nil {
		return nil, fmt.Errorf("measured: %w", err)
	}
	defer resp.Body.Close()
	s.Answer.Reset()
	if _, err := s.Answer.ReadFrom(resp.Body); err != nil {
		return nil, fmt.Errorf("measured: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("measured: status %d", resp.StatusCode)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		s.id = id
	}
	return resp.Header, nil
}

// Close ends the session, if the server has sessions.
func (s *Session) Close() {
	if s.id == "" {
		return
	}
	if req, err := http.NewRequest(http.MethodDelete, s.URL, nil); err == nil {
		req.Header["Mcp-Session-Id"] = []string{s.id}
		if resp, err := s.Client.Do(req); err == nil {
			resp.Body.Close()
		}
	}
}
