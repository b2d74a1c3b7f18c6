// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

const taskTimes = `"createdAt":"2026-11-01T10:00:00Z","lastUpdatedAt":"2026-11-01T10:00:00Z","ttl":1000`

// taskAnswers are what a server can say of a task, by the method that asks for it, with a result of a tool in it.
func taskAnswers(result string) map[string]string {
	const task = `"taskId":"t","status":"completed",` + taskTimes
	return map[string]string{
		"tasks/result": result,
		"tasks/get":    `{` + task + `,"result":` + result + `}`,
		"tasks/cancel": `{` + task + `,"result":` + result + `}`,
		"tasks/list":   `{"tasks":[{` + task + `,"result":` + result + `}]}`,
	}
}

// The two forms in which a call is answered with a task; %s is its id as JSON.
const (
	createdLegacy = `{"task":{"taskId":%s,"status":"working",` + taskTimes + `}}`
	createdModern = `{"resultType":"task","taskId":%s,"status":"working",` + taskTimes + `}`
)

// creates lets the client call a tool, and the server answer with a task.
func (r *rig) creates(tool, form, id string) message {
	r.t.Helper()
	return r.result(r.request("1", "tools/call", `{"name":"`+tool+`"}`), fmt.Sprintf(form, id))
}

// about lets the client ask for a task.
func (r *rig) about(method, id, answer string) message {
	r.t.Helper()
	return r.result(r.request("2", method, `{"taskId":`+id+`}`), answer)
}

// notified lets the server send a notification about a task, and returns what the client gets: it, or the answer to
// what it asks for then.
func (r *rig) notified(method, id, more string) message {
	r.t.Helper()
	r.server.send(`{"jsonrpc":"2.0","method":"` + method + `","params":{"taskId":` + id + `,"status":"completed",` + taskTimes + more + `}}`)
	up := r.request("3", "ping", "")
	r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":{}}`)
	got := parse(r.t, r.client.next())
	if got.str("method") != "" {
		r.client.next()
	}
	return got
}

// byTool are rules of single tools. That of "" is the server's.
func byTool(rules map[string]*Rule) func(*Config) {
	return func(c *Config) {
		c.Tools = func(name string) *Rule {
			if r := rules[name]; r != nil {
				return r
			}
			return rules[""]
		}
		c.Rules = func() []*Rule { return slices.Collect(maps.Values(rules)) }
	}
}

var holdsTags = &Rule{Hold: []finding.Code{finding.HiddenTag}}

// wayOf is how a server may hand the result of a task over.
var wayOf = map[string]func(w *ward, id, result string) message{
	"tasks/result": func(w *ward, id, result string) message { return w.about("tasks/result", id, result) },
	"tasks/get": func(w *ward, id, result string) message {
		return w.about("tasks/get", id, `{"taskId":`+id+`,"status":"completed",`+taskTimes+`,"result":`+result+`}`)
	},
	"tasks/cancel": func(w *ward, id, result string) message {
		return w.about("tasks/cancel", id, `{"taskId":`+id+`,"status":"cancelled",`+taskTimes+`,"result":`+result+`}`)
	},
	"notifications/tasks": func(w *ward, id, result string) message {
		return w.notified("notifications/tasks", id, `,"result":`+result)
	},
	"notifications/tasks/status": func(w *ward, id, result string) message {
		return w.notified("notifications/tasks/status", id, `,"result":`+result)
	},
}

// TestHoldTasks: what a server's rule wants held is held also where the server answers by a task, and no more than that.
func TestHoldTasks(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{})
	for method, result := range taskAnswers(poisoned) {
		got := w.result(w.request("1", method, `{"taskId":"t"}`), result)
		if d := w.last(); strings.Contains(string(got.at()), "fore") || d.Verdict != Withheld || !strings.Contains(string(got.at()), d.ID.String()) {
			t.Errorf("%s: delivered %s, %+v", method, got.at(), d)
		}
	}
	for method, result := range taskAnswers(harmless) {
		if got := w.result(w.request("2", method, `{"taskId":"t"}`), result); !strings.Contains(string(got.at("result")), "fine") {
			t.Errorf("%s: delivered %s", method, got.at())
		}
	}
	w = newWard(t, hold.Options{}, func(c *Config) { c.Tools = nil })
	if got := w.result(w.request("1", "tasks/result", `{"taskId":"t"}`), poisoned); !strings.Contains(got.text("result", "content", 0, "text"), "\nbefore\n") {
		t.Errorf("without a rule: %s", got.at())
	}
}

