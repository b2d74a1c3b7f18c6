// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// byName is a policy that decides by the name of a tool about results in which something was found.
type byName map[string]policy.Action

func (byName) Reads() policy.Reads { return policy.Reads{} }

func (b byName) Decide(e policy.Input) policy.Ruling {
	if a := b[e.Tool]; e.Direction == policy.Result && a != policy.Allow && len(e.Findings) > 0 {
		return policy.Ruling{Match: policy.Match{Action: a, Rule: e.Tool}}
	}
	return policy.Ruling{}
}

// TestTaskPolicyOfSeveral: where an id is of several tools, the policy is asked about each of them.
func TestTaskPolicyOfSeveral(t *testing.T) {
	t.Parallel()
	for _, a := range []policy.Action{policy.Hold, policy.Deny} {
		w := newWard(t, hold.Options{}, func(c *Config) { c.Policy, c.Tools = byName{"read": a}, nil })
		w.declare(tool("read", "") + "," + tool("look", ""))
		w.creates("look", createdModern, `"t"`)
		w.creates("read", createdModern, `"u"`)
		w.result(w.request("1", "tools/call", `{"name":"look"}`), `{"resultType":"task","taskId":"u","status":"working",`+taskTimes+`}`)
		for way, hands := range wayOf {
			if got := hands(w, `"u"`, poisoned); strings.Contains(string(got.at()), "before") {
				t.Errorf("%s, %s: delivered %s", a, way, got.at())
			}
			if got := hands(w, `"t"`, poisoned); !strings.Contains(string(got.at()), "before") {
				t.Errorf("%s, %s, honest: %s", a, way, got.at())
			}
		}
	}
}

// TestTaskNotificationAsks: what a server may not ask of the client inside a result, it may not inside a notification.
func TestTaskNotificationAsks(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]string{
		"sampling": `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`,
		"url":      `{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"javascript:alert(1)","elicitationId":"e"}}`,
	} {
		w := newWard(t, hold.Options{})
		got := w.about("tasks/get", `"t"`, `{"resultType":"complete","taskId":"t","status":"input_required",`+taskTimes+`,"inputRequests":{"a":`+asks+`}}`)
		t.Logf("%s: get %s", name, got.at())
		for _, method := range []string{"notifications/tasks", "notifications/tasks/status"} {
			w.server.send(`{"jsonrpc":"2.0","method":"` + method + `","params":{"taskId":"t","status":"input_required",` + taskTimes + `,"inputRequests":{"a":` + asks + `}}}`)
			up := w.request("3", "ping", "")
			w.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":{}}`)
			got := parse(t, w.client.next())
			if got.str("method") != "" {
				t.Errorf("%s %s: delivered %s", name, method, got.at())
				w.client.next()
			}
		}
	}
}

// TestTaskDoneAtOnce: a server may answer a call with a task that has ended. The result in it is one of the tool.
func TestTaskDoneAtOnce(t *testing.T) {
	t.Parallel()
	w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"": {}}))
	w.declare(tool("sum", pointSchema))
	for _, form := range []string{
		`{"resultType":"task","taskId":"t","status":"completed",` + taskTimes + `,"result":RESULT}`,
		`{"task":{"taskId":"t","status":"completed",` + taskTimes + `,"result":RESULT}}`,
	} {
		call := func(result string) message {
			return w.result(w.request("1", "tools/call", `{"name":"sum"}`), strings.Replace(form, "RESULT", result, 1))
		}
		if got := call(`{"content":[],"structuredContent":{"x":"y"}}`); strings.Contains(string(got.at()), `"y"`) {
			t.Errorf("delivered against the outputSchema: %s", got.at())
		}
		if got := call(`{"content":[{"type":"text","text":"fine"}],"structuredContent":{"x":1}}`); !strings.Contains(string(got.at()), `"x":1`) || strings.Contains(string(got.at()), `"text":"fine"`) {
			t.Errorf("not delivered, or without a fence: %s", got.at())
		}
	}
}

