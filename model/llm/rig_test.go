// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "sk-fake-0123456789abcdef"

func key() llm.Key {
	return llm.NewKey("env:MODEL_KEY", func() (string, error) { return secret, nil })
}

var formats = []format.Name{format.Chat, format.Responses, format.Messages, format.Gemini, format.GeminiArray}

// fake starts a fake and an endpoint that asks it, with fast retries.
func fake(t testing.TB, f format.Name, m llmtest.Model, change ...func(*llm.Options)) (*llm.Endpoint, *llmtest.Server) {
	t.Helper()
	s := llmtest.Start(t, m, secret)
	o := llm.Options{
		Format: f, BaseURL: s.URL, Model: "model-1", Key: key(),
		Backoff: time.Millisecond, Timeout: time.Minute,
	}
	for _, c := range change {
		c(&o)
	}
	e, err := llm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, s
}

func hello() llm.Request {
	return llm.Request{System: "Answer.", Messages: []llm.Message{{Text: "Hello."}}, MaxTokens: 100}
}

// streamed is req asking for a stream of which nobody looks at the pieces.
func streamed(req llm.Request) llm.Request {
	req.Stream = func(llm.Delta) error { return nil }
	return req
}

func codeOf(t testing.TB, err error) llm.Code {
	t.Helper()
	var e *llm.Error
	if err == nil {
		return ""
	}
	if !errors.As(err, &e) {
		t.Fatalf("an error of type %T: %v", err, err)
	}
	return e.Code
}

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return c
}
