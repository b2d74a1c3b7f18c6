// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

// An outcome is all that a caller sees of a request.
type outcome struct {
	Response llm.Response
	Err      string
	Attempts []string
}

func askAll(t *testing.T, e *llm.Endpoint, reqs []llm.Request) (all []outcome) {
	t.Helper()
	for _, req := range reqs {
		var o outcome
		req.Observe = func(a llm.Attempt) {
			o.Attempts = append(o.Attempts, fmt.Sprintf("%d %d %s %x %x", a.Number, a.Status, a.Code, a.Request.Digest(), a.Answer.Digest()))
		}
		r, err := e.Complete(ctx(t), req)
		r.Duration = 0
		if o.Response = r; err != nil {
			o.Err = err.Error()
		}
		all = append(all, o)
	}
	return all
}

// TestReplay: what was recorded, faults included, is replayed without a network and
// without a key, and looks the same.
func TestReplay(t *testing.T) {
	long := strings.Repeat("long ", 50)
	script := []llmtest.Reply{
		{Text: "caf\u00e9 \u202e\U0001F600\x00", Usage: format.Usage{Known: true, Input: 9, Output: 3}},
		{Status: 429, RetryAfter: "0"}, {Text: "second"},
		{Status: 401, ErrorCode: "authentication_error"},
		{Text: long, Fault: llmtest.Cut}, {Fault: llmtest.Drop}, {Status: 503},
		{Text: "another", Fault: llmtest.Malformed},
		{Text: long, Fault: llmtest.HangMidway}, {Fault: llmtest.Hang}, {Text: "at last"},
		{Fault: llmtest.Redirect},
		{Fault: llmtest.WrongType},
		{Raw: []byte("\xff\xfe"), ContentType: "application/json"},
		{Fault: llmtest.Huge},
	}
	for _, f := range formats {
		for _, stream := range []bool{false, true} {
			var reqs []llm.Request
			for i := range 9 {
				req := hello()
				req.Messages = []llm.Message{{Text: fmt.Sprint("question ", i/2)}} // two of each
				if stream {
					req = streamed(req)
				}
				reqs = append(reqs, req)
			}
			var file bytes.Buffer
			rec := llm.NewRecorder(&file)
			e, _ := fake(t, f, llmtest.Script(script...), func(o *llm.Options) {
				o.Recorder, o.Retries, o.BreakAfter = rec, 2, -1
				o.Timeout, o.Idle, o.MaxAnswer = 300*time.Millisecond, 100*time.Millisecond, 64<<10
			})
			want := askAll(t, e, reqs)
			if err := rec.Err(); err != nil {
				t.Fatal(err)
			}
			if i := bytes.IndexFunc(file.Bytes(), func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
				t.Errorf("%s: the cassette holds %q", f, file.Bytes()[i])
			}
			if strings.Contains(file.String(), secret) {
				t.Errorf("%s: the cassette holds the key", f)
			}
			tape, err := llm.Play(bytes.NewReader(file.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			r, err := llm.New(llm.Options{
				Format: f, BaseURL: "https://models.example/v1", Model: "model-1", Retries: 2, MaxAnswer: 64 << 10, Tape: tape,
				Key: llm.NewKey("env:NONE", func() (string, error) { return "", errors.New("a key was read") }),
			})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			got := askAll(t, r, reqs)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, stream %v: %s", f, stream, diff)
			}
			if tape.Left() != 0 || time.Since(start) > 30*time.Second {
				t.Errorf("%d left, %v", tape.Left(), time.Since(start))
			}
			if _, err := r.Complete(ctx(t), reqs[0]); codeOf(t, err) != llm.CodeNotOnTape {
				t.Errorf("a request too many: %v", err)
			}
			other := reqs[0]
			other.MaxTokens++
			if _, err := r.Complete(ctx(t), other); codeOf(t, err) != llm.CodeNotOnTape {
				t.Errorf("another request: %v", err)
			}
		}
	}
}

// TestRecordKey: a service that repeats the key does not bring it onto the tape, and
// a conversation that holds it is not sent.
func TestRecordKey(t *testing.T) {
	for _, f := range formats {
		var file bytes.Buffer
		rec := llm.NewRecorder(&file)
		e, s := fake(t, f, llmtest.Always(llmtest.Reply{Text: "your key is " + secret}), func(o *llm.Options) { o.Recorder = rec })
		if r, err := e.Complete(ctx(t), hello()); err != nil || !strings.Contains(r.Text, secret) {
			t.Error(err)
		}
		req := hello()
		req.System = secret
		if _, err := e.Complete(ctx(t), req); codeOf(t, err) != llm.CodeRequest || s.Requests() != 1 {
			t.Error(err)
		}
		if strings.Contains(file.String(), secret) || !strings.Contains(file.String(), "your key is ****") {
			t.Errorf("%s: %s", f, file.String())
		}
	}
}

// TestRecordTogether: several endpoints write to one cassette, line by line.
func TestRecordTogether(t *testing.T) {
	var file bytes.Buffer
	rec := llm.NewRecorder(&file)
	var wg sync.WaitGroup
	for _, f := range formats {
		e, _ := fake(t, f, llmtest.Always(llmtest.Reply{Text: "OK"}), func(o *llm.Options) { o.Recorder = rec })
		for range 5 {
			wg.Go(func() {
				if _, err := e.Complete(ctx(t), hello()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	tape, err := llm.Play(&file)
	if err != nil || tape.Left() != 5*len(formats) {
		t.Fatalf("%v, %d left", err, tape.Left())
	}
	if _, err := llm.New(llm.Options{Format: format.Chat, BaseURL: "https://a.example", Model: "m", Tape: tape, Recorder: rec}); err == nil {
		t.Error("a tape that is recorded")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestRecordBroken(t *testing.T) {
	rec := llm.NewRecorder(brokenWriter{})
	e, _ := fake(t, format.Chat, llmtest.Always(llmtest.Reply{Text: "OK"}), func(o *llm.Options) { o.Recorder = rec })
	if _, err := e.Complete(ctx(t), hello()); err != nil || rec.Err() == nil {
		t.Errorf("%v, %v", err, rec.Err())
	}
}

func TestPlayRefuses(t *testing.T) {
	line := recordOne(t)
	for _, tt := range []struct{ name, old, new string }{
		{"as it is", "", ""},
		{"nothing", line, ""},
		{"no first line", `{"cassette":"pellucid-llm","version":1}` + "\n", ""},
		{"another version", `"version":1`, `"version":2`},
		{"the end is missing", "\"end\":\"whole\"}\n", "\"end\":\"whole\"}"},
		{"request edited", `hello`, `hallo`},
		{"answer edited", `"answer":"{`, `"answer":"{ `},
		{"status edited", `"status":200`, `"status":20`},
		{"status gone", `"status":200`, `"status":0`},
		{"another end", `"whole"`, `"hole"`},
		{"unreachable with an answer", `"whole"`, `"unreachable"`},
		{"a member twice", `"status":200`, `"status":200,"status":200`},
		{"a member too many", `"status":200`, `"status":200,"x":1`},
		{"a header that is not kept", `"Content-Type"`, `"Set-Cookie"`},
		{"a header list", `"application/json"`, `["application/json"]`},
		{"two answers", `"answer":`, `"answer64":"","answer":`},
		{"no JSON", `{"key"`, `"key"`},
		{"empty line", "\n", "\n\n"},
	} {
		text := strings.Replace(line, tt.old, tt.new, 1)
		_, err := llm.Play(strings.NewReader(text))
		var is *llm.CassetteError
		if tt.old == "" {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if text == line || !errors.As(err, &is) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// recordOne is a cassette of one exchange.
func recordOne(t testing.TB) string {
	var file bytes.Buffer
	e, _ := fake(t, format.Chat, llmtest.Always(llmtest.Reply{Text: "OK"}), func(o *llm.Options) { o.Recorder = llm.NewRecorder(&file) })
	req := hello()
	req.Messages[0].Text = "hello"
	if _, err := e.Complete(ctx(t), req); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// TestExample plays the cassette that the package comment names.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("testdata/example.cassette")
	if err != nil {
		t.Fatal(err)
	}
	tape, err := llm.Play(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	e, err := llm.New(llm.Options{Format: format.Chat, BaseURL: "https://models.example/v1", Model: "model-1", Tape: tape})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Complete(ctx(t), llm.Request{System: "Answer.", Messages: []llm.Message{{Text: "hello"}}, MaxTokens: 100})
	if err != nil || r.Text != "OK" || !r.Whole() || tape.Left() != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