// TestTaskPolled: a client that asks again for what is held does not fill the queue.
func TestTaskPolled(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"tasks/get", "tasks/result"} {
		w := newWard(t, hold.Options{}, byTool(map[string]*Rule{"read": holdsTags, "": {}}))
		w.creates("read", createdModern, `"t"`)
		for range 5 {
			wayOf[method](w, `"t"`, poisoned)
		}
		page, err := w.queue.Page(context.Background(), hold.Filter{State: hold.Held})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("%s: %d items, %v", method, len(page.Items), err)
		}
	}
}

// TestTaskOfDeniedTool: what an operator no longer lets a client call gives no result either; how its task stands may
// be told.
func TestTaskOfDeniedTool(t *testing.T) {
	t.Parallel()
	rules := map[string]*Rule{"read": {}, "": {}}
	w := newWard(t, hold.Options{}, byTool(rules))
	w.creates("read", createdModern, `"t"`)
	w.creates("look", createdModern, `"u"`)
	w.creates("look", createdModern, `"both"`)
	w.creates("read", createdModern, `"both"`)
	rules["read"] = &Rule{Denied: true}
	for way, hands := range wayOf {
		for _, id := range []string{`"t"`, `"both"`} {
			if got := hands(w, id, harmless); strings.Contains(string(got.at()), "fine") || strings.Contains(string(got.at()), "held until") {
				t.Errorf("%s %s: %s", way, id, got.at())
			}
		}
		for _, id := range []string{`"u"`, `"unknown"`} {
			if got := hands(w, id, harmless); !strings.Contains(string(got.at()), "fine") {
				t.Errorf("%s %s: %s", way, id, got.at())
			}
		}
	}
	if page, err := w.queue.Page(context.Background(), hold.Filter{}); err != nil || len(page.Items) != 0 {
		t.Errorf("%d items, %v", len(page.Items), err)
	}
	if got := w.about("tasks/get", `"t"`, `{"taskId":"t","status":"working",`+taskTimes+`}`); !strings.Contains(string(got.at()), "working") {
		t.Errorf("%s", got.at())
	}
	if got := w.failed("tasks/result", `"t"`); strings.Contains(string(got.at()), "secret") {
		t.Errorf("%s", got.at())
	}
}

// failed lets the client ask for a task, and the server answer with an error.
func (r *rig) failed(method, id string) message {
	r.t.Helper()
	up := r.request("4", method, `{"taskId":`+id+`}`)
	r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"error":{"code":-32000,"message":"secret"}}`)
	return parse(r.t, r.client.next())
}

// TestTaskBeforeTheList: a notification that comes before a session knows the tool's outputSchema brings nothing that
// the schema would have to judge.
func TestTaskBeforeTheList(t *testing.T) {
	t.Parallel()
	const structured = `{"content":[],"structuredContent":{"x":"y"}}`
	tasks := new(sessionTasks)
	rules := byTool(map[string]*Rule{"": {}})
	first := newRig(t, rules, func(c *Config) { c.Tasks = tasks })
	first.declare(tool("sum", pointSchema))
	first.result(first.request("1", "tools/call", `{"name":"sum"}`), `{"resultType":"task","taskId":"t","status":"working",`+taskTimes+`}`)
	judged := newRig(t, rules, func(c *Config) { c.Tasks, c.Policy = tasks, byName{"sum": policy.Deny} })
	if got := judged.notified("notifications/tasks", `"t"`, `,"result":`+poisoned); strings.Contains(string(got.at()), "before") {
		t.Errorf("with a policy: delivered %s", got.at())
	}
	second := newRig(t, rules, func(c *Config) { c.Tasks = tasks })
	for _, method := range []string{"notifications/tasks", "notifications/tasks/status"} {
		if got := second.notified(method, `"t"`, `,"result":`+structured); strings.Contains(string(got.at()), `"y"`) {
			t.Errorf("%s: delivered %s", method, got.at())
		}
		if got := second.notified(method, `"t"`, `,"result":`+harmless); !strings.Contains(string(got.at()), "fine") {
			t.Errorf("%s, honest: %s", method, got.at())
		}
	}
}