// TestTaskHold: the hold of the tool that created a task applies to its result, whichever message brings it; so does the
// strictest one where an id is of several tools, or of none that is known.
func TestTaskHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		tools []string // that are answered with the task, in order
		held  bool
	}{
		{"held", []string{"read"}, true},
		{"not held", []string{"look"}, false},
		{"twice", []string{"look", "look"}, false},
		{"taken over", []string{"read", "look"}, true},
		{"taken over before", []string{"look", "read"}, true},
		{"unknown", nil, true},
	} {
		for form, created := range map[string]string{"legacy": createdLegacy, "modern": createdModern} {
			t.Run(c.name+" "+form, func(t *testing.T) {
				w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"read": holdsTags, "": {}}))
				for _, tool := range c.tools {
					if got := w.creates(tool, created, `"t"`); !strings.Contains(string(got.at("result")), `"t"`) {
						t.Fatalf("the task did not arrive: %s", got.at())
					}
				}
				for way, hands := range wayOf {
					got := hands(w, `"t"`, poisoned)
					if held := !strings.Contains(string(got.at()), "before"); held != c.held {
						t.Errorf("%s: held %v: %s", way, held, got.at())
					}
					if d := w.last(); c.held && d.Verdict != Withheld && d.Verdict != Dropped {
						t.Errorf("%s: recorded %s", way, d.AppendJSON(nil))
					}
					if got := hands(w, `"t"`, harmless); !strings.Contains(string(got.at()), "fine") {
						t.Errorf("%s: honest: %s", way, got.at())
					}
				}
				if d := w.last(); len(c.tools) == 1 && d.Tool != c.tools[0] || len(c.tools) != 1 && c.name != "twice" && d.Tool != "" {
					t.Errorf("tool %q", d.Tool)
				}
			})
		}
	}
}

// TestTaskUnknown: where no rule holds anything, results of tasks that the gateway does not know are delivered.
func TestTaskUnknown(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"read": {}, "": {}}))
	for way, hands := range wayOf {
		if got := hands(w, `"t"`, poisoned); !strings.Contains(string(got.at()), "before") {
			t.Errorf("%s: %s", way, got.at())
		}
	}
}

