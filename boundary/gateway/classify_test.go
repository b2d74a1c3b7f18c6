// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/remote"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A jury is the classifiers of a test, and what they have said.
type jury struct {
	Classifiers
	mu   sync.Mutex
	said []Classified
	came chan struct{}
}

func newJury(t *testing.T, shadow *ShadowOptions, members ...*classify.Member) *jury {
	j := &jury{came: make(chan struct{}, 1024)}
	j.Of = func(string) []*classify.Member { return members }
	j.Record = func(c Classified) {
		j.mu.Lock()
		j.said = append(j.said, c)
		j.mu.Unlock()
		j.came <- struct{}{}
	}
	if shadow != nil {
		j.Shadow = NewShadow(*shadow)
		t.Cleanup(func() { j.Shadow.Close(context.Background()) })
	}
	return j
}

// next waits for a further verdict.
func (j *jury) next(t *testing.T) Classified {
	t.Helper()
	select {
	case <-j.came:
	case <-time.After(30 * time.Second):
		t.Fatal("no verdict came")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.said[0]
	j.said = j.said[1:]
	return c
}

func (j *jury) set(c *Config) { c.Classifiers = &j.Classifiers }

// words is a classifier that flags texts with "evil" in them, when it is told to go on.
type words struct {
	raw    bool
	gate   chan struct{} // nil: at once
	broken bool

	mu   sync.Mutex
	seen []string
}

func (w *words) Limits() classify.Limits { return classify.Limits{Texts: 64, Raw: w.raw} }
func (w *words) Version() string         { return "words-1" }
func (w *words) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	w.mu.Lock()
	w.seen = append(w.seen, texts...)
	w.mu.Unlock()
	if w.gate != nil {
		select {
		case <-w.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if w.broken {
		return nil, errors.New("broken")
	}
	out := make([]classify.Score, len(texts))
	for i, t := range texts {
		if strings.Contains(t, "evil") {
			out[i] = classify.Score{P: 0.9, Flagged: true, Code: "word"}
		}
	}
	return out, nil
}

func (w *words) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.seen, "\x00")
}

func aMember(t testing.TB, c classify.Classifier, change ...func(*classify.Options)) *classify.Member {
	t.Helper()
	o := classify.Options{Name: "guard", Classifier: c, Timeout: 5 * time.Second}
	for _, f := range change {
		f(&o)
	}
	m, err := classify.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func inShadow(o *classify.Options) { o.Mode = policy.Shadow }

const (
	evil = `{"content":[{"type":"text","text":"some evil words"}]}`
	good = `{"content":[{"type":"text","text":"some good words"}]}`
)

// fakeProvider is a loopback stand-in for a paid service: Prompt Shields, in its
// documented wire format, that calls every document with "evil" in it an attack.
func fakeProvider(t *testing.T) *classify.Member {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Documents []string }
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &q); err != nil || r.Header.Get("Ocp-Apim-Subscription-Key") != "a key" {
			w.WriteHeader(400)
			return
		}
		type analysis struct {
			AttackDetected bool `json:"attackDetected"`
		}
		var list []analysis
		for _, d := range q.Documents {
			list = append(list, analysis{strings.Contains(d, "evil")})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"documentsAnalysis": list})
	}))
	t.Cleanup(s.Close)
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	c, err := remote.NewAzure(remote.Service{URL: s.URL, Key: func() (string, error) { return "a key", nil }, Transport: tr}, "")
	if err != nil {
		t.Fatal(err)
	}
	return aMember(t, c, func(o *classify.Options) { o.Name = "shields" })
}

