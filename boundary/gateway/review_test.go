// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A clock is what the queue and the gateway believe the time to be.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A ward is a gateway that holds what has tag characters in it, with its queue in a
// store of SQLite.
type ward struct {
	*rig
	clock *clock
	queue *hold.Queue
	store *storage.Store
}

func newWard(t *testing.T, o hold.Options, adjust ...func(*Config)) *ward {
	t.Helper()
	s, err := storage.Open(context.Background(), filepath.Join(t.TempDir(), "held.db"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w := &ward{clock: &clock{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}, store: s}
	o.Now = w.clock.time
	w.queue = hold.New(s, o)
	rule := &Rule{Hold: []finding.Code{finding.HiddenTag}}
	w.rig = newRig(t, append([]func(*Config){func(c *Config) {
		c.Hold, c.now, c.Principal = w.queue, w.clock.time, "ann"
		c.StorePatience = patient
		c.Tools = func(string) *Rule { return rule }
	}}, adjust...)...)
	w.declare(tool("read", "") + "," + tool("look", ""))
	return w
}

const (
	poisoned = `{"content":[{"type":"text","text":"be\udb40\udc41fore\u202e"}]}`
	harmless = `{"content":[{"type":"text","text":"fine"}]}`
	question = `{"name":"read","arguments":{"path":"a"}}`
)

// ask lets the client call a tool and the server answer; the text that comes back.
func (w *ward) ask(params, answer string) (text string, got message) {
	w.t.Helper()
	got = w.result(w.request("1", "tools/call", params), answer)
	return got.text("result", "content", 0, "text"), got
}

// heldID demands that text is the placeholder of an item of the queue.
func (w *ward) heldID(text string) string {
	w.t.Helper()
	id, is := strings.CutPrefix(text, placeholderHeld)
	if id = strings.TrimSuffix(id, "]"); !is || !hold.ValidID(id) {
		w.t.Fatalf("not held: %q", text)
	}
	return id
}

// fromQueue lets the client call a tool, of which the server must not hear.
func (w *ward) fromQueue(params string) message {
	w.t.Helper()
	w.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`)
	got := parse(w.t, w.client.next())
	w.server.none()
	return got
}

func (w *ward) state(id string) hold.State {
	w.t.Helper()
	it, err := w.queue.Get(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return it.State
}

// TestReviewRelease: a result that is held, released, and then delivered once to the
// same call, treated as any other; the call after that goes to the server.
func TestReviewRelease(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{})
	text, got := w.ask(question, poisoned)
	id := w.heldID(text)
	if failed := string(got.at("result", "isError")); failed != "true" || got.text("result", "_meta", frame.MetaKey, "evidence") != id {
		t.Errorf("placeholder %s", got["result"])
	}
	it, err := w.queue.Get(context.Background(), id)
	if err != nil || string(it.Body) != poisoned || it.Server != "srv" || it.Tool != "read" || it.Principal != "ann" ||
		it.Rule != "finding" || it.Code != finding.HiddenTag {
		t.Fatalf("item %+v, %v", it, err)
	}
	// Nobody has decided: the same question goes to the server.
	if text, _ := w.ask(question, harmless); !strings.Contains(text, "fine") {
		t.Errorf("%q", text)
	}
	if err := w.queue.Release(context.Background(), id, "bob"); err != nil {
		t.Fatal(err)
	}
	// Another question is not answered with it, nor is the same one of another tool.
	for _, other := range []string{`{"name":"read","arguments":{"path":"b"}}`, `{"name":"look","arguments":{"path":"a"}}`, `{"name":"read"}`} {
		if text, _ := w.ask(other, harmless); !strings.Contains(text, "fine") {
			t.Errorf("%s: %q", other, text)
		}
	}
	got = w.fromQueue(question)
	if _, body, err := w.key.Open(got.text("result", "content", 0, "text"), frame.Origin{}); err != nil || body != "before" {
		t.Errorf("released: %q, %v", body, err)
	}
	d := w.last()
	if d.Released != id || d.Verdict != Changed || !strings.Contains(string(d.AppendJSON(nil)), `"released":"`+id+`"`) {
		t.Errorf("record %+v", d)
	}
	if w.state(id) != hold.Taken {
		t.Errorf("state %s", w.state(id))
	}
	if text, _ := w.ask(question, harmless); !strings.Contains(text, "fine") {
		t.Errorf("delivered twice? %q", text)
	}
}

// TestReviewNewSession: what was released comes under the name of its tool also where the
// call is the first that a session says.
func TestReviewNewSession(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{})
	text, _ := w.ask(question, poisoned)
	if err := w.queue.Release(context.Background(), w.heldID(text), "bob"); err != nil {
		t.Fatal(err)
	}
	other := newRig(t, func(c *Config) { c.Hold, c.Principal, c.now = w.queue, "ann", w.clock.time })
	other.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + question + `}`)
	list := parse(t, other.server.next())
	if list.str("method") != "tools/list" {
		t.Fatalf("the server hears %s", list["method"])
	}
	other.server.send(`{"jsonrpc":"2.0","id":` + string(list["id"]) + `,"result":{"tools":[` + tool("read", "") + `]}}`)
	got := parse(t, other.client.next())
	other.server.none()
	if name := got.text("result", "_meta", frame.MetaKey, "tool"); name != "read" || other.last().Tool != "read" {
		t.Errorf("tool %q: %s", name, got["result"])
	}
}

// TestReviewPrincipal: a release answers whoever asked, and nobody else.
func TestReviewPrincipal(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{})
	text, _ := w.ask(question, poisoned)
	if err := w.queue.Release(context.Background(), w.heldID(text), "bob"); err != nil {
		t.Fatal(err)
	}
	other := &ward{rig: newRig(t, func(c *Config) { c.Hold, c.Principal = w.queue, "mallory" })}
	if text, _ := other.ask(question, harmless); !strings.Contains(text, "fine") {
		t.Errorf("another's result was delivered: %q", text)
	}
	w.fromQueue(question)
}

func TestReviewDenied(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{})
	text, _ := w.ask(question, poisoned)
	id := w.heldID(text)
	if err := w.queue.Deny(context.Background(), id, "bob"); err != nil {
		t.Fatal(err)
	}
	if it, err := w.queue.Get(context.Background(), id); err != nil || it.Body != nil || it.State != hold.Denied {
		t.Errorf("%+v, %v", it, err)
	}
	if text, _ := w.ask(question, harmless); !strings.Contains(text, "fine") {
		t.Errorf("%q", text)
	}
	// What is poisoned again is held again: a decision is on one result.
	text, _ = w.ask(question, poisoned)
	if again := w.heldID(text); again == id {
		t.Error("the item that was denied is named again")
	}
}

func TestReviewExpired(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{Keep: time.Hour})
	first, _ := w.ask(question, poisoned)
	second, _ := w.ask(question, poisoned)
	if err := w.queue.Release(context.Background(), w.heldID(second), "bob"); err != nil {
		t.Fatal(err)
	}
	w.clock.forward(2 * time.Hour)
	if err := w.queue.Release(context.Background(), w.heldID(first), "bob"); !errors.Is(err, hold.ErrDecided) {
		t.Errorf("released when expired: %v", err)
	}
	if text, _ := w.ask(question, harmless); !strings.Contains(text, "fine") {
		t.Errorf("delivered when expired: %q", text)
	}
	if s := w.state(w.heldID(second)); s != hold.Expired {
		t.Errorf("state %s", s)
	}
}

// TestReviewException: an exception lets one finding through, as long as it lasts.
func TestReviewException(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	rules := map[string]*Rule{
		"read": {Hold: []finding.Code{finding.HiddenTag, finding.HiddenBidi}, Except: []Exception{{Code: finding.HiddenTag, Until: start.Add(time.Hour)}}},
		"look": {Hold: []finding.Code{finding.HiddenTag}, Except: []Exception{{Code: finding.HiddenTag}}},
	}
	const tagged = `{"content":[{"type":"text","text":"be\udb40\udc41fore"}]}`
	w := newWard(t, hold.Options{}, func(c *Config) { c.Tools = func(name string) *Rule { return rules[name] } })
	if text, _ := w.ask(question, tagged); !strings.Contains(text, "\nbefore\n") {
		t.Errorf("excepted: %q", text)
	}
	text, _ := w.ask(question, poisoned) // another finding is not excepted
	if it, _ := w.queue.Get(context.Background(), w.heldID(text)); it.Code != finding.HiddenBidi {
		t.Errorf("held for %s", it.Code)
	}
	w.clock.forward(2 * time.Hour)
	text, _ = w.ask(question, tagged)
	w.heldID(text)
	if text, _ := w.ask(`{"name":"look"}`, tagged); !strings.Contains(text, "\nbefore\n") {
		t.Errorf("excepted for ever: %q", text)
	}
}

// TestReviewFull: what finds no room is withheld all the same, and nothing else is.
func TestReviewFull(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{Room: hold.Room{PerServer: 1}})
	text, _ := w.ask(question, poisoned)
	id := w.heldID(text)
	var got message
	text, got = w.ask(question, poisoned)
	if !strings.HasPrefix(text, placeholderFull) || !strings.Contains(string(got["result"]), `"isError":true`) {
		t.Errorf("%q", text)
	}
	last := w.last()
	if d := string(last.AppendJSON(nil)); !strings.HasSuffix(text, last.ID.String()+"]") || !strings.Contains(d, `"withheld":{"hidden-tag":1,"queue-full":1}`) {
		t.Errorf("the record: %s", d)
	}
	if !strings.Contains(w.log.String(), "could not be put into the queue") {
		t.Error("the operator was not told")
	}
	if text, _ := w.ask(question, harmless); !strings.Contains(text, "fine") {
		t.Errorf("%q", text)
	}
	if w.state(id) != hold.Held {
		t.Error("what was held is lost")
	}
}

// TestReviewStoreGone: without its store a gateway withholds what it must, and goes on.
func TestReviewStoreGone(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{})
	w.store.Close()
	if text, _ := w.ask(question, poisoned); !strings.HasPrefix(text, placeholderWhole) {
		t.Errorf("%q", text)
	}
	if text, _ := w.ask(question, harmless); !strings.Contains(text, "fine") {
		t.Errorf("%q", text)
	}
	if s := w.log.String(); strings.Contains(s, "fore") {
		t.Errorf("log holds what the server said: %s", s)
	}
}

// TestReviewSchema: what cannot be judged by a schema is held, and a reviewer may let it
// through. What is invalid is not held: no reviewer could release it.
func TestReviewSchema(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{})
	w.declare(tool("read", pointSchema) + "," + tool("look", `,"outputSchema":{"type":"object","$ref":"file:///etc/passwd"}`))
	const answer = `{"content":[{"type":"text","text":"t"}],"structuredContent":{"x":"no number"}}`
	if text, _ := w.ask(question, answer); !strings.HasPrefix(text, placeholderWhole) {
		t.Errorf("invalid: %q", text)
	}
	question := strings.Replace(question, "read", "look", 1)
	text, _ := w.ask(question, answer)
	id := w.heldID(text)
	if it, _ := w.queue.Get(context.Background(), id); it.Rule != "schema" || it.Code != finding.SchemaUnverifiable {
		t.Errorf("%+v", it)
	}
	if err := w.queue.Release(context.Background(), id, "bob"); err != nil {
		t.Fatal(err)
	}
	if s := w.fromQueue(question).text("result", "structuredContent", "x"); s != "no number" {
		t.Errorf("released: %q", s)
	}
}

// TestReviewLLM: a released answer of a language model is delivered as any other of
// them, and what is added to it does not break the schema that the client was shown.
func TestReviewLLM(t *testing.T) {
	t.Parallel()
	rule := sonar(t, "sonar-pro")
	rule.Hold = []finding.Code{finding.HiddenTag}
	w := newWard(t, hold.Options{}, func(c *Config) { c.Tools = func(string) *Rule { return rule } })
	w.declare(tool("read", `,"outputSchema":{"type":"object","properties":{},"additionalProperties":false,"allOf":[{}]}`) + "," + tool("look", answerSchema))
	for name, members := range map[string]int{"read": 0, "look": 5} {
		asked := `{"name":"` + name + `"}`
		text, _ := w.ask(asked, poisoned)
		if err := w.queue.Release(context.Background(), w.heldID(text), "bob"); err != nil {
			t.Fatal(err)
		}
		got := w.fromQueue(asked)
		if s := got.text("result", "content", 0, "text"); !strings.HasPrefix(s, sonarNotice) || !strings.Contains(s, "\nbefore\n") {
			t.Errorf("%s: %q", name, s)
		}
		var content map[string]any
		if raw := got.at("result", "structuredContent"); raw != nil {
			if err := json.Unmarshal(raw, &content); err != nil {
				t.Fatal(err)
			}
		}
		if len(content) != members {
			t.Errorf("%s: structuredContent %v", name, content)
		}
	}
}

// TestReviewOthers: while results are held, one after the other, no other call waits
// or is refused, and each question finds its own release.
func TestReviewOthers(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{})
	const n = 20
	var poisonedIDs, others []string
	for i := range n {
		name := string(rune('a' + i))
		poisonedIDs = append(poisonedIDs, w.request(`"p`+name+`"`, "tools/call", `{"name":"read","arguments":{"n":"`+name+`"}}`))
		others = append(others, w.request(`"h`+name+`"`, "tools/call", `{"name":"look","arguments":{"n":"`+name+`"}}`))
	}
	for i := range n {
		w.server.send(`{"jsonrpc":"2.0","id":` + poisonedIDs[i] + `,"result":` + poisoned + `}`)
		w.server.send(`{"jsonrpc":"2.0","id":` + others[i] + `,"result":` + harmless + `}`)
	}
	held := map[string]string{} // by the question's id
	for range 2 * n {
		m := parse(t, w.client.next())
		text := m.text("result", "content", 0, "text")
		if id := m.str("id"); id[0] == 'h' && !strings.Contains(text, "\nfine\n") {
			t.Errorf("%s: %q", id, text)
		} else if id[0] == 'p' {
			held[id] = w.heldID(text)
		}
	}
	if len(held) != n {
		t.Fatalf("%d held", len(held))
	}
	// People decide while calls go on.
	var people sync.WaitGroup
	for _, id := range held {
		people.Go(func() {
			if err := w.queue.Release(context.Background(), id, "bob"); err != nil {
				t.Error(err)
			}
		})
	}
	for range n {
		if text, _ := w.ask(`{"name":"look"}`, harmless); !strings.Contains(text, "fine") {
			t.Errorf("%q", text)
		}
	}
	people.Wait()
	for q, id := range held {
		w.fromQueue(`{"name":"read","arguments":{"n":"` + q[1:] + `"}}`)
		if s := w.state(id); s != hold.Taken {
			t.Errorf("%s: %s", q, s)
		}
	}
}

// A stuckStore answers nothing before its caller gives up.
type stuckStore struct{ hold.Store }

func (stuckStore) AddHeld(ctx context.Context, _ hold.Item, _ hold.Room, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

func (stuckStore) IsReleased(ctx context.Context, _ hold.Digest, _ time.Time) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// A stuckSink waits as long as a decision lets it.
type stuckSink struct{}

func (stuckSink) Record(d Decision) error {
	time.Sleep(d.Wait)
	return errors.New("stuck")
}

type stuckBlocks struct{ hold.TimedStore[hold.Block] }

func (stuckBlocks) List(ctx context.Context, _ time.Time, _ bool) ([]hold.Block, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestStoreTime: a store that does not answer costs a call about a second in all, although
// it is asked for what was released, for blocks, to hold the result and to record it.
func TestStoreTime(t *testing.T) {
	synctest.Test(t, slowStore)
}

func slowStore(t *testing.T) {
	w := newWard(t, hold.Options{}, func(c *Config) {
		c.Hold, c.Blocks = hold.New(stuckStore{}, hold.Options{}), hold.NewBlocks(stuckBlocks{}, hold.BlockOptions{})
		c.Sink, c.RequireEvidence, c.StorePatience = stuckSink{}, true, nil
	})
	began := time.Now()
	w.ask(question, poisoned)
	if d := time.Since(began); d < maxStoreTime || d > 3*maxStoreTime/2 {
		t.Errorf("a call takes %v", d)
	}
}
