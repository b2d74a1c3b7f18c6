// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// A Likely is a fake of a model that tells log-probabilities: that of a token behind a text.
type Likely func(before, token string) float64

// StartScores starts a fake of servers that tell the log-probabilities of a given text, and
// returns its URL. It speaks, as they document them, the older completions of OpenAI with echo and
// logprobs as vLLM has them (/completions), SGLang's /generate, and /completion of llama.cpp's
// server with a grammar. Its tokens are words. asked is called with each body.
func StartScores(t testing.TB, model Likely, asked func(path, body string)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if asked != nil {
			asked(r.URL.Path, string(raw))
		}
		answer := map[string]func(Likely, []byte) (any, error){"/completions": echo, "/generate": generate, "/completion": completion}[r.URL.Path]
		if answer == nil {
			http.Error(w, `{"error":{"message":"no such route"}}`, http.StatusNotFound)
			return
		}
		body, err := answer(model, raw)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			body = map[string]any{"error": map[string]any{"message": "refused"}}
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

var word = regexp.MustCompile(`(?s) ?[A-Za-z]+|.`)

// tokens are those of a text behind before, with their log-probabilities.
func (m Likely) tokens(before, text string) (tokens []string, values []any) {
	for _, token := range word.FindAllString(text, -1) {
		var v any
		if before != "" { // the first token of a prompt has none
			v = m(before, token)
		}
		tokens, values = append(tokens, token), append(values, v)
		before += token
	}
	return tokens, values
}

func echo(m Likely, raw []byte) (any, error) {
	var ask struct {
		Model, Prompt string
		Echo          bool
		Logprobs      *int
		MaxTokens     int `json:"max_tokens"`
	}
	if err := json.Unmarshal(raw, &ask); err != nil || !ask.Echo || ask.Logprobs == nil || ask.MaxTokens != 1 {
		return nil, fmt.Errorf("llmtest: %w", err)
	}
	tokens, values := m.tokens("", ask.Prompt)
	tokens, values = append(tokens, "\n"), append(values, -0.5)
	return map[string]any{"id": "cmpl-1", "object": "text_completion", "model": ask.Model, "choices": []any{map[string]any{
		"index": 0, "text": ask.Prompt + "\n", "finish_reason": "length", "logprobs": map[string]any{"tokens": tokens, "token_logprobs": values}}},
		"usage": map[string]any{"prompt_tokens": len(tokens) - 1, "completion_tokens": 1}}, nil
}

func generate(m Likely, raw []byte) (any, error) {
	var ask struct {
		Text    string
		Logprob bool `json:"return_logprob"`
		Start   int  `json:"logprob_start_len"`
		Words   bool `json:"return_text_in_logprobs"`
	}
	if err := json.Unmarshal(raw, &ask); err != nil || !ask.Logprob || !ask.Words || ask.Start != 0 {
		return nil, fmt.Errorf("llmtest: %w", err)
	}
	tokens, values := m.tokens("", ask.Text)
	var list []any
	for i, token := range tokens {
		list = append(list, []any{values[i], i, token})
	}
	return map[string]any{"text": "\n", "meta_info": map[string]any{"id": "1", "weight_version": "default", "prompt_tokens": len(tokens),
		"completion_tokens": 1, "cached_tokens": 0, "input_token_logprobs": list, "output_token_logprobs": []any{[]any{-0.5, 9, "\n"}}}}, nil
}

// completion writes what the grammar allows, which is one text.
func completion(m Likely, raw []byte) (any, error) {
	var ask struct {
		Prompt, Grammar string
		Most            int  `json:"n_predict"`
		Probs           int  `json:"n_probs"`
		PostSampling    bool `json:"post_sampling_probs"`
	}
	if err := json.Unmarshal(raw, &ask); err != nil || ask.Probs != 1 || ask.PostSampling {
		return nil, fmt.Errorf("llmtest: %w", err)
	}
	literal, ok := strings.CutPrefix(ask.Grammar, `root ::= "`)
	if !ok {
		return nil, fmt.Errorf("llmtest: no grammar of one text")
	}
	text := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(strings.TrimSuffix(literal, `"`))
	tokens, values := m.tokens(ask.Prompt, text)
	var list []any
	for i, token := range tokens[:min(len(tokens), ask.Most)] {
		list = append(list, map[string]any{"id": i, "token": token, "logprob": values[i], "top_logprobs": []any{}})
	}
	prompt, _ := m.tokens("", ask.Prompt)
	return map[string]any{"content": text, "model": "small.gguf", "stop_type": "eos", "tokens_evaluated": len(prompt), "tokens_predicted": len(tokens),
		"timings": map[string]any{"prompt_n": len(prompt)}, "completion_probabilities": list}, nil
}