// TestClassifierHolds: a result is held on a provider's verdict, told without a word
// of it, and delivered once a person has released it.
func TestClassifierHolds(t *testing.T) {
	t.Parallel()
	j := newJury(t, nil, fakeProvider(t))
	w := newWard(t, hold.Options{}, j.set)
	text, _ := w.ask(question, evil)
	id := w.heldID(text)
	it, err := w.queue.Get(t.Context(), id)
	if err != nil || it.Rule != "classifier:shields" || it.Code != finding.Suspected || string(it.Body) != evil {
		t.Fatalf("item %+v, %v", it, err)
	}
	d := w.last()
	if d.Verdict != Withheld || !holds(d, finding.Suspected) || len(d.Classified) != 1 {
		t.Fatalf("decision %+v", d)
	}
	line := string(d.AppendJSON(nil))
	if want := `"classified":[{"score":1,"name":"shields","version":"prompt-shields-2024-09-01","mode":"enforce","outcome":"hold","code":"document-attack"}]`; !strings.Contains(line, want) {
		t.Errorf("record %s", line)
	}
	c := j.next(t)
	if c.Of != d.ID || c.Input != d.Received || c.Action != policy.Hold || c.Server != "srv" || c.Tool != "read" {
		t.Errorf("verdict %+v", c)
	}
	log := w.log.String()
	for _, want := range []string{"suspects an injection", "classifier=shields", "code=document-attack", "tool=read", "evidence=" + id, "segment=0"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	}
	if strings.Contains(log, "evil") || strings.Contains(log, "a key") || strings.Contains(line, "evil") {
		t.Error("the log or the record holds what it must not")
	}
	if err := w.queue.Release(t.Context(), id, "bob"); err != nil {
		t.Fatal(err)
	}
	got := w.fromQueue(question)
	if _, body, err := w.key.Open(got.text("result", "content", 0, "text"), frame.Origin{}); err != nil || body != "some evil words" {
		t.Errorf("released: %q, %v", body, err)
	}
	if text, _ := w.ask(question, good); !strings.Contains(text, "good") {
		t.Errorf("an honest result came as %q", text)
	}
}

// TestClassifierInShadow: what is delivered is what would be without it, and the
// verdict names the decision.
func TestClassifierInShadow(t *testing.T) {
	t.Parallel()
	k := &words{gate: make(chan struct{})}
	j := newJury(t, &ShadowOptions{}, aMember(t, k, inShadow))
	w := newWard(t, hold.Options{}, j.set)
	text, _ := w.ask(question, evil) // while the classifier has not answered
	if _, body, err := w.key.Open(text, frame.Origin{}); err != nil || body != "some evil words" {
		t.Fatalf("delivered %q, %v", text, err)
	}
	d := w.last()
	if d.Verdict != Passed || len(d.Classified) != 0 {
		t.Errorf("decision %+v", d)
	}
	close(k.gate)
	c := j.next(t)
	if c.Of != d.ID || c.Input != d.Received || c.Action != policy.Hold || c.Mode != policy.Shadow || c.P != 0.9 || c.Dropped {
		t.Errorf("verdict %+v", c)
	}
	var line map[string]any
	if err := json.Unmarshal(c.AppendJSON(nil), &line); err != nil || line["of"] != d.ID.String() || line["classified"].(map[string]any)["score"] != 0.9 {
		t.Errorf("record %s: %v", c.AppendJSON(nil), err)
	}
}

func TestClassifierFails(t *testing.T) {
	t.Parallel()
	for mode, begin := range map[classify.Fail]string{
		classify.FailHold: placeholderHeld, classify.FailClosed: placeholderWhole, classify.FailOpen: "NOTICE",
	} {
		j := newJury(t, nil, aMember(t, &words{broken: true}, func(o *classify.Options) { o.Fail = mode }))
		w := newWard(t, hold.Options{}, j.set)
		text, _ := w.ask(question, good)
		if !strings.HasPrefix(text, begin) {
			t.Errorf("fail %v: %q", mode, text)
		}
		if held, err := w.queue.List(t.Context(), hold.Filter{}); err != nil || (len(held) > 0) != (mode == classify.FailHold) {
			t.Errorf("fail %v: %d in the queue", mode, len(held))
		}
		if c := j.next(t); c.Reason != classify.Unavailable || c.Err == nil {
			t.Errorf("fail %v: %+v", mode, c)
		}
		if d := w.last(); mode != classify.FailOpen && !holds(d, finding.Unjudged) {
			t.Errorf("fail %v: %+v", mode, d)
		}
	}
}

