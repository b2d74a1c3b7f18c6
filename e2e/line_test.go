// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A message is one JSON-RPC message whose members are the bytes that came.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// outcome is what answered a request: the bytes of result, or of error.
func (m message) outcome() string {
	if m.Error != nil {
		return "error " + string(m.Error)
	}
	return "result " + string(m.Result)
}

// A session is a client that speaks lines and keeps bytes as they came. An
// SDK would decode and so hide what a proxy changed.
type session struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr *transcript
	answer func(method string, params json.RawMessage) string
	exited chan struct{}

	mu      sync.Mutex // guards what follows, and writes to in
	next    int
	waiting map[string]chan message
	notes   []message // notifications and requests of the server, in order
	other   []string  // lines that are not messages, and answers nobody waits for
	eof     bool
}

// start runs cmd and talks to it. The session ends with the test.
func start(t testing.TB, cmd *exec.Cmd) *session {
	t.Helper()
	s := &session{
		t: t, cmd: cmd, stderr: new(transcript), answer: obliging,
		exited: make(chan struct{}), waiting: make(map[string]chan message),
	}
	cmd.Stderr = s.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.in = in
	go s.read(bufio.NewReaderSize(out, 1<<20))
	t.Cleanup(func() {
		in.Close()
		select {
		case <-s.exited:
		case <-time.After(time.Minute):
			cmd.Process.Kill()
			<-s.exited
		}
		if t.Failed() {
			t.Logf("stderr: %q", s.stderr.tail())
		}
	})
	return s
}

// obliging answers a server's requests as a friendly host does.
func obliging(method string, _ json.RawMessage) string {
	switch method {
	case "roots/list":
		return `"result":{"roots":[{"uri":"file:///e2e","name":"e2e"}]}`
	case "elicitation/create":
		return `"result":{"action":"accept","content":{"name":"Ada"}}`
	case "sampling/createMessage":
		return `"result":{"role":"assistant","model":"e2e","content":{"type":"text","text":"sampled"}}`
	case "ping":
		return `"result":{}`
	}
	return `"error":{"code":-32601,"message":"Method not found"}`
}

func (s *session) read(out *bufio.Reader) {
	for {
		line, err := out.ReadBytes('\n')
		if len(line) > 0 {
			s.take(line)
		}
		if err != nil {
			break
		}
	}
	s.mu.Lock()
	s.eof = true
	for id, c := range s.waiting {
		close(c)
		delete(s.waiting, id)
	}
	s.mu.Unlock()
	s.cmd.Wait()
	close(s.exited)
}

func (s *session) take(line []byte) {
	var m message
	err := json.Unmarshal(line, &m)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.other = append(s.other, string(line))
	case m.Method != "":
		s.notes = append(s.notes, m)
		if m.ID != nil {
			s.put(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + s.answer(m.Method, m.Params) + `}`)
		}
	case s.waiting[string(m.ID)] != nil:
		s.waiting[string(m.ID)] <- m
		delete(s.waiting, string(m.ID))
	default:
		s.other = append(s.other, string(line))
	}
}

// put writes one line; s.mu is held.
func (s *session) put(line string) {
	io.WriteString(s.in, line+"\n") // a dead peer shows as a missing answer
}

func (s *session) send(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(line)
}

func (s *session) notify(method, params string) {
	s.send(`{"jsonrpc":"2.0","method":"` + method + `"` + member("params", params) + `}`)
}

func member(name, value string) string {
	if value == "" {
		return ""
	}
	return `,"` + name + `":` + value
}

// request sends a request; the channel yields its answer, or is closed when
// the peer is gone.
func (s *session) request(method, params string) (id string, answer <-chan message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	id = strconv.Itoa(s.next)
	c := make(chan message, 1)
	if s.eof {
		close(c)
		return id, c
	}
	s.waiting[id] = c
	s.put(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"` + member("params", params) + `}`)
	return id, c
}

var errGone = errors.New("the peer is gone")

func (s *session) wait(answer <-chan message) (message, error) {
	select {
	case m, ok := <-answer:
		if !ok {
			return message{}, errGone
		}
		return m, nil
	case <-time.After(patience):
		return message{}, errors.New("no answer")
	}
}

// call is one request and its answer.
func (s *session) call(method, params string) message {
	s.t.Helper()
	_, c := s.request(method, params)
	m, err := s.wait(c)
	if err != nil {
		s.t.Fatalf("%s: %v", method, err)
	}
	return m
}

// result is call for a request that must succeed.
func (s *session) result(method, params string) json.RawMessage {
	s.t.Helper()
	m := s.call(method, params)
	if m.Error != nil {
		s.t.Fatalf("%s: error %q", method, m.Error)
	}
	return m.Result
}

// initialize is the handshake of the revisions before 2026-07-28.
func (s *session) initialize() json.RawMessage {
	s.t.Helper()
	return s.initializeWith(`{"roots":{"listChanged":true},"elicitation":{"form":{},"url":{}}}`)
}

func (s *session) initializeWith(capabilities string) json.RawMessage {
	s.t.Helper()
	r := s.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+
		`,"clientInfo":{"name":"e2e","version":"1"}}`)
	s.notify("notifications/initialized", "")
	return r
}

// tool calls a tool whose arguments are the JSON text args.
func (s *session) tool(name, args string) json.RawMessage {
	s.t.Helper()
	return s.result("tools/call", `{"name":`+quote(name)+`,"arguments":`+args+`}`)
}

// exit closes the client's end and returns the exit code of the process.
func (s *session) exit() int {
	s.t.Helper()
	s.in.Close()
	return s.code()
}

// code waits for the process and returns its exit code.
func (s *session) code() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatal("the process does not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

func quote(s string) string {
	b := new(bytes.Buffer)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string always encodes
	return string(bytes.TrimSpace(b.Bytes()))
}

// A transcript keeps what a process wrote to stderr, up to a limit.
type transcript struct {
	mu  sync.Mutex
	buf []byte
}

const transcriptLimit = 16 << 20

func (w *transcript) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.buf)+len(p) <= transcriptLimit {
		w.buf = append(w.buf, p...)
	}
	return len(p), nil
}

func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.buf)
}

func (w *transcript) tail() string {
	s := w.String()
	return s[max(0, len(s)-2048):]
}
