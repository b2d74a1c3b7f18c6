// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// forgetful is a legacy server that can forget its sessions.
type forgetful struct {
	mu       sync.Mutex
	sessions map[string]bool
	made     int
	got      []string // method and params of each message
	refuse   func(w http.ResponseWriter, m *Message)
	answer   func(w http.ResponseWriter, r *http.Request, m *Message) bool
	get      func(w http.ResponseWriter, r *http.Request)
	version  string
	useless  bool // no session is known
}

func (s *forgetful) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

func (s *forgetful) sessionsMade() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

func (s *forgetful) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.mu.Lock()
		known := s.sessions[r.Header.Get(headerSession)]
		s.mu.Unlock()
		switch {
		case r.Method == http.MethodGet && !known:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodGet && s.get != nil:
			s.get(w, r)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return
	}
	b, _ := io.ReadAll(r.Body)
	m, err := Decode(b, strictjson.Limits{})
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.got = append(s.got, strings.TrimSpace(m.Method+" "+string(m.Value().Raw())))
	if m.Method == methodInitialize {
		s.made++
		id := "s-" + strconv.Itoa(s.made)
		s.sessions[id] = !s.useless
		w.Header().Set("Mcp-Session-Id", id)
	}
	known := s.sessions[r.Header.Get(headerSession)]
	version := s.version
	s.mu.Unlock()
	result := `{}`
	switch {
	case m.Method == methodInitialize:
		result = `{"protocolVersion":"` + version + `","capabilities":{"tools":{},"resources":{}}}`
	case m.Method == methodInitialized && s.useless:
	case !known:
		s.refuse(w, m)
		return
	}
	if m.Kind != Request {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if s.answer != nil && s.answer(w, r, m) {
		return
	}
	body("application/json", string(NewResult(m.ID, []byte(result)).Append(nil)))(w, r)
}

func refuseWith(status int, contentType, text string) func(http.ResponseWriter, *Message) {
	return func(w http.ResponseWriter, m *Message) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, strings.ReplaceAll(text, "ID", string(m.ID.Append(nil))))
	}
}

const clientParams = `{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}`

func begin(t *testing.T, s *forgetful, opt HTTPOptions) (ReadConn, *notices) {
	t.Helper()
	s.sessions = map[string]bool{}
	if s.version == "" {
		s.version = "2025-06-18"
	}
	if s.refuse == nil {
		s.refuse = refuseWith(404, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
	}
	c, ns := upstream(t, s.ServeHTTP, opt)
	send(t, c, NewRequest(IntID(1), methodInitialize, []byte(clientParams)))
	receive(t, c).Release()
	send(t, c, note(methodInitialized))
	return c, ns
}

// TestHTTPNewSession: a request that a server refuses because it has forgotten the session is sent
// once more in a new one, which begins as the client began the first.
func TestHTTPNewSession(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(http.ResponseWriter, *Message){
		"404":                    nil,
		"404 with the id":        refuseWith(404, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"no"}}`),
		"404 without a body":     refuseWith(404, "text/plain", ""),
		"400 without an id":      refuseWith(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no session"}}`),
		"400 with the id":        refuseWith(400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no"}}`),
		"400 that is plain text": refuseWith(400, "text/plain", "Bad Request"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &forgetful{refuse: refuse}
			c, _ := begin(t, s, HTTPOptions{})
			send(t, c, NewRequest(IntID(2), methodSetLevel, []byte(`{"level":"info"}`)))
			receive(t, c).Release()
			send(t, c, NewRequest(IntID(3), methodSubscribe, []byte(`{"uri":"file:///a"}`)))
			receive(t, c).Release()
			s.forget()
			from := len(s.heard())
			for n := range int64(8) { // at one time
				send(t, c, NewRequest(IntID(10+n), "tools/call", []byte(`{"name":"t"}`)))
			}
			var before []string
			for answers := 0; answers < 8; {
				m := receive(t, c)
				switch {
				case m.Kind == Response:
					answers++
				case m.Kind == Notification && answers == 0:
					before = append(before, m.Method)
				default:
					t.Fatalf("got %s", m.Append(nil))
				}
			}
			if want := []string{"notifications/tools/list_changed", "notifications/resources/list_changed"}; !slices.Equal(before, want) {
				t.Errorf("before the answers: %q", before)
			}
			if n := s.sessionsMade(); n != 2 {
				t.Errorf("%d sessions", n)
			}
			heard := s.heard()[from:]
			for _, want := range []string{"initialize " + clientParams, methodInitialized, methodSetLevel + ` {"level":"info"}`, methodSubscribe + ` {"uri":"file:///a"}`} {
				if !slices.Contains(heard, want) {
					t.Errorf("the new session lacks %s: %q", want, heard)
				}
			}
		})
	}
}