// TestSlowClassifier: one result waits for its classifier, and nothing else does.
func TestSlowClassifier(t *testing.T) {
	t.Parallel()
	k := &words{gate: make(chan struct{})}
	m := aMember(t, k)
	j := newJury(t, nil)
	j.Of = func(tool string) []*classify.Member {
		if tool == "read" {
			return []*classify.Member{m}
		}
		return nil
	}
	r := newRig(t, j.set)
	slow := r.request("1", "tools/call", question)
	quick := r.request("2", "tools/call", `{"name":"look"}`)
	r.server.send(`{"jsonrpc":"2.0","id":` + slow + `,"result":` + good + `}`)
	for n := range 20 {
		if got := r.result(quick, good); string(got["id"]) != fmt.Sprint(n+2) {
			t.Fatalf("answer %s", got["id"])
		}
		r.server.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		if got := parse(t, r.client.next()); got.str("method") != "notifications/message" {
			t.Fatalf("%s", got["method"])
		}
		quick = r.request(fmt.Sprint(n+3), "tools/call", `{"name":"look"}`)
	}
	// A second answer to the same question is none.
	r.server.send(`{"jsonrpc":"2.0","id":` + slow + `,"result":` + evil + `}`)
	r.client.none()
	if d := r.last(); d.Verdict != Dropped || !holds(d, finding.Unsolicited) {
		t.Errorf("%+v", d)
	}
	close(k.gate)
	if got := parse(t, r.client.next()); string(got["id"]) != "1" || !strings.Contains(got.text("result", "content", 0, "text"), "good") {
		t.Errorf("%v", got)
	}
}

// TestServerEndsWhileJudged: what it has said is delivered, not "the server is gone".
func TestServerEndsWhileJudged(t *testing.T) {
	t.Parallel()
	k := &words{gate: make(chan struct{})}
	j := newJury(t, nil, aMember(t, k))
	r := newRig(t, j.set)
	id := r.request("1", "tools/call", question)
	r.server.send(`{"jsonrpc":"2.0","id":` + id + `,"result":` + good + `}`)
	r.server.w.Close()
	time.AfterFunc(100*time.Millisecond, func() { close(k.gate) })
	if got := parse(t, r.client.next()); !strings.Contains(got.text("result", "content", 0, "text"), "good") {
		t.Errorf("%v", got)
	}
	if err := r.end(); !errors.Is(err, ErrUpstreamGone) {
		t.Errorf("%v", err)
	}
}

// A session that ends does not wait for classifiers: goleak sees what is left.
func TestSessionEndsWhileJudged(t *testing.T) {
	t.Parallel()
	j := newJury(t, nil, aMember(t, &words{gate: make(chan struct{})}))
	r := newRig(t, j.set)
	id := r.request("1", "tools/call", question)
	r.server.send(`{"jsonrpc":"2.0","id":` + id + `,"result":` + good + `}`)
	r.client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	r.client.w.Close()
	if err := r.end(); err != nil {
		t.Errorf("%v", err)
	}
}

