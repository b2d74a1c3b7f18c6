// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"
)

// recorded serves one request without a network.
func recorded(f *Front, method string, header http.Header, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/mcp", bytes.NewReader(body))
	r.Header = header
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// echoFront answers every request with what it was asked.
func echoFront(t testing.TB) *Front {
	front := NewFront(FrontOptions{Sessions: 4, keepAlive: time.Hour, Accept: func(ctx context.Context, s *FrontSession, ended func(error)) {
		s.Start(taker{
			message: func(m *Message) {
				if m.Kind == Request {
					result := []byte(`{"protocolVersion":"2025-03-26"}`)
					s.Write(ctx, NewResult(m.ID, result))
				}
				m.Release()
			},
			ended: ended,
		})
	}})
	t.Cleanup(func() { front.Shutdown(context.Background()) })
	return front
}

// FuzzFrontBody: whatever a client sends is answered, with a status that is not
// a fault of ours, and every answer is an acceptable message.
func FuzzFrontBody(f *testing.F) {
	for _, seed := range []string{initializeBody, listBody, modernBody("tools/call", `"name":"a",`), "[" + listBody + "]", "[]", "{", "",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		f.Add([]byte(seed), "2026-07-28", "tools/call", true)
		f.Add([]byte(seed), "", "", false)
	}
	front := echoFront(f)
	opened := recorded(front, http.MethodPost, http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}, []byte(initializeBody))
	id := opened.Header().Get("Mcp-Session-Id")
	f.Fuzz(func(t *testing.T, body []byte, version, method string, session bool) {
		h := http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}
		if version != "" {
			h["Mcp-Protocol-Version"] = []string{version}
		}
		if method != "" {
			h["Mcp-Method"] = []string{method}
		}
		if session {
			h["Mcp-Session-Id"] = []string{id}
		}
		w := recorded(front, http.MethodPost, h, body)
		check(t, w)
	})
}

func check(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
		t.Fatalf("status %d", w.Code)
	}
	switch w.Header().Get("Content-Type") {
	case "application/json":
		if _, err := Decode(w.Body.Bytes(), defaultLimits); err != nil {
			t.Fatalf("%v: %q", err, w.Body)
		}
	case "text/event-stream":
		er := newEvents(t.Context(), w.Body, defaultLimits, nil)
		for {
			ev, err := er.Next()
			if err != nil {
				break
			}
			if _, err := Decode(ev.Data, defaultLimits); err != nil {
				t.Fatalf("%v: %q", err, ev.Data)
			}
		}
	}
}

// FuzzFrontHeaders: as FuzzFrontBody, for headers.
func FuzzFrontHeaders(f *testing.F) {
	f.Add("POST", "application/json", "*/*", "Mcp-Name", "=?base64?w6k=?=", "Mcp-Param-A", "1")
	f.Add("GET", "", "text/event-stream", "Last-Event-Id", "0-0", "Mcp-Session-Id", "x")
	f.Add("DELETE", "", "", "Mcp-Session-Id", "x", "Mcp-Protocol-Version", "2026-07-28")
	front := echoFront(f)
	f.Fuzz(func(t *testing.T, method, content, accept, name1, value1, name2, value2 string) {
		if !validToken(method) || !validToken(name1) || !validToken(name2) {
			return
		}
		h := http.Header{"Content-Type": {content}, "Accept": {accept}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}}
		h.Add(name1, value1)
		h.Add(name2, value2)
		check(t, recorded(front, method, h, []byte(modernBody("tools/call", ""))))
	})
}

func FuzzParseEventID(f *testing.F) {
	f.Add("0-0")
	f.Add("1-9223372036854775807")
	f.Add("-1-2")
	f.Add("ABCDEFGHIJ.1-0")
	f.Add("ABCDEFGHIJ.1-0.WzFd")
	f.Add("ABCDEFGHIJ.1-0.WzEsImEiXQ")
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := parseEventID(s)
		if !ok {
			return
		}
		var requests []*Message
		for _, of := range id.asks {
			requests = append(requests, &Message{ID: of})
		}
		st := &stream{s: &FrontSession{life: id.life}, no: id.stream}
		if len(requests) > 0 {
			st.asks = appendAsks(nil, requests)
		}
		again := string(st.appendEventID(nil, id.no, true))
		if other, ok := parseEventID(again); !ok || !reflect.DeepEqual(other, id) || len(again) > len(s) {
			t.Errorf("%q: %q", s, again)
		}
	})
}
