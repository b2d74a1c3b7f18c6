// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answering is a Receiver that answers every request at once.
type answering struct{ s *FrontSession }

func (a answering) Message(m *Message) {
	defer m.Release()
	switch {
	case m.Kind == Request && m.Method == methodInitialize:
		_ = a.s.Write(a.s.f.ctx, NewResult(m.ID, []byte(`{"protocolVersion":"`+m.Params.Get("protocolVersion").Text()+`","capabilities":{}}`)))
	case m.Kind == Request:
		_ = a.s.Write(a.s.f.ctx, NewResult(m.ID, []byte(`{"content":[{"type":"text","text":"hello"}]}`)))
	}
}
func (a answering) Violation(*Violation) {}
func (a answering) Ended(error)          {}

// BenchmarkFrontCall is a call over HTTP. From 2025-11-25 on the client gets an event id, and so one flush more, before
// the call is handed over, by which it comes again where the process ends.
func BenchmarkFrontCall(b *testing.B) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		b.Run(version, func(b *testing.B) {
			f := NewFront(FrontOptions{Registry: &ledgerOfSessions{known: map[string]Kept{}, ended: map[string]bool{}},
				Accept: func(_ context.Context, s *FrontSession, _ func(error)) { s.Start(answering{s}) }})
			srv := httptest.NewServer(f)
			defer srv.Close()
			session := ""
			post := func(body string) {
				r, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				if session != "" {
					r.Header.Set(headerSession, session)
				}
				resp, err := srv.Client().Do(r)
				if err != nil {
					b.Fatal(err)
				}
				answer, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !strings.Contains(string(answer), `"result"`) {
					b.Fatalf("%s, %v", answer, err)
				}
				if session == "" {
					session = resp.Header.Get(headerSession)
				}
			}
			post(strings.Replace(initializeBody, "2025-11-25", version, 1))
			for b.Loop() {
				post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`)
			}
			for _, s := range f.all() {
				s.Close()
			}
		})
	}
}