// TestExceptedClassifier: exceptions are as for findings.
func TestExceptedClassifier(t *testing.T) {
	t.Parallel()
	j := newJury(t, nil, aMember(t, &words{}))
	clock := &clock{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	rule := &Rule{Except: []Exception{{Code: finding.Suspected, Until: clock.now.Add(time.Hour)}}}
	w := newWard(t, hold.Options{}, j.set, func(c *Config) {
		c.now, c.Tools = clock.time, func(string) *Rule { return rule }
	})
	if text, _ := w.ask(question, evil); !strings.Contains(text, "evil") {
		t.Errorf("%q", text)
	}
	if d := w.last(); !holds(d, finding.Suspected) {
		t.Errorf("the exception is not in the record: %+v", d)
	}
	clock.forward(2 * time.Hour)
	if text, _ := w.ask(question, evil); !strings.HasPrefix(text, placeholderHeld) {
		t.Errorf("behind its time: %q", text)
	}
}

// TestErrorsAreJudged: words in an error are read by a model too.
func TestErrorsAreJudged(t *testing.T) {
	t.Parallel()
	j := newJury(t, nil, aMember(t, &words{}))
	r := newRig(t, j.set)
	for _, body := range []string{`{"code":1,"message":"evil"}`, `{"code":1,"message":"x","data":{"a":["evil"]}}`} {
		id := r.request("1", "tools/call", question)
		r.server.send(`{"jsonrpc":"2.0","id":` + id + `,"error":` + body + `}`)
		if got := parse(t, r.client.next()); strings.Contains(string(got["error"]), "evil") || got.text("error", "message") != errWithheld.text {
			t.Errorf("%s: %s", body, got["error"])
		}
	}
}

// TestInspectorClassifies: the same for those who carry results themselves.
func TestInspectorClassifies(t *testing.T) {
	t.Parallel()
	k := &words{}
	j := newJury(t, &ShadowOptions{}, aMember(t, k), aMember(t, k, inShadow))
	i, sink := newTestInspector(t, Config{Classifiers: &j.Classifiers})
	for range 2 {
		clean, d, err := i.Inspect(t.Context(), ToolResult{Server: "s", Tool: "t", Raw: []byte(evil)})
		if err != nil || d.Verdict != Withheld || strings.Contains(string(clean), "evil") {
			t.Errorf("%s %+v %v", clean, d, err)
		}
		if c := j.next(t); c.Mode != policy.Enforce || c.Action != policy.Hold {
			t.Errorf("%+v", c)
		}
	}
	clean, d, err := i.Inspect(t.Context(), ToolResult{Server: "s", Tool: "t", Raw: []byte(good)})
	if err != nil || d.Verdict != Passed || !strings.Contains(string(clean), "good") {
		t.Errorf("%s %+v %v", clean, d, err)
	}
	for range 2 { // one of each mode, in either order
		if c := j.next(t); c.Of != d.ID || c.Server != "s" {
			t.Errorf("%+v", c)
		}
	}
	if len(sink.all()) != 3 {
		t.Errorf("%d decisions", len(sink.all()))
	}
}

// What a classifier that wants raw text gets is what the server sent.
func TestRawText(t *testing.T) {
	t.Parallel()
	k := &words{raw: true}
	j := newJury(t, nil, aMember(t, k))
	r := newRig(t, j.set)
	r.result(r.request("1", "tools/call", question), `{"content":[{"type":"text","text":"a\u202eb"}]}`)
	if !strings.Contains(k.all(), "a\u202eb") {
		t.Errorf("%q", k.all())
	}
	if d := r.last(); d.Verdict != Changed {
		t.Errorf("%+v", d)
	}
}

// Only answers to calls of tools are judged, and only through the one choke point is
// anything delivered: a passage that was judged carries its frame.
func TestJudgedIsFramed(t *testing.T) {
	t.Parallel()
	k := &words{}
	j := newJury(t, nil, aMember(t, k))
	r := newRig(t, j.set)
	got := r.result(r.request("1", "tools/call", question), good)
	if _, _, err := r.key.Open(got.text("result", "content", 0, "text"), frame.Origin{}); err != nil || got.at("result", "_meta", frame.MetaKey) == nil {
		t.Errorf("%v: %v", got, err)
	}
	r.result(r.request("2", "resources/read", `{"uri":"x:y"}`), `{"contents":[{"uri":"x:y","text":"evil"}]}`)
	if strings.Contains(k.all(), "evil") {
		t.Error("a resource was judged")
	}
}

// TestClassifyTasks: what a tool answers as a task is judged before it is delivered too, wherever it stands, by the
// classifiers of the server.
func TestClassifyTasks(t *testing.T) {
	t.Parallel()
	for method, result := range taskAnswers(evil) {
		k := &words{}
		j := newJury(t, &ShadowOptions{}, aMember(t, k))
		r := newRig(t, j.set)
		if got := r.result(r.request("1", method, `{"taskId":"t"}`), result); strings.Contains(string(got.at()), "evil") {
			t.Errorf("%s: delivered %s", method, got.at())
		}
		if c := j.next(t); !c.Flagged() || c.Mode != policy.Enforce || !strings.Contains(k.all(), "some evil words\n") {
			t.Errorf("%s: %+v", method, c)
		}
		if got := r.result(r.request("2", method, `{"taskId":"t"}`), strings.ReplaceAll(result, "evil", "good")); !strings.Contains(string(got.at()), "good") {
			t.Errorf("%s: delivered %s", method, got.at())
		}
	}
}
