// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// newWatch is a jury that judges all that is not an answer to a call, behind delivery.
func newWatch(t *testing.T, c classify.Classifier, change ...func(*classify.Options)) *jury {
	m := aMember(t, c, change...)
	j := newJury(t, &ShadowOptions{})
	j.Of = func(string) []*classify.Member { return nil }
	j.Also = func(Elsewhere) []*classify.Member { return []*classify.Member{m} }
	return j
}

// TestElsewhere: each kind of message is judged behind its delivery, also by a classifier that
// enforces; the verdict says which kind, and the log holds no word of the text.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	ask := func(r *rig, method, params string) string { return r.request("1", method, params) }
	answer := func(method, params, part string) func(r *rig) string {
		return func(r *rig) string {
			r.server.send(`{"jsonrpc":"2.0","id":` + ask(r, method, params) + `,` + part + `}`)
			return r.client.next()
		}
	}
	says := func(line string) func(r *rig) string {
		return func(r *rig) string {
			r.server.send(line)
			return r.client.next()
		}
	}
	for _, tt := range []struct {
		kind     Elsewhere
		go_      func(r *rig) string
		seen     string
		recorded bool // there is a decision about it
	}{
		{InPrompts, answer("prompts/get", `{"name":"p"}`, `"result":{"description":"a prompt","messages":[{"role":"user","content":{"type":"text","text":"some evil words"}}]}`), "a prompt\nuser\nsome evil words\n", true},
		{InResources, answer("resources/read", `{"uri":"x:y"}`, `"result":{"contents":[{"uri":"x:y","mimeType":"text/plain","text":"some evil words"}]}`), "x:y\ntext/plain\nsome evil words\n", true},
		{InCompletions, answer("completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`, `"result":{"completion":{"values":["some evil words","b"],"hasMore":false}}`), "some evil words\nb\n", true},
		{InErrors, answer("prompts/get", `{"name":"p"}`, `"error":{"code":-32602,"message":"no such prompt","data":{"hint":"some evil words"}}`), "no such prompt\nhint\nsome evil words\n", false},
		{InErrors, answer("prompts/list", `{}`, `"error":{"code":-32602,"message":"some evil words"}`), "some evil words\n", false},
		{InElicitation, says(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"mode":"form","message":"Which one?","requestedSchema":{"type":"object","properties":{"evil name":{"type":"string","description":"some evil words"}}}}}`),
			"form\nWhich one?\nobject\nevil name\nstring\nsome evil words\n", true},
		{InSampling, says(`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"some evil words"}}],"systemPrompt":"Be brief.","maxTokens":5}}`),
			"user\nsome evil words\nBe brief.\n", true},
		{InLogs, says(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"text":"some evil words"}}}`), "info\ntext\nsome evil words\n", false},
		{InProgress, func(r *rig) string {
			up := r.request("1", "tools/call", `{"name":"read","_meta":{"progressToken":1}}`)
			r.server.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + up + `,"progress":1,"message":"some evil words"}}`)
			return r.client.next()
		}, "some evil words\n", false},
		{InProgress, says(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","status":"completed","result":{"content":[{"type":"text","text":"some evil words"}]}}}`), "some evil words\n", true},
	} {
		t.Run(string(tt.kind), func(t *testing.T) {
			k := &words{gate: make(chan struct{})}
			j := newWatch(t, k)
			r := newRig(t, j.set, func(c *Config) { c.DangerouslyAllowSampling = true })
			if line := tt.go_(r); !strings.Contains(line, "evil") {
				t.Fatalf("delivered: %s", line) // before the classifier has answered
			}
			close(k.gate)
			c := j.next(t)
			if c.Kind != tt.kind || c.Mode != policy.Shadow || !c.Flagged() || c.Action != policy.Hold || c.Tool != "" || (c.Of != ID{}) != tt.recorded {
				t.Errorf("verdict %+v", c)
			}
			if got := k.all(); !strings.Contains(got, tt.seen) {
				t.Errorf("seen %q, want %q", got, tt.seen)
			}
			if line := string(c.AppendJSON(nil)); !strings.Contains(line, `"kind":"`+string(tt.kind)+`"`) || !strings.Contains(line, `"mode":"shadow","outcome":"hold"`) {
				t.Errorf("record %s", line)
			}
			waittest.Until(t, "it is logged", func() bool { return strings.Contains(r.log.String(), "suspects an injection") })
			if log := r.log.String(); !strings.Contains(log, "kind="+string(tt.kind)) || strings.Contains(log, "evil") {
				t.Errorf("log %s", log)
			}
		})
	}
}

// TestElsewhereHonest: of an honest text in a message that leaves no record there is no record
// of a verdict either; an answer that is recorded has one, which names the decision.
func TestElsewhereHonest(t *testing.T) {
	t.Parallel()
	k := &words{}
	j := newWatch(t, k)
	r := newRig(t, j.set)
	r.server.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"fine"}}`)
	r.client.next()
	waittest.Until(t, "it is judged", func() bool { return strings.Contains(k.all(), "fine") })
	r.result(r.request("1", "prompts/get", `{"name":"p"}`), `{"messages":[{"role":"user","content":{"type":"text","text":"good"}}]}`)
	if c := j.next(t); c.Kind != InPrompts || c.Flagged() || c.Of == (ID{}) {
		t.Errorf("verdict %+v", c)
	}
}

// TestElsewhereFails: a classifier that fails says so, and withholds nothing, whatever its fail mode.
func TestElsewhereFails(t *testing.T) {
	t.Parallel()
	j := newWatch(t, &words{broken: true}, func(o *classify.Options) { o.Fail = classify.FailClosed })
	r := newRig(t, j.set)
	if got := r.result(r.request("1", "resources/read", `{"uri":"x:y"}`), `{"contents":[{"uri":"x:y","text":"good"}]}`); !strings.Contains(string(got.at("result")), "good") {
		t.Errorf("delivered %s", got.at())
	}
	if c := j.next(t); c.Reason != classify.Unavailable || c.Mode != policy.Shadow {
		t.Errorf("verdict %+v", c)
	}
}

// TestElsewherePace: a server that never stops logging is judged by its first messages of each
// second, and the operator is told.
func TestElsewherePace(t *testing.T) {
	t.Parallel()
	k := &words{}
	j := newWatch(t, k)
	r := newRig(t, j.set)
	for i := range 20 * perSecond {
		r.server.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"line %d"}}`, i))
		r.client.next()
	}
	waittest.Until(t, "the operator is told", func() bool { return strings.Contains(r.log.String(), "the others are not judged") })
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	j.Shadow.Close(ctx)
	if n := strings.Count(k.all(), "line "); n == 0 || n > 10*perSecond {
		t.Errorf("%d messages were judged", n)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Now()
	for range 2 {
		n := 0
		for range 3 * perSecond {
			if p.allows(now) {
				n++
			}
		}
		if n != perSecond {
			t.Errorf("%d in a second", n)
		}
		now = now.Add(time.Second)
	}
}
