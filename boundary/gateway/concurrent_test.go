// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A manyStreams is a Conn whose messages come in as many goroutines as its peer has streams.
type manyStreams struct {
	got func(line string) // what the session writes, in the goroutine that does

	mu     sync.Mutex
	r      wire.Receiver
	over   bool
	active sync.WaitGroup
}

func (s *manyStreams) Start(r wire.Receiver) { s.r = r }

func (s *manyStreams) Write(_ context.Context, m *wire.Message) error {
	line := string(m.Append(nil))
	m.Release()
	s.got(line)
	return nil
}

// say delivers a message in the caller's goroutine.
func (s *manyStreams) say(line string) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.active.Add(1)
	s.mu.Unlock()
	defer s.active.Done()
	m, err := wire.Decode([]byte(line), testLimits)
	var v *wire.Violation
	if errors.As(err, &v) {
		s.r.Violation(v)
		return
	}
	s.r.Message(m)
}

// leave ends the Conn.
func (s *manyStreams) leave(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	go func() {
		s.active.Wait()
		s.r.Ended(why)
	}()
}

func (s *manyStreams) Close() error {
	s.leave(wire.ErrClosed)
	return nil
}

// A crowd is a session in which everything happens at a time, or one thing after the other.
type crowd struct {
	t             *testing.T
	client        *manyStreams
	server        *manyStreams
	admission     *allow
	queue         *hold.Queue
	sink          *memory
	serverWork    sync.WaitGroup
	serverAsks    atomic.Int64
	clientAnswers atomic.Int64

	mu       sync.Mutex
	waiting  map[string]chan string // for the answer to a request of the client
	answers  map[string]string
	progress map[string]int  // notifications of each token
	heard    map[string]bool // ids of requests that the server has got
	arrived  map[string]int  // calls of each question that the server has got
}

var evidenceIDs = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

const crowdTools = `{"tools":[{"name":"plain","inputSchema":{"type":"object"}},{"name":"poison","inputSchema":{"type":"object"}},` +
	`{"name":"kept","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}},` +
	`{"name":"strict","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}`

const crowdPrompt = `{"name":"flip","description":"May be asked for at times."}`

