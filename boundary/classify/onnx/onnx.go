// SPDX-License-Identifier: Apache-2.0

// Package onnx is a classifier of the operator's own: an ONNX model that a Python process runs.
//
// The process is a child of this one. It reads one text at a time and answers with one
// score. It is bounded in memory by itself, and in time by this package, which ends it
// when an answer does not come, is not one, or is not about the text that was asked about;
// the next question starts another.
package onnx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

// Options of a [Classifier]. Python, the three files and Injection have to be set.
type Options struct {
	Python string // program
	// Model is an ONNX file, Tokenizer a tokenizer.json, Config a config.json. Config need
	// not exist where Injection holds indexes only.
	Model, Tokenizer, Config     string
	ModelDigest, TokenizerDigest string // sha256: and hex digits; "": not checked
	// Injection are the outputs that mean an injection: labels of Config, or indexes.
	Injection []string
	Scores    string // softmax, sigmoid or probability; "": as the number of outputs suggests
	MaxTokens int    // of one window, with those that the tokenizer adds; 0 = 512
	Overlap   int    // tokens that two windows share
	Threads   int    // 0 = 1
	Memory    int    // bytes of address space of the process; 0 = 4 GiB
	Behind    bool   // other processes of the machine go first

	start, answer time.Duration // limits; 0 = startLimit, answerLimit
	program       []string      // nil: the runner in Python
}

// The bounds of a runner.
const (
	startLimit  = time.Minute // to read the model
	answerLimit = 30 * time.Second
	maxText     = 8_000 // characters of one question
	flaggedFrom = 0.5   // where the configuration says no limit
	firstPause  = time.Second
	longPause   = time.Minute
)

// ScoreForms are the values of Options.Scores.
var ScoreForms = []string{"softmax", "sigmoid", "probability"}

// A Classifier asks a runner. It starts another when one has ended.
type Classifier struct {
	o       Options
	version string
	turn    chan struct{} // holds one value while a question is under way or a runner starts

	// What the holder of turn uses.
	pause backoff.Waits
	after time.Time // no runner is started before
	asked uint64

	mu     sync.Mutex
	run    *runner // nil: ended
	closed bool
}

var _ classify.Classifier = (*Classifier)(nil)

var (
	errClosed = errors.New("onnx: the classifier is closed")
	errPaused = errors.New("onnx: the runner has ended and is started again soon")
	errSlow   = errors.New("onnx: the runner does not answer")
)

// Start starts a runner and has it load the model. The error says what was expected.
func Start(o Options) (*Classifier, error) {
	c := &Classifier{o: o.orDefault(), turn: make(chan struct{}, 1), pause: backoff.Waits{First: firstPause, Most: longPause}}
	r, ready, err := startRunner(&c.o)
	if err != nil {
		return nil, err
	}
	// A later runner has to read the same files, or the version would lie.
	c.o.ModelDigest, c.o.TokenizerDigest = ready.Model, ready.Tokenizer
	c.version = c.o.version(ready)
	c.run = r
	return c, nil
}

func (o Options) orDefault() Options {
	for _, v := range []struct {
		to *int
		or int
	}{{&o.MaxTokens, 512}, {&o.Threads, 1}, {&o.Memory, 4 << 30}} {
		if *v.to == 0 {
			*v.to = v.or
		}
	}
	if o.start == 0 {
		o.start = startLimit
	}
	if o.answer == 0 {
		o.answer = answerLimit
	}
	return o
}

// version names what scores depend on.
func (o *Options) version(r ready) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %v %d %d", r.Model, r.Tokenizer, r.Scores, slices.Sorted(slices.Values(r.Wanted)), o.MaxTokens, o.Overlap))
	return "onnx-" + hex.EncodeToString(sum[:8])
}

// Version implements classify.Classifier.
func (c *Classifier) Version() string { return c.version }

// Limits implements classify.Classifier: one text, so that a failure concerns no other.
func (c *Classifier) Limits() classify.Limits { return classify.Limits{Texts: 1, Chars: maxText} }

// An answer is what has become of a question.
type answer struct {
	score classify.Score
	err   error
}

// Classify implements classify.Classifier. A question that the caller no longer waits for
// keeps the runner until it is answered, or until its time is up.
func (c *Classifier) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	out := make([]classify.Score, len(texts))
	for i, text := range texts {
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		result := make(chan answer, 1)
		go func() {
			defer func() { <-c.turn }()
			s, err := c.ask(text)
			result <- answer{s, err}
		}()
		select {
		case r := <-result:
			if r.err != nil {
				return nil, r.err
			}
			out[i] = r.score
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// ask puts one question. Its caller holds turn.
func (c *Classifier) ask(text string) (classify.Score, error) {
	r, err := c.runner()
	if err != nil {
		return classify.Score{}, err
	}
	c.asked++
	a, err := r.ask(c.asked, text, c.o.answer)
	if err != nil {
		c.drop(r)
		return classify.Score{}, err
	}
	switch {
	case a.Failed:
		return classify.Score{}, classify.ErrRefused
	case a.Score == nil: // the model gave NaN, or what is no probability
		return classify.Score{}, fmt.Errorf("onnx: the model gave no probability: %w", classify.ErrMalformed)
	}
	return classify.Score{P: *a.Score, Flagged: *a.Score >= flaggedFrom}, nil
}

// runner is the one that runs, or another. Its caller holds turn.
func (c *Classifier) runner() (*runner, error) {
	c.mu.Lock()
	r, closed := c.run, c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case r != nil:
		return r, nil
	case time.Now().Before(c.after):
		return nil, errPaused
	}
	r, _, err := startRunner(&c.o)
	if err != nil {
		c.after = time.Now().Add(c.pause.Next())
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		r.stop()
		return nil, errClosed
	}
	c.run = r
	return r, nil
}

// drop ends a runner that cannot be used any more. Its caller holds turn.
func (c *Classifier) drop(r *runner) {
	r.stop()
	if r.answered {
		c.pause.Reset() // it worked before: the next failure is not a repetition
	}
	c.after = time.Now().Add(c.pause.Next())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run = nil
}

// Close ends the runner. A question under way fails.
func (c *Classifier) Close() {
	c.mu.Lock()
	c.closed = true
	r := c.run
	c.mu.Unlock()
	if r != nil {
		r.stop()
	}
}