// TestTaskRelease: what is held of a task comes into the queue under its tool, and once it is released the same request
// for the same task gets it, once, in another session too.
func TestTaskRelease(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"tasks/result", "tasks/get"} {
		t.Run(method, func(t *testing.T) {
			rules := byTool(map[string]*Rule{"read": holdsTags, "": {}})
			w := newWard(t, hold.Options{}, rules)
			w.creates("read", createdLegacy, `"t"`)
			got := wayOf[method](w, `"t"`, poisoned)
			id := w.last().ID.String()
			text := got.text("result", "content", 0, "text")
			if method == "tasks/get" {
				if text = got.text("error", "message"); text != errHeld.text || got.text("error", "data", "evidence") != id {
					t.Fatalf("told %s", got.at())
				}
			} else if w.heldID(text) != id {
				t.Fatalf("told %s", got.at())
			}
			it, err := w.queue.Get(context.Background(), id)
			if err != nil || it.Tool != "read" || it.Principal != "ann" || it.Code != finding.HiddenTag || it.Found.Task != method || !strings.Contains(string(it.Body), "fore") {
				t.Fatalf("item %+v, %v", it, err)
			}
			if err := w.queue.Release(context.Background(), id, "bob"); err != nil {
				t.Fatal(err)
			}
			for _, other := range []func(){ // neither another task, nor another request about it
				func() { got = w.about(method, `"u"`, taskAnswers(harmless)[method]) },
				func() { got = w.about("tasks/cancel", `"t"`, taskAnswers(harmless)["tasks/cancel"]) },
				func() {
					got = w.result(w.request("1", "tools/call", `{"name":"tasks/result","arguments":"t"}`), harmless)
				},
			} {
				if other(); !strings.Contains(string(got.at()), "fine") {
					t.Errorf("delivered %s", got.at())
				}
			}
			stranger := newRig(t, rules, func(c *Config) { c.Hold, c.Principal, c.now = w.queue, "mallory", w.clock.time })
			if got := stranger.about(method, `"t"`, taskAnswers(harmless)[method]); !strings.Contains(string(got.at()), "fine") {
				t.Errorf("another person's result was delivered: %s", got.at())
			}
			again := newRig(t, rules, func(c *Config) { c.Hold, c.Principal, c.now = w.queue, "ann", w.clock.time })
			again.declare(tool("read", ""))
			again.client.send(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"taskId":"t"}}`)
			if got := parse(t, again.client.next()); !strings.Contains(string(got.at("result")), "before") || again.last().Released != id {
				t.Errorf("released: %s", got.at())
			}
			again.server.none()
			if got := again.about(method, `"t"`, taskAnswers(harmless)[method]); !strings.Contains(string(got.at()), "fine") {
				t.Errorf("delivered twice: %s", got.at())
			}
		})
	}
}

// TestTaskReleaseOfCreation: a task that a person has released is remembered as any other.
func TestTaskReleaseOfCreation(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"read": holdsTags, "": {}}))
	created := `{"task":{"taskId":"t","status":"working","statusMessage":"be\udb40\udc41fore",` + taskTimes + `}}`
	text, _ := w.ask(question, created)
	if err := w.queue.Release(context.Background(), w.heldID(text), "bob"); err != nil {
		t.Fatal(err)
	}
	w.fromQueue(question)
	if got := w.about("tasks/result", `"t"`, poisoned); w.last().Tool != "read" {
		t.Errorf("%s", got.at())
	}
}

// TestTaskTool: profile, exceptions, captures and fence of a task's result are those of its tool.
func TestTaskTool(t *testing.T) {
	t.Parallel()
	store := &keptRows{}
	keeper := captures.New(captures.Options{Store: store, Sealer: testSealer(t)})
	w := newWard(t, hold.Options{}, byTool(map[string]*Rule{
		"read": {Profile: MCP, Hold: []finding.Code{finding.HiddenTag}, Except: []Exception{{Code: finding.HiddenTag}},
			Capture: Capture{Delivered: true, Of: []Verdict{Changed}}},
		"look": holdsTags, "": {},
	}), func(c *Config) { c.Captures = keeper })
	w.creates("read", createdLegacy, `"t"`)
	got := w.about("tasks/result", `"t"`, `{"content":[{"type":"text","text":"be\udb40\udc41fo\u2060re"}]}`)
	p, body, err := w.key.Open(got.text("result", "content", 0, "text"), frame.Origin{})
	if d := w.last(); err != nil || body != "before" || p.Tool != "read" || d.Profile != "mcp" || d.Tool != "read" {
		t.Errorf("%s: %v, %s", got.at(), err, d.AppendJSON(nil))
	}
	keeper.Close()
	if len(store.rows) != 1 {
		t.Errorf("%d texts were kept", len(store.rows))
	}
}

// TestTaskSchema: the result of a task has to stand up to the outputSchema of its tool. Where the task may be of several
// tools, a structured result cannot be judged.
func TestTaskSchema(t *testing.T) {
	t.Parallel()
	const wrong, right, plain = `{"content":[],"structuredContent":{"x":"y"}}`, `{"content":[],"structuredContent":{"x":1}}`, harmless
	for _, c := range []struct {
		name    string
		tools   []string
		passes  map[string]bool
		verdict validate.Conformity // of wrong
	}{
		{"known", []string{"sum"}, map[string]bool{wrong: false, right: true, plain: true}, validate.Invalid},
		{"several", []string{"look", "sum"}, map[string]bool{wrong: false, right: false, plain: true}, validate.Unverifiable},
		{"without a schema", []string{"look", "read"}, map[string]bool{wrong: true, right: true, plain: true}, 0},
		{"unknown", nil, map[string]bool{wrong: true, right: true, plain: true}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"": {}}))
			w.declare(tool("sum", pointSchema) + "," + tool("look", "") + "," + tool("read", ""))
			for _, tool := range c.tools {
				w.creates(tool, createdModern, `"t"`)
			}
			for way, hands := range wayOf {
				for result, passes := range c.passes {
					before := len(w.sink.all())
					got := hands(w, `"t"`, result)
					d := w.sink.all()[before]
					if delivered := d.Verdict == Passed || d.Verdict == Changed; delivered != passes {
						t.Errorf("%s %s: %s, %s", way, result, got.at(), d.AppendJSON(nil))
					}
					if result == wrong && d.Validation.Conformity != c.verdict {
						t.Errorf("%s: %s", way, d.AppendJSON(nil))
					}
				}
			}
			for way, hands := range wayOf {
				if got := hands(w, `"t"`, `{"content":[{"type":"text","body":"LEAK"}]}`); strings.Contains(string(got.at()), "LEAK") && way == "tasks/result" {
					t.Errorf("%s of another form: %s", way, got.at())
				}
			}
		})
	}
}

// TestTaskClassifiers: those of the tool judge the result of its task before it is delivered; of a task that may be of
// several tools, those of each.
func TestTaskClassifiers(t *testing.T) {
	t.Parallel()
	strict := aMember(t, &words{})
	for _, c := range []struct {
		tools  []string
		judged bool
	}{{[]string{"read"}, true}, {[]string{"look"}, false}, {[]string{"look", "read"}, true}, {nil, true}} {
		j := newJury(t, &ShadowOptions{})
		j.Of = func(tool string) (list []*classify.Member) {
			if tool == "read" {
				list = append(list, strict)
			}
			return list
		}
		j.Any = func() []*classify.Member { return []*classify.Member{strict} }
		w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"": {}}), j.set)
		for _, tool := range c.tools {
			w.creates(tool, createdModern, `"t"`)
		}
		for way, hands := range wayOf {
			got := hands(w, `"t"`, `{"content":[{"type":"text","text":"some evil words"}]}`)
			if withheld := !strings.Contains(string(got.at()), "evil"); withheld != c.judged {
				t.Errorf("%v %s: %s", c.tools, way, got.at())
			}
			if got := hands(w, `"t"`, harmless); !strings.Contains(string(got.at()), "fine") && !strings.HasPrefix(way, "notifications/") {
				t.Errorf("%v %s, honest: %s", c.tools, way, got.at())
			}
		}
	}
}

// TestPolicyTasks: the policy is asked about the tool of a task, and about one that has no name and may do everything where
// that is not known.
func TestPolicyTasks(t *testing.T) {
	t.Parallel()
	for _, a := range []policy.Action{policy.Allow, policy.Ask, policy.Hold, policy.Deny} {
		j := &judge{result: outcome(a)}
		w := newWard(t, hold.Options{}, policed(j)...)
		for method, result := range taskAnswers(harmless) {
			got := w.result(w.request("1", method, `{"taskId":"t"}`), result)
			if shown := strings.Contains(string(got.at()), "fine"); shown != (a == policy.Allow) {
				t.Errorf("%s, %s: %s", a, method, got.at())
			}
			if e := j.last(); e.Direction != policy.Result || e.Tool != "" || !e.Privileged || !e.Destructive || !e.OpenWorld {
				t.Errorf("%s, %s: asked about %+v", a, method, e)
			}
		}
		if a != policy.Allow {
			continue
		}
		w.declare(tool("read", `,"annotations":{"readOnlyHint":true}`))
		w.creates("read", createdLegacy, `"t"`)
		j.result = outcome(policy.Hold)
		for way, hands := range wayOf {
			if got := hands(w, `"t"`, harmless); strings.Contains(string(got.at()), "fine") {
				t.Errorf("%s: %s", way, got.at())
			}
			if e := j.last(); e.Tool != "read" || !e.ReadOnly || e.Privileged {
				t.Errorf("%s: asked about %+v", way, e)
			}
		}
	}
}

// TestTaskHostile: ids of any form. Nothing of one comes into the log, and a result under one that the gateway cannot know is
// held as the strictest rule says.
func TestTaskHostile(t *testing.T) {
	t.Parallel()
	huge := `"` + strings.Repeat("sec\\u0072et", 1<<17) + `"`
	for _, id := range []string{`{"secret":1}`, `7`, `["secret"]`, `null`, `""`, `"sec\u200bret"`, `"secret\u001b[31m"`, `"secret\ud800"`, `"secret\u202e"`, huge} {
		for form, created := range map[string]string{"legacy": createdLegacy, "modern": createdModern} {
			w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"read": holdsTags, "": {}}))
			w.creates("look", created, id)
			w.creates("read", created, id)
			asks := []string{id, `"secret"`}
			if strings.Contains(id, `\ud800`) {
				asks = asks[1:] // a client that sends this is answered at once
			}
			for _, asked := range asks {
				for _, way := range []string{"tasks/result", "tasks/get"} {
					if got := w.about(way, asked, taskAnswers(poisoned)[way]); strings.Contains(string(got.at()), "before") {
						t.Errorf("%.40s %s %s: %.200s", id, form, way, got.at())
					}
				}
			}
			for _, way := range []string{"notifications/tasks", "notifications/tasks/status"} {
				if got := wayOf[way](w, id, poisoned); strings.Contains(string(got.at()), "before") {
					t.Errorf("%.40s %s %s: %.200s", id, form, way, got.at())
				}
			}
			if log := w.log.String(); strings.Contains(log, "secret") {
				t.Errorf("%.40s: the log has it: %.300s", id, log)
			}
		}
	}
}

// brokenTasks is a memory that has failed.
type brokenTasks struct{}

func (brokenTasks) AddTask(context.Context, hold.Digest, string, time.Time, time.Time) error {
	return errors.New("away")
}
func (brokenTasks) TaskTools(context.Context, hold.Digest, time.Time, int) ([]string, error) {
	return nil, errors.New("away")
}

// TestTaskMemoryFails: a task is then as one whose tool is not known, and the operator is told.
func TestTaskMemoryFails(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"read": holdsTags, "": {}}), func(c *Config) { c.Tasks = brokenTasks{} })
	w.creates("look", createdLegacy, `"t"`)
	if got := w.about("tasks/result", `"t"`, poisoned); strings.Contains(string(got.at()), "before") {
		t.Errorf("delivered %s", got.at())
	}
	if log := w.log.String(); !strings.Contains(log, "could not be kept") || !strings.Contains(log, "could not be found") {
		t.Errorf("log %s", log)
	}
}

// TestSessionTasks: a session remembers a bounded number of tasks, and forgets none before its time.
func TestSessionTasks(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	of := func(n int) hold.Digest { return sha256.Sum256([]byte{byte(n), byte(n >> 8)}) }
	s := new(sessionTasks)
	for i := range maxTasks {
		if err := s.AddTask(ctx, of(i), "a", now, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddTask(ctx, of(maxTasks), "a", now, now.Add(time.Hour)); err == nil {
		t.Error("one too many was taken")
	}
	for _, tool := range []string{"b", "a", "b"} { // one that is known takes further tools
		if err := s.AddTask(ctx, of(0), tool, now, now.Add(time.Hour)); err != nil {
			t.Error(err)
		}
	}
	if got, _ := s.TaskTools(ctx, of(0), now, maxTaskTools+1); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("tools %q", got)
	}
	for i := range 100 {
		_ = s.AddTask(ctx, of(1), fmt.Sprint(i), now, now.Add(time.Hour))
	}
	if got, _ := s.TaskTools(ctx, of(1), now, maxTaskTools+1); len(got) != maxTaskTools+1 {
		t.Errorf("%d tools", len(got))
	}
	now = now.Add(time.Hour)
	if got, _ := s.TaskTools(ctx, of(0), now, maxTaskTools+1); got != nil {
		t.Errorf("after its time: %q", got)
	}
	if err := s.AddTask(ctx, of(maxTasks), "a", now, now.Add(time.Hour)); err != nil || len(s.of) != 1 {
		t.Errorf("%v, %d tasks", err, len(s.of))
	}
}

// TestSessionTasksConcurrent is for the race detector.
func TestSessionTasksConcurrent(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	s := new(sessionTasks)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				_ = s.AddTask(ctx, hold.Digest{byte(n)}, fmt.Sprint(i), now, now.Add(time.Hour))
				got, _ := s.TaskTools(ctx, hold.Digest{byte(n)}, now, maxTaskTools+1)
				for range got {
				}
			}
		})
	}
	all.Wait()
	if got, _ := s.TaskTools(ctx, hold.Digest{}, now, maxTaskTools+1); len(got) != 8 {
		t.Errorf("%q", got)
	}
}

// TestTaskManyTools: an id of more tools than are remembered is treated as one whose tool is not known.
func TestTaskManyTools(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"read": holdsTags, "": {}}))
	for i := range maxTaskTools {
		w.creates(fmt.Sprintf("t%d", i), createdLegacy, `"t"`)
	}
	if got := w.about("tasks/result", `"t"`, poisoned); !strings.Contains(string(got.at()), "before") {
		t.Errorf("%s", got.at())
	}
	w.creates("read", createdLegacy, `"t"`)
	w.creates("look", createdLegacy, `"t"`)
	if got := w.about("tasks/result", `"t"`, poisoned); strings.Contains(string(got.at()), "before") {
		t.Errorf("%s", got.at())
	}
	if got := w.about("tasks/result", `"t"`, `{"content":[],"structuredContent":{}}`); !strings.Contains(string(got.at()), "holds") {
		t.Errorf("%s", got.at())
	}
}

// TestStrictest: what each of several rules wants.
func TestStrictest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	a, b := finding.HiddenTag, finding.HiddenBidi
	got := strictest([]Rule{
		{Profile: Faithful, Frame: frame.KindMeta, MaxChars: 0, Validation: Validation{Mode: policy.Off, PassUnverifiable: true}, Unprivileged: true,
			Hold: []finding.Code{a}, Except: []Exception{{Code: a}, {Code: b}}},
		{Profile: MCP, Frame: frame.KindMeta, MaxChars: 9, Validation: Validation{Mode: policy.Audit, PassUnverifiable: true}, Unprivileged: true,
			Hold: []finding.Code{a, b}, Except: []Exception{{Code: b, Until: now.Add(time.Hour)}, {Code: a, Until: now}}, Framing: Framing{StructuredText: true}},
	}, now)
	if got.Profile != MCP || got.Frame != frame.KindMeta || got.MaxChars != 9 || got.Mode != policy.Audit || !got.PassUnverifiable || !got.Unprivileged ||
		!got.StructuredText || !slices.Equal(got.Hold, []finding.Code{a}) || len(got.Except) != 1 || got.Except[0].Code != b {
		t.Errorf("%+v", got)
	}
	if got := strictest([]Rule{{Frame: frame.KindMeta, Unprivileged: true}, {}}, now); got.Frame != frame.KindFence || got.Unprivileged || got.Mode != policy.Enforce {
		t.Errorf("%+v", got)
	}
}

// TestTaskShared: sessions that share a memory know each other's tasks, of the same principal and the same server only.
func TestTaskShared(t *testing.T) {
	t.Parallel()
	rules := byTool(map[string]*Rule{"read": {}, "look": holdsTags, "": {}})
	w := newWard(t, hold.Options{}, rules)
	shared := func(c *Config) { c.Tasks, c.now = w.store, w.clock.time }
	one := newRig(t, rules, shared, func(c *Config) { c.Principal = "ann" })
	one.creates("read", createdLegacy, `"t"`)
	for name, who := range map[string]func(*Config){
		"ann":     func(c *Config) { c.Principal = "ann" },
		"bob":     func(c *Config) { c.Principal = "bob" },
		"another": func(c *Config) { c.Principal, c.Name = "ann", "another" },
	} {
		other := newRig(t, rules, shared, who)
		got := other.about("tasks/result", `"t"`, poisoned)
		if held := !strings.Contains(string(got.at()), "before"); held != (name != "ann") {
			t.Errorf("%s: %s", name, got.at())
		}
	}
	w.clock.forward(taskKept)
	if got := newRig(t, rules, shared, func(c *Config) { c.Principal = "ann" }).about("tasks/result", `"t"`, poisoned); strings.Contains(string(got.at()), "before") {
		t.Errorf("after its time: %s", got.at())
	}
}