func newCrowd(t *testing.T) (*crowd, chan error) {
	store, err := storage.Open(context.Background(), filepath.Join(t.TempDir(), "held.db"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	c := &crowd{t: t, sink: &memory{}, queue: hold.New(store, hold.Options{}), waiting: map[string]chan string{}, answers: map[string]string{},
		progress: map[string]int{}, heard: map[string]bool{}, arrived: map[string]int{}}
	c.admission = newAllow(t, "", "tools/list", entriesOf(t, crowdTools)...)
	c.admission.add(t, "prompts/list", crowdPrompt)
	c.client, c.server = &manyStreams{got: c.clientGets}, &manyStreams{got: c.serverGets}
	key, _ := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	rule := &Rule{Hold: []finding.Code{finding.HiddenTag}}
	cfg := Config{Name: "srv", Key: key, Sink: c.sink, Log: slog.New(slog.DiscardHandler), Admission: c.admission, Hold: c.queue, Principal: "ann",
		Observer: inOrder{t}, StorePatience: patient, Finish: true,
		Tools: func(tool string) *Rule {
			if tool == "kept" {
				return rule
			}
			return nil
		}}
	over := make(chan error, 1)
	Start(t.Context(), c.client, c.server, cfg, func(err error) { over <- err })
	return c, over
}

// entriesOf are the entries of a page of tools.
func entriesOf(t *testing.T, page string) (entries []string) {
	var p struct{ Tools []json.RawMessage }
	if err := json.Unmarshal([]byte(page), &p); err != nil {
		t.Fatal(err)
	}
	for _, e := range p.Tools {
		entries = append(entries, string(e))
	}
	return entries
}

// clientGets takes what the client gets.
func (c *crowd) clientGets(line string) {
	m := parse(c.t, line)
	id := m.str("id")
	switch method := m.str("method"); {
	case method == "ping": // of the server
		c.clientAnswers.Add(1)
		go c.client.say(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":{}}`)
	case method == "notifications/progress":
		c.mu.Lock()
		defer c.mu.Unlock()
		token := m.text("params", "progressToken")
		if c.progress[token]++; c.answers[token] != "" {
			c.t.Errorf("progress of %s behind its answer", token)
		}
	case method != "":
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.waiting[id] == nil || c.answers[id] != "" {
			c.t.Errorf("an answer that the client does not wait for: %s", line)
			return
		}
		c.answers[id] = line
		close(c.waiting[id])
	}
}

// serverGets takes what the server gets, and answers in a goroutine of its own.
func (c *crowd) serverGets(line string) {
	m := parse(c.t, line)
	method, id := m.str("method"), string(m["id"])
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case method == "notifications/cancelled":
		if cancels := string(m.at("params", "requestId")); !c.heard[cancels] {
			c.t.Errorf("the server gets the cancellation of %s before the request", cancels)
		}
		return
	case id == "" || method == "":
		return
	}
	c.heard[id] = true
	if method == "tools/call" {
		c.arrived[m.text("params", "name")+string(m.at("params", "arguments"))]++
	}
	c.serverWork.Go(func() { c.serve(id, method, m) })
}

func (c *crowd) serve(id, method string, m message) {
	if token := m.text("params", "_meta", "progressToken"); token != "" {
		for range 3 {
			c.server.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"` + token + `","progress":1}}`)
		}
	}
	n := string(m.at("params", "arguments", "n"))
	result := `{}`
	switch name := m.text("params", "name"); {
	case method == "tools/list":
		result = crowdTools
	case method == "resources/read":
		result = `{"contents":[{"uri":"` + m.text("params", "uri") + `","text":"a\u200bresource"}]}`
	case method == "prompts/get":
		result = `{"messages":[]}`
	case name == "plain":
		result = `{"content":[{"type":"text","text":"plain ` + n + `"}]}`
	case name == "poison":
		result = `{"content":[{"type":"text","text":"be\u202efore <|im_start|> ` + n + `"}]}`
	case name == "kept":
		result = `{"content":[{"type":"text","text":"be\udb40\udc41fore ` + n + `"}]}`
	case name == "strict":
		result = `{"content":[],"structuredContent":{"n":"` + n + `"}}`
	case name == "slow":
		time.Sleep(time.Millisecond)
		result = `{"content":[]}`
	}
	answer := `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
	c.server.say(answer)
	if n == "7" { // a second answer changes nothing
		c.server.say(answer)
	}
}

// ask sends a request of the client in the caller's goroutine, and returns the answer.
func (c *crowd) ask(id, method, params string) string {
	come := make(chan string)
	c.mu.Lock()
	c.waiting[id] = come
	c.mu.Unlock()
	c.client.say(`{"jsonrpc":"2.0","id":"` + id + `","method":"` + method + `","params":` + params + `}`)
	select {
	case <-come:
	case <-time.After(time.Minute):
		c.t.Errorf("no answer to %s", id)
		return "{}"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[id]
}

func (c *crowd) call(id, tool string, n int) message {
	params := fmt.Sprintf(`{"name":%q,"arguments":{"n":%d},"_meta":{"progressToken":%q}}`, tool, n, id)
	return parse(c.t, c.ask(id, "tools/call", params))
}

// steps are what happens in a session. Those whose names begin with x have no certain answer.
func (c *crowd) steps() (steps []func()) {
	add := func(f func()) { steps = append(steps, f) }
	for i := range 24 {
		add(func() { c.call(fmt.Sprintf("plain-%d", i), "plain", i) })
		add(func() { c.call(fmt.Sprintf("poison-%d", i), "poison", i) })
		add(func() { c.call(fmt.Sprintf("strict-%d", i), "strict", i) })
		add(func() { c.ask(fmt.Sprintf("list-%d", i), "tools/list", "{}") })
		add(func() { c.ask(fmt.Sprintf("read-%d", i), "resources/read", fmt.Sprintf(`{"uri":"f:%d"}`, i)) })
		add(func() { c.server.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) })
		add(func() {
			c.serverAsks.Add(1)
			c.server.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"s%d","method":"ping"}`, i))
		})
		add(func() { c.cancelled(fmt.Sprintf("x-cancelled-%d", i), i) })
		add(func() { c.ask(fmt.Sprintf("x-flip-%d", i), "prompts/get", `{"name":"flip"}`) })
		add(func() { c.approve(i%2 == 0) })
	}
	for i := range 8 {
		add(func() { c.released(i) })
	}
	return steps
}

// approve approves or withdraws a prompt.
func (c *crowd) approve(approved bool) {
	k := surface.Key{Kind: surface.Prompt, Name: "flip"}
	c.admission.mu.Lock()
	c.admission.held[k] = !approved
	c.admission.mu.Unlock()
	c.admission.change()
}

// cancelled lets the client ask and give up at the same time.
func (c *crowd) cancelled(id string, n int) {
	c.mu.Lock()
	c.waiting[id] = make(chan string)
	c.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		c.client.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"slow","arguments":{"n":%d}}}`, id, n))
	})
	both.Go(func() {
		c.client.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q}}`, id))
	})
	both.Wait()
}

// released has a result held, releases it, and asks again: the server does not hear of that.
func (c *crowd) released(n int) {
	first := c.call(fmt.Sprintf("kept-%d", n), "kept", 1000+n)
	id := first.text("result", "_meta", frame.MetaKey, "evidence")
	if err := c.queue.Release(context.Background(), id, "bob"); err != nil {
		c.t.Errorf("%s: %v", first, err)
	}
	c.call(fmt.Sprintf("released-%d", n), "kept", 1000+n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if calls := c.arrived[fmt.Sprintf(`kept{"n":%d}`, 1000+n)]; calls != 1 {
		c.t.Errorf("the server was asked %d times for what was held and released", calls)
	}
}

// outcome is what can be compared of a session: its answers by id, and its records without their order.
func (c *crowd) outcome(over chan error) (answers map[string]string, records []string) {
	c.serverWork.Wait()
	c.client.leave(io.EOF)
	select {
	case err := <-over:
		if err != nil {
			c.t.Errorf("the session ended with %v", err)
		}
	case <-time.After(time.Minute):
		c.t.Fatal("the session does not end")
	}
	if c.serverAsks.Load() != c.clientAnswers.Load() {
		c.t.Errorf("%d requests of the server, %d came to the client", c.serverAsks.Load(), c.clientAnswers.Load())
	}
	answers = map[string]string{}
	for id, line := range c.answers {
		if !strings.HasPrefix(id, "x-") {
			answers[id] = evidenceIDs.ReplaceAllString(line, "ID")
			if tool, _, _ := strings.Cut(id, "-"); tool == "plain" && c.progress[id] != 3 {
				c.t.Errorf("%d notifications of %s", c.progress[id], id)
			}
		}
	}
	for _, d := range c.sink.all() {
		if d.Tool == "slow" || d.Method == "prompts/get" || d.Method == frame.Other {
			continue // of what has no certain answer
		}
		d.Time, d.Delivered = time.Time{}, frame.Digest{} // what is delivered names its evidence
		records = append(records, evidenceIDs.ReplaceAllString(string(d.AppendJSON(nil)), "ID"))
	}
	slices.Sort(records)
	return answers, records
}

// patient is a StorePatience of tests that a busy disk does not concern.
func patient() time.Duration { return time.Minute }

// inOrder is an Observer that finds calls of an Exchange out of their order.
type inOrder struct{ t *testing.T }

func (o inOrder) Session(string) func(error) { return nil }

func (o inOrder) Request(Request) Exchange { return &exchangeOrder{t: o.t} }

type exchangeOrder struct {
	t  *testing.T
	at string
}

func (e *exchangeOrder) step(to string, after ...string) {
	if !slices.Contains(after, e.at) {
		e.t.Errorf("%s behind %q", to, e.at)
	}
	e.at = to
}

func (e *exchangeOrder) Sent(string) { e.step("sent", "") }

func (e *exchangeOrder) Answered(int) { e.step("answered", "sent") }

func (e *exchangeOrder) Done(Outcome, int) { e.step("done", "", "sent", "answered") }

// TestConcurrentSession: a session in which everything happens at a time gives each request the answer that it
// gets where one thing happens after the other, and leaves the same records.
func TestConcurrentSession(t *testing.T) {
	one, over := newCrowd(t)
	for _, step := range one.steps() {
		step()
	}
	answers, records := one.outcome(over)
	if len(answers) != 24*5+8*2 || len(records) < len(answers)-24 {
		t.Fatalf("%d answers, %d records", len(answers), len(records))
	}
	for range 3 {
		all, over := newCrowd(t)
		var work sync.WaitGroup
		for _, step := range all.steps() {
			work.Go(step)
		}
		work.Wait()
		gotAnswers, gotRecords := all.outcome(over)
		if !maps.Equal(gotAnswers, answers) {
			for id, want := range answers {
				if got := gotAnswers[id]; got != want {
					t.Errorf("%s: at a time\n%s\none after the other\n%s", id, got, want)
				}
			}
		}
		if !slices.Equal(gotRecords, records) {
			t.Errorf("%d records at a time, %d one after the other; the first that differs: %s", len(gotRecords), len(records), firstDifference(gotRecords, records))
		}
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\n" + b[i]
		}
	}
	return "the length"
}