// TestHTTPRecheck: a request about an item goes back to its sender, which reads the lists first.
func TestHTTPRecheck(t *testing.T) {
	t.Parallel()
	s := &forgetful{}
	c, _ := begin(t, s, HTTPOptions{})
	s.forget()
	out := NewRequest(IntID(2), "tools/call", []byte(`{"name":"t"}`))
	out.Recheck = true
	send(t, c, out)
	for m := receive(t, c); ; m = receive(t, c) {
		if m.Kind == Notification {
			continue
		}
		if !m.Local || !errors.Is(m.Cause, ErrRenewed) {
			t.Errorf("%s, %v", m.Append(nil), m.Cause)
		}
		break
	}
	if calls := slices.DeleteFunc(s.heard(), func(x string) bool { return !strings.HasPrefix(x, "tools/call") }); len(calls) != 1 {
		t.Errorf("%q", calls)
	}
}

// TestHTTPHonestBadRequest: status 400 of a session that is known is an answer.
func TestHTTPHonestBadRequest(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"null", "ID"} {
		s := &forgetful{answer: func(w http.ResponseWriter, _ *http.Request, m *Message) bool {
			if m.Method == "tools/call" {
				refuseWith(400, "application/json", `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32602,"message":"missing city"}}`)(w, m)
			}
			return m.Method == "tools/call"
		}}
		c, _ := begin(t, s, HTTPOptions{})
		for n := range int64(3) {
			send(t, c, request(2+n, "tools/call"))
			if m := receive(t, c); m.Local || m.Error.Get("message").Text() != "missing city" {
				t.Errorf("%s", m.Append(nil))
			}
		}
		if s.sessionsMade() != 1 {
			t.Errorf("%d sessions", s.sessionsMade())
		}
	}
}

