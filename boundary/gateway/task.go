// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A server may answer a call with a task, and give the result later, in messages that do not name the tool. What the tool's
// rule says of a result holds there too, so that it is remembered which tool a task belongs to: the one whose call was
// answered with it. Where several calls were, of different tools, the strictest of their rules counts; where none is known,
// the strictest of all.

// Tasks remembers which tools have created tasks. Its methods may be called at the same time, and several processes may
// have the same one.
type Tasks interface {
	// AddTask notes that a call of the tool was answered with the task. It is forgotten at until.
	AddTask(ctx context.Context, task hold.Digest, tool string, now, until time.Time) error
	// TaskTools returns the tools of the task, and no more of them than most; none if they are not known.
	TaskTools(ctx context.Context, task hold.Digest, now time.Time, most int) ([]string, error)
}

const (
	taskKept     = 24 * time.Hour // from the call on
	maxTasks     = 2048           // of a session that remembers its own
	maxTaskTools = 8              // one of more tools is treated as one whose tool is not known
)

// sessionTasks are the tasks of one session. What it has no room for is not remembered; what is in it stays until
// its time is over, so that a server cannot push a task out and create another one of the same id.
type sessionTasks struct {
	mu sync.Mutex
	of map[hold.Digest]createdTask
}

type createdTask struct {
	tools []string
	until time.Time
}

var errTasksFull = errors.New("gateway: the session has too many tasks")

// AddTask implements Tasks.
func (s *sessionTasks) AddTask(_ context.Context, task hold.Digest, tool string, now, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of) >= maxTasks {
		for d, t := range s.of {
			if !now.Before(t.until) {
				delete(s.of, d)
			}
		}
	}
	t, known := s.of[task]
	switch {
	case !known && len(s.of) >= maxTasks:
		return errTasksFull
	case s.of == nil:
		s.of = map[hold.Digest]createdTask{}
	case known && !now.Before(t.until):
		t.tools = nil
	}
	if len(t.tools) <= maxTaskTools && !slices.Contains(t.tools, tool) {
		t.tools = append(slices.Clip(t.tools), tool) // others may read the list
	}
	t.until = until
	s.of[task] = t
	return nil
}

// TaskTools implements Tasks.
func (s *sessionTasks) TaskTools(_ context.Context, task hold.Digest, now time.Time, most int) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.of[task]; now.Before(t.until) {
		return t.tools[:min(len(t.tools), most)], nil
	}
	return nil, nil
}

// taskOf is the digest of a task's id, for this server and this principal; zero where it is no string.
func (c *Config) taskOf(id strictjson.Value) hold.Digest {
	if id.Kind() != '"' {
		return hold.Digest{}
	}
	return hold.Owned(c.Principal, c.Name, id.Text())
}

func digestFor(what string, d hold.Digest) hold.Digest {
	return sha256.Sum256(append([]byte(what), d[:]...))
}

// aboutTask notes what a request says of a task.
func (r *relay) aboutTask(k *call, m *wire.Message) {
	if !strings.HasPrefix(k.method, mcpmsg.Tasks) {
		return
	}
	k.task = r.cfg.taskOf(m.Params.Get("taskId"))
	if k.task == (hold.Digest{}) {
		return
	}
	switch k.method {
	case mcpmsg.TaskResult: // it waits for the tool
		if tools := r.toolsOf(k.task, &k.store); len(tools) == 1 {
			k.limit = r.cfg.rule(tools[0]).Timeout
		}
	case mcpmsg.GetTask:
	default:
		return // its answer need not hold a result
	}
	if r.cfg.Hold != nil {
		k.digest = digestFor("pellucid "+k.method+"\n", k.task)
	}
}

// needsTools reports whether the server has to have listed its tools before the call is answered.
func (k *call) needsTools() bool { return k.method == mcpmsg.CallTool || k.task != (hold.Digest{}) }

// remember notes which tasks a call was answered with: by their ids as the client gets them in out.
func (r *relay) remember(k *call, answer, out *wire.Message) {
	if k.method != mcpmsg.CallTool || k.tool == "" || out == nil || answer.Kind != wire.Response || isPlainResult(answer.Result) || out.Parse() != nil {
		return
	}
	for _, id := range [...]strictjson.Value{out.Result.Get("task").Get("taskId"), out.Result.Get("taskId")} {
		task := r.cfg.taskOf(id)
		if task == (hold.Digest{}) {
			continue
		}
		r.calls.keepTaskToken(k)
		ctx, done := k.store.within(r.life)
		now := r.cfg.now()
		err := r.tasks.AddTask(ctx, task, k.tool, now, now.Add(taskKept))
		done()
		if err != nil {
			r.quiet.warn("the tool of a task could not be kept: the strictest rule of the server's tools applies to what comes of it",
				"tool", r.surface.label(k.tool), "error", err)
		}
	}
}

