// SPDX-License-Identifier: Apache-2.0

package onnx

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "play" {
		play(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

const greetingLine = `{"ready":{"model":"sha256:aa","tokenizer":"sha256:bb","scores":"softmax","outputs":2,"wanted":[1]}}`

// secretText is what a question holds and no error may show.
const secretText = "the words of a result"

// play is a runner that misbehaves as the word says.
func play(how string) {
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	long := strings.Repeat("x", 1<<20)
	switch how {
	case "dies at start":
		fmt.Fprintln(os.Stderr, "no module of that name")
		os.Exit(3)
	case "hangs at start":
		time.Sleep(time.Hour)
	case "floods at start":
		for {
			if _, err := io.WriteString(os.Stdout, long); err != nil {
				return
			}
		}
	case "no JSON at start":
		fmt.Println("hello")
	case "unknown refusal":
		fmt.Println(`{"failed":"gone fishing","detail":"x"}`)
	case "says more than asked":
		fmt.Println(greetingLine + "\n" + `{"id":1,"score":0}`)
	default:
		fmt.Println(greetingLine)
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var n int
		fmt.Sscanf(line, `{"id":%d,`, &n)
		fmt.Fprintln(os.Stderr, line)
		if strings.Contains(line, "please") || !misbehave(how, n, long) {
			fmt.Printf(`{"id":%d,"score":%v}`+"\n", n, map[bool]string{true: "0.75", false: "0.25"}[strings.Contains(line, "ignore")])
		}
	}
}

// misbehave reports whether it has answered the question.
func misbehave(how string, n int, long string) bool {
	switch how {
	case "hangs":
		time.Sleep(time.Hour)
	case "dies":
		os.Exit(1)
	case "floods":
		for {
			if _, err := io.WriteString(os.Stdout, long); err != nil {
				return true
			}
		}
	case "no JSON":
		fmt.Println("score: 1")
	case "another id":
		fmt.Println(`{"id":77,"score":1}`)
	case "two answers":
		fmt.Printf(`{"id":%d,"score":0}`+"\n"+`{"id":%d,"score":1}`+"\n", n, n+1)
	case "no score":
		fmt.Printf(`{"id":%d,"score":null}`+"\n", n)
	case "fails":
		fmt.Printf(`{"id":%d,"failed":true}`+"\n", n)
	case "beyond 1":
		fmt.Printf(`{"id":%d,"score":1.5}`+"\n", n)
	case "another member":
		fmt.Printf(`{"id":%d,"score":1,"text":"x"}`+"\n", n)
	default:
		return false
	}
	return true
}

func played(t *testing.T, how string) (*Classifier, error) {
	t.Helper()
	c, err := Start(Options{program: []string{os.Args[0], "play", how}, start: 5 * time.Second, answer: time.Second})
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

// TestAnswers: an honest runner's scores, one question after the other.
func TestAnswers(t *testing.T) {
	c, err := played(t, "well")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Classify(t.Context(), []string{"hello", "ignore \x00\xff\u2028\"this\"\n", ""})
	if err != nil || len(s) != 3 || s[0].P != 0.25 || s[0].Flagged || s[1].P != 0.75 || !s[1].Flagged || s[2].P != 0.25 {
		t.Fatalf("%v, %v", s, err)
	}
	if v := c.Version(); !strings.HasPrefix(v, "onnx-") || string(classify.CodeOf(v)) != v {
		t.Errorf("version %q", v)
	}
	c.Close()
	if _, err := c.Classify(t.Context(), []string{"hello"}); !errors.Is(err, errClosed) && !errors.Is(err, errEnded) {
		t.Errorf("after Close: %v", err)
	}
}

// TestBadStart: a runner that does not say that it is ready is ended, in time, with an error that says why.
func TestBadStart(t *testing.T) {
	for how, want := range map[string]string{
		"dies at start":    `no module of that name`,
		"hangs at start":   "does not answer",
		"floods at start":  "not an answer",
		"no JSON at start": "not an answer",
		"unknown refusal":  "not an answer",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			c, err := Start(Options{program: []string{os.Args[0], "play", how}, start: 2 * time.Second})
			if err == nil {
				c.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			if d := time.Since(begin); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
	if _, err := Start(Options{Python: "/no/such/python"}); err == nil || !strings.Contains(err.Error(), "no such program") {
		t.Errorf("no Python: %v", err)
	}
}

// TestMisbehaviour: what a runner answers wrongly is never a score, no error holds a text,
// and a runner that works follows one that does not.
func TestMisbehaviour(t *testing.T) {
	for _, how := range []string{"hangs", "dies", "floods", "no JSON", "another id", "two answers", "says more than asked", "no score", "fails", "beyond 1", "another member"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c, err := played(t, how)
			if err != nil {
				t.Fatal(err)
			}
			m, err := classify.New(classify.Options{Name: "own", Classifier: c, Mode: policy.Enforce, Timeout: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			failed := false
			for range 2 { // two answers to one question show at the second
				v := m.Judge(t.Context(), []classify.Segment{{View: secretText}})
				if v.Err != nil && strings.Contains(v.Err.Error(), secretText) {
					t.Errorf("the error holds the text: %v", v.Err)
				}
				if v.Flagged() {
					t.Errorf("a wrong answer is a verdict: %+v", v)
				}
				failed = failed || v.Reason != classify.Judged && v.Action == policy.Hold
			}
			if !failed {
				t.Error("every question was judged")
			}
			if how == "says more than asked" {
				return // as every runner of it does
			}
			waittest.Until(t, "another runner works", func() bool {
				s, err := c.Classify(t.Context(), []string{"please ignore this"})
				return err == nil && s[0].Flagged
			})
		})
	}
}

// TestPatience: a caller that no longer waits is let go at once; the question after it waits
// for its turn, and gets its own answer.
func TestPatience(t *testing.T) {
	c, err := played(t, "hangs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	begin := time.Now()
	if _, err := c.Classify(ctx, []string{secretText}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if d := time.Since(begin); d > 900*time.Millisecond {
		t.Errorf("waited %v", d)
	}
	if _, err := c.Classify(ctx, []string{secretText}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the runner is busy: %v", err)
	}
}

// TestNoRestartLoop: runners that die again and again are started at most once a second.
func TestNoRestartLoop(t *testing.T) {
	c, err := played(t, "dies")
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := c.Classify(t.Context(), []string{secretText}); err == nil {
			t.Fatal("a dead runner answers")
		} else if !errors.Is(err, errPaused) {
			started++
		}
	}
	if started > 3 {
		t.Errorf("%d runners in 1.5 s", started)
	}
}

// FuzzReply: no line of a runner makes a score of anything but a number that belongs to the question.
func FuzzReply(f *testing.F) {
	for _, s := range []string{greetingLine, `{"id":1,"score":0.5}`, `{"id":1,"score":null}`, `{"id":1,"score":1e999}`, `{"ID":1,"score":1}`, `{"id":1,"id":1,"score":1}`, "", "{", "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var a reply
		if err := strictjson.Unmarshal(line, &a, strictjson.Limits{}); err == nil && a.Score != nil && (*a.Score != *a.Score || *a.Score-*a.Score != 0) {
			t.Errorf("a score that is not finite: %v", *a.Score)
		}
		var g greeting
		if err := strictjson.Unmarshal(line, &g, strictjson.Limits{}); err == nil && g.Failed != "" {
			if text := refusal(&Options{}, g).Error(); len(text) > 600 || strings.ContainsAny(text, "\n\r\x1b") {
				t.Errorf("%q", text)
			}
		}
	})
}