// TestHTTPHonestNotFound: status 404 for the object of a request is an answer, and costs one new
// session at most. A session that is forgotten soon after is still found to be.
func TestHTTPHonestNotFound(t *testing.T) {
	t.Parallel()
	for answer, sessions := range map[string]int{
		`{"jsonrpc":"2.0","id":ID,"error":{"code":-32002,"message":"no such file"}}`:   1,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"no such file"}}`: 2,
	} {
		s := &forgetful{answer: func(w http.ResponseWriter, _ *http.Request, m *Message) bool {
			if m.Method == "resources/read" || m.Method == methodSubscribe {
				refuseWith(404, "application/json", answer)(w, m)
			}
			return m.Method == "resources/read" || m.Method == methodSubscribe
		}}
		c, _ := begin(t, s, HTTPOptions{})
		ask := func(n int64, method string) *Message {
			t.Helper()
			send(t, c, NewRequest(IntID(n), method, []byte(`{"uri":"file:///a"}`)))
			m := receive(t, c)
			for ; m.Kind == Notification; m = receive(t, c) {
			}
			return m
		}
		for n := range int64(4) {
			if m := ask(2+n, "resources/read"); m.Local || m.Error.Get("message").Text() != "no such file" {
				t.Errorf("%s", m.Append(nil))
			}
		}
		ask(10, methodSubscribe)
		if s.sessionsMade() != sessions {
			t.Errorf("%d sessions, want %d", s.sessionsMade(), sessions)
		}
		s.forget()
		if m := ask(11, "tools/call"); m.Kind != Response {
			t.Errorf("%s", m.Append(nil))
		}
		if s.sessionsMade() != sessions+1 {
			t.Errorf("%d sessions, want %d", s.sessionsMade(), sessions+1)
		}
	}
}

// TestHTTPForgottenForEver: a server that knows no session costs an error and a few requests, and
// the Conn serves again once the server does.
func TestHTTPForgottenForEver(t *testing.T) {
	t.Parallel()
	s := &forgetful{}
	c, _ := begin(t, s, HTTPOptions{})
	s.mu.Lock()
	s.useless = true
	s.mu.Unlock()
	s.forget()
	from := len(s.heard())
	send(t, c, request(2, "tools/call"))
	for m := receive(t, c); ; m = receive(t, c) {
		if m.Kind == Notification {
			continue
		}
		if code, _ := m.Error.Get("code").Int64(); code != codeSessionGone || !errors.Is(m.Cause, ErrSessionGone) {
			t.Errorf("%s, %v", m.Append(nil), m.Cause)
		}
		break
	}
	if heard := s.heard()[from:]; len(heard) > 5 {
		t.Errorf("%q", heard)
	}
	s.mu.Lock()
	s.useless = false
	s.mu.Unlock()
	send(t, c, request(3, "tools/call"))
	for m := receive(t, c); m.Kind != Response; m = receive(t, c) {
		if m.Kind != Notification {
			t.Fatalf("%s", m.Append(nil))
		}
	}
}

// TestHTTPOtherRevision: a server may have learned another revision while it was away.
func TestHTTPOtherRevision(t *testing.T) {
	t.Parallel()
	for version, works := range map[string]bool{"2025-03-26": true, "2025-11-25": true, "2099-01-01": false, "x": false} {
		s := &forgetful{}
		c, _ := begin(t, s, HTTPOptions{})
		s.mu.Lock()
		s.version = version
		s.mu.Unlock()
		s.forget()
		send(t, c, request(2, "tools/call"))
		m := receive(t, c)
		for m.Kind == Notification {
			m = receive(t, c)
		}
		if (m.Kind == Response) != works {
			t.Errorf("%s: %s", version, m.Append(nil))
		}
	}
}

// TestHTTPSessionEndsAtWork: a request whose stream goes on is not disturbed by another one's new
// session, and requests of the server in the old session are withdrawn and not answered.
func TestHTTPSessionEndsAtWork(t *testing.T) {
	t.Parallel()
	goOn := make(chan bool)
	s := &forgetful{answer: func(w http.ResponseWriter, r *http.Request, m *Message) bool {
		if m.Method != "slow" {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`+"\n\n")
		w.(http.Flusher).Flush()
		<-goOn
		fmt.Fprintf(w, "data: %s\n\n", NewResult(m.ID, []byte(`{}`)).Append(nil))
		return true
	}}
	c, _ := begin(t, s, HTTPOptions{})
	send(t, c, request(2, "slow"))
	if m := receive(t, c); m.ID != StringID("q") {
		t.Fatalf("%s", m.Append(nil))
	}
	s.forget()
	send(t, c, request(3, "tools/call"))
	withdrawn := false
	for m := receive(t, c); m.ID != IntID(3); m = receive(t, c) {
		withdrawn = withdrawn || m.Method == methodCancelled && m.Params.Get("requestId").Text() == "q"
	}
	if !withdrawn {
		t.Error("the question stands")
	}
	send(t, c, NewResult(StringID("q"), []byte(`{"action":"cancel"}`)))
	close(goOn)
	if m := receive(t, c); m.ID != IntID(2) || m.Kind != Response {
		t.Errorf("%s", m.Append(nil))
	}
	if slices.ContainsFunc(s.heard(), func(x string) bool { return strings.Contains(x, "action") }) {
		t.Error("another session was given the answer")
	}
}

// TestHTTPListensInNewSession: the stream for the server's own messages is opened in the new session,
// which is made at once where the client has subscribed to something.
func TestHTTPListensInNewSession(t *testing.T) {
	t.Parallel()
	end := make(chan bool)
	s := &forgetful{}
	s.get = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":%q}}\n\n", r.Header.Get(headerSession))
		w.(http.Flusher).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}
	c, _ := begin(t, s, HTTPOptions{RetryWait: 1})
	hears := func(session string) {
		t.Helper()
		for m := receive(t, c); m.Params.Get("data").Text() != session; m = receive(t, c) {
			if m.Kind == ErrorResponse {
				t.Fatalf("%s", m.Append(nil))
			}
		}
	}
	hears("s-1")
	s.forget()
	send(t, c, request(2, "tools/call"))
	hears("s-2")
	send(t, c, NewRequest(IntID(3), methodSubscribe, []byte(`{"uri":"file:///a"}`)))
	waittest.Until(t, "the subscription", func() bool { return slices.Contains(s.heard(), methodSubscribe+` {"uri":"file:///a"}`) })
	s.forget()
	close(end)
	hears("s-3")
}