// isPlainResult reports whether a result has no member that could name a task.
func isPlainResult(result strictjson.Value) bool {
	for name, value := range result.Members() {
		switch string(nameBytes(name)) {
		case "content", "structuredContent", "isError", "_meta":
		case "resultType":
			if value.Text() != mcpmsg.ResultTypes[0] {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// toolsOf are the tools of a task; none if they are not known.
func (r *relay) toolsOf(task hold.Digest, store *storeTime) []string {
	if task == (hold.Digest{}) {
		return nil
	}
	ctx, done := store.within(r.life)
	defer done()
	tools, err := r.tasks.TaskTools(ctx, task, r.cfg.now(), maxTaskTools+1)
	if err != nil {
		r.quiet.warn("the tool of a task could not be found: the strictest rule of the server's tools applies to what comes of it", "error", err)
		return nil
	}
	return tools
}

// answersCall says of which tool p is an answer.
func (r *relay) answersCall(p *passage, k *call) {
	p.call = k.digest
	if k.method == mcpmsg.CallTool {
		r.ofTool(p, k.tool)
		return
	}
	r.createdBy(p, k.task)
}

// ofTool says that p is an answer of the tool.
func (r *relay) ofTool(p *passage, tool string) {
	p.tool, p.name, p.hints = r.surface.label(tool), tool, r.surface.hints(tool)
	if schema := r.surface.output(tool); schema != nil {
		p.schema, p.output = r.cfg.Schemas.Compile(schema), schema
		p.narrow = r.surface.narrow(tool)
	}
}

// createdBy says which tools have created the task that p is about.
func (r *relay) createdBy(p *passage, task hold.Digest) {
	tools := r.toolsOf(task, p.store)
	if len(tools) == 1 {
		r.ofTool(p, tools[0])
	}
	if p.msg.Kind == wire.Notification && !r.surface.current() && slices.ContainsFunc(tools, func(tool string) bool { return r.surface.label(tool) == unknownTool }) {
		p.unsure = unlisted // an answer waits for the list
	}
	if len(tools) == 1 {
		return
	}
	if len(tools) > maxTaskTools {
		p.unsure = severalTools
	}
	for _, tool := range tools {
		if r.surface.output(tool) != nil && p.unsure == "" {
			p.unsure = severalTools
		}
		if len(tools) <= maxTaskTools {
			p.tools = append(p.tools, taskTool{tool, r.surface.label(tool), r.surface.hints(tool)})
		}
	}
}

// A taskTool is one of several tools that a task may be of.
type taskTool struct {
	name, label string
	hints       toolHints
}

// Why a result is not judged by a schema: it may be that of several tools, or the server has not listed the tool in this
// session, which does not know its schema yet.
const (
	severalTools validate.Reason = "task-of-several-tools"
	unlisted     validate.Reason = "tool-not-listed"
)

// twoResults is why a result is judged invalid: there is another one beside it.
const twoResults validate.Reason = "two-results"

// ofTask reports whether the message is about a task: what it says may be the result of a tool.
func (p *passage) ofTask() bool {
	return strings.HasPrefix(p.method, mcpmsg.Tasks) || p.method == mcpmsg.TaskStatus || p.method == mcpmsg.TaskChanged
}

// answersTool reports whether the message answers a request whose answer may hold the result of a tool.
func (p *passage) answersTool() bool {
	return p.method == mcpmsg.CallTool || strings.HasPrefix(p.method, mcpmsg.Tasks)
}

// endsTask reports whether the message, whose root that is, says how a task has ended.
func (p *passage) endsTask(root strictjson.Value) bool {
	return p.ofTask() && p.msg.Kind != wire.ErrorResponse && (root.Get("result").Exists() || root.Get("error").Exists())
}

// toolResult is the result of a tool that the message holds, whose root that is. It does not exist where the message holds none.
func (p *passage) toolResult(root strictjson.Value) strictjson.Value {
	switch {
	case p.msg.Kind == wire.ErrorResponse:
	case p.method == mcpmsg.CallTool:
		if done := resultAtOnce(root); done.Exists() {
			return done
		}
		return root
	case p.method == mcpmsg.TaskResult:
		return root
	case p.ofTask():
		return root.Get("result")
	}
	return strictjson.Value{}
}

// isCreatedTask reports whether the result of a call is a task of the extension.
func isCreatedTask(result strictjson.Value) bool {
	return result.Get("resultType").Text() == mcpmsg.ResultTask
}

// resultAtOnce is the result in a task that a call was answered with; it does not exist where the task goes on.
func resultAtOnce(root strictjson.Value) strictjson.Value {
	if isCreatedTask(root) {
		if done := root.Get("result"); done.Exists() {
			return done
		}
	}
	return root.Get("task").Get("result")
}

// isTwoResults reports whether an answer to a call is a result and a task that has one: which of them a
// client reads is not known, and only one is judged.
func (p *passage) isTwoResults(root strictjson.Value) bool {
	return p.method == mcpmsg.CallTool && p.msg.Kind == wire.Response && resultAtOnce(root).Exists() &&
		(root.Get("structuredContent").Exists() || isCreatedTask(root) && root.Get("task").Exists())
}

// ofDeniedTask reports whether the message is the result of a task whose tool may not be called any more.
func (in *inspection) ofDeniedTask() bool {
	return in.rule.Denied && in.p.ofTask() && (in.marked || in.p.method == mcpmsg.TaskResult)
}

// ofTool reports whether the message is what a tool answers, or may hold it.
func (in *inspection) ofTool() bool {
	switch in.p.msg.Kind {
	case wire.Response, wire.ErrorResponse:
		return in.p.answersTool()
	case wire.Notification:
		return in.p.ofTask() && in.marked
	}
	return false
}

// tellsUnjudged reports whether a notification brings what a classifier has to judge before it is delivered, or the policy
// by the name of a tool that is not listed yet. It is dropped: the client can ask for the result.
func (in *inspection) tellsUnjudged() bool {
	if in.p.msg.Kind != wire.Notification || !in.ofTool() {
		return false
	}
	if in.p.unsure == unlisted && in.cfg.Policy != nil {
		return true
	}
	if in.cfg.Classifiers == nil {
		return false
	}
	return slices.ContainsFunc(in.cfg.membersOf(&in.p), func(m *classify.Member) bool { return m.Mode() == policy.Enforce })
}

// membersOf are the classifiers for what a tool answers: of a task, those of each tool that it may be of.
func (c *Config) membersOf(p *passage) (all []*classify.Member) {
	of := c.Classifiers.Of
	switch {
	case of == nil:
		return nil
	case p.name != "" || !p.ofTask() || p.tools == nil && c.Classifiers.Any == nil:
		return of(p.name)
	case p.tools == nil:
		return c.Classifiers.Any()
	}
	for _, tool := range p.tools {
		for _, m := range of(tool.name) {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// ruleOf is what applies to a message: the rule of its tool or, of a task, the strictest of those of the tools that it may
// be of.
func (c *Config) ruleOf(p *passage) Rule {
	if p.name != "" || !p.ofTask() || c.Tools == nil {
		return c.rule(p.name)
	}
	var list []Rule
	denied := false
	for _, tool := range p.tools {
		r := c.rule(tool.name)
		list, denied = append(list, r), denied || r.Denied
	}
	switch {
	case list != nil:
		r := strictest(list, c.now())
		r.Denied = denied
		return r
	case c.Rules == nil:
		return c.complete(c.Tools(""))
	default:
		for _, r := range c.Rules() {
			list = append(list, c.complete(r))
		}
	}
	return strictest(list, c.now())
}

// strictest is the rule that withholds and treats whatever one of the rules would. It denies, and it captures, what
// all of them do: a task may be of any other tool.
func strictest(list []Rule, now time.Time) Rule {
	out := list[0]
	out.Hold, out.Except = nil, nil
	for i := range list {
		r := &list[i]
		if r.Profile == MCP {
			out.Profile = MCP
		}
		if r.Frame != out.Frame || r.LLM != out.LLM {
			out.Frame, out.LLM = frame.KindFence, nil
		}
		out.Resources, out.Prompts = out.Resources || r.Resources, out.Prompts || r.Prompts
		out.AnyType, out.StructuredText = out.AnyType || r.AnyType, out.StructuredText || r.StructuredText
		if r.MaxChars != 0 && (out.MaxChars == 0 || r.MaxChars < out.MaxChars) {
			out.MaxChars = r.MaxChars
		}
		out.Mode, out.Strict, out.PassUnverifiable = min(out.Mode, r.Mode), out.Strict || r.Strict, out.PassUnverifiable && r.PassUnverifiable
		out.Unprivileged, out.Denied = out.Unprivileged && r.Unprivileged, out.Denied && r.Denied
		out.Capture = out.Capture.and(&r.Capture)
		for _, code := range r.Hold {
			if !r.excepts(code, now) {
				out.Hold = append(out.Hold, code)
			}
		}
	}
	for _, e := range list[0].Except { // those that all make
		if !slices.ContainsFunc(list, func(r Rule) bool { return !r.excepts(e.Code, now) }) {
			out.Except = append(out.Except, e)
		}
	}
	return out
}

// excepts reports whether the rule has an exception for the code.
func (r *Rule) excepts(code finding.Code, now time.Time) bool {
	return slices.ContainsFunc(r.Except, func(e Exception) bool {
		return e.Code == code && (e.Until.IsZero() || now.Before(e.Until))
	})
}
