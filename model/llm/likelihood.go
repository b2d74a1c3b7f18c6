// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A ScoreAPI is a way in which servers tell the log-probabilities of a given text.
type ScoreAPI string

// The ways.
const (
	// ScoreCompletions is POST BASE/completions of OpenAI's older interface with echo and
	// logprobs, as vLLM, SGLang and llama-cpp-python have it: the text is read and not written.
	ScoreCompletions ScoreAPI = "completions"
	// ScoreSGLang is POST BASE/generate of SGLang with return_logprob.
	ScoreSGLang ScoreAPI = "sglang"
	// ScoreLlamaCpp is POST BASE/completion of llama.cpp's server, which tells log-probabilities
	// only of what it writes itself: a grammar leaves it nothing else to write than the text.
	ScoreLlamaCpp ScoreAPI = "llamacpp"
)

// A Scorer tells how likely a model finds a text behind another one. It may be used at the same
// time.
type Scorer struct {
	e   *Endpoint
	api ScoreAPI
}

// A Token is one of a text, with the natural logarithm of its probability.
type Token struct {
	Text    string
	LogProb float64
	At      int // where it begins in the text; below 0 where it begins before it
}

// A Score is what a Scorer has found out.
type Score struct {
	Tokens []Token // those that hold the text; the first may begin before it
	Response
}

// Mean is the mean log-probability of the tokens of which in says that they count, by where they
// begin and end in the text. ok is false where none does.
func (s *Score) Mean(in func(start, end int) bool) (mean float64, ok bool) {
	n := 0
	for _, t := range s.Tokens {
		if in(t.At, t.At+len(t.Text)) {
			mean += t.LogProb
			n++
		}
	}
	return mean / float64(max(n, 1)), n > 0
}

// NewScorer makes one of o, whose Format does not count.
func NewScorer(o Options, api ScoreAPI) (*Scorer, error) {
	f, ok := scorings[api]
	if !ok {
		return nil, errors.New("llm: an unknown way to ask for log-probabilities")
	}
	o.Format = format.Chat
	e, err := New(o)
	if err != nil {
		return nil, err
	}
	f.Format = e.format
	e.format = f
	return &Scorer{e, api}, nil
}

// Close closes connections that are idle.
func (s *Scorer) Close() { s.e.Close() }

// Score asks how likely text is behind prompt. text is printable ASCII. The error is an *Error.
func (s *Scorer) Score(ctx context.Context, prompt, text string, budgets ...*Budget) (*Score, error) {
	if text == "" || strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return nil, &Error{Code: CodeRequest, err: errors.New("a text that is not printable ASCII")}
	}
	body := scorings[s.api].append(nil, s.e.o.Model, prompt, text)
	budgets = slices.DeleteFunc(budgets, func(b *Budget) bool { return b == nil })
	r, err := s.e.Complete(ctx, Request{Raw: body, Budgets: budgets})
	if err != nil {
		return nil, err
	}
	tokens, err := scorings[s.api].parse(format.Parse(r.Answer), text)
	if err == nil {
		tokens, err = behind(tokens, text)
	}
	if err != nil {
		return nil, &Error{Code: CodeMalformed, Attempts: r.Attempts, err: err}
	}
	return &Score{tokens, r}, nil
}

// A scoring is the wire format of log-probabilities, as far as an Endpoint needs one: how a
// request is signed and an error reads is as in chat completions.
type scoring struct {
	format.Format
	path   string
	append func(dst []byte, model, prompt, text string) []byte
	parse  func(root strictjson.Value, text string) ([]Token, error)
	read   func(root strictjson.Value) *format.Answer
}

var scorings = map[ScoreAPI]scoring{
	ScoreCompletions: {path: "/completions", append: appendEcho, parse: parseEcho, read: readEcho},
	ScoreSGLang:      {path: "/generate", append: appendSGLang, parse: parseSGLang, read: readSGLang},
	ScoreLlamaCpp:    {path: "/completion", append: appendLlamaCpp, parse: parseLlamaCpp, read: readLlamaCpp},
}

// Path implements format.Format.
func (f scoring) Path(string, bool) string { return f.path }

// Asks implements format.Format. The bound is of what is written: a token that is not looked at,
// or the text.
func (f scoring) Asks(root strictjson.Value) format.Asked {
	bound, ok := root.Get("n_predict").Int64()
	if !ok {
		bound = 1
	}
	return format.Asked{InPath: true, Bound: bound}
}

// Read implements format.Format: the log-probabilities are read from the bytes.
func (f scoring) Read(root strictjson.Value) *format.Answer {
	a := f.read(root)
	a.Stop = format.StopEnd
	return a
}

var errScore = errors.New("no log-probabilities of the text")

// errShifted is about a server whose tokens and log-probabilities do not belong to each other.
// llama-cpp-python is one, for models whose prompts begin without a special token: it tells of
// each token how likely the next one had been.
var errShifted = errors.New("the log-probabilities belong to other tokens")

// behind are the tokens at the end that hold text. What the server has written behind it is left
// out.
func behind(tokens []Token, text string) ([]Token, error) {
	var all strings.Builder
	for _, t := range tokens {
		all.WriteString(t.Text)
	}
	from := strings.LastIndex(all.String(), text)
	if from < 0 {
		return nil, errScore
	}
	at, out := -from, []Token(nil)
	for _, t := range tokens {
		t.At = at
		at += len(t.Text)
		if at <= 0 || t.At >= len(text) {
			continue
		}
		if math.IsNaN(t.LogProb) || math.IsInf(t.LogProb, 0) || t.LogProb > mostLogProb {
			return nil, errScore
		}
		out = append(out, t)
	}
	return out, nil
}

// mostLogProb is above 0, since servers round.
const mostLogProb = 0.01

// logProb reads a log-probability; NaN for none, as the first token of a prompt has.
func logProb(v strictjson.Value) float64 {
	if x, err := strconv.ParseFloat(string(v.Raw()), 64); err == nil && v.Kind() == '0' {
		return x
	}
	return math.NaN()
}

func appendEcho(dst []byte, model, prompt, text string) []byte {
	dst = strictjson.AppendQuote(append(dst, `{"model":`...), model)
	dst = strictjson.AppendQuote(append(dst, `,"prompt":`...), prompt+text)
	return append(dst, `,"max_tokens":1,"temperature":0,"echo":true,"logprobs":1}`...)
}

func parseEcho(root strictjson.Value, text string) (out []Token, err error) {
	choices := root.Get("choices")
	for c := range choices.Elements() {
		list, values := c.Get("logprobs").Get("tokens"), c.Get("logprobs").Get("token_logprobs")
		if choices.Len() != 1 || list.Len() != values.Len() || list.Len() == 0 {
			return nil, errScore
		}
		last := ""
		for t := range list.Elements() {
			last = t.Text()
			out = append(out, Token{Text: last})
		}
		i := 0
		for v := range values.Elements() {
			out[i].LogProb = logProb(v)
			i++
		}
		// The answer's text has the token that was written. Where the tokens do not have it, there
		// is one log-probability less than tokens, and each stands at the token before its own.
		said := c.Get("text").Text()
		if at := strings.LastIndex(said, text); at >= 0 && at+len(text) < len(said) && strings.HasSuffix(text, last) && last != "" {
			return nil, errShifted
		}
	}
	return out, nil
}

func readEcho(root strictjson.Value) *format.Answer {
	a := &format.Answer{Model: root.Get("model").Text(), Fingerprint: root.Get("system_fingerprint").Text(), ID: root.Get("id").Text()}
	usage := root.Get("usage")
	if in, ok := usage.Get("prompt_tokens").Int64(); ok && in >= 0 {
		out, _ := usage.Get("completion_tokens").Int64()
		a.Usage = format.Usage{Known: true, Input: in, Output: max(out, 0)}
	}
	return a
}

// appendSGLang asks for the log-probabilities of the whole prompt: how many of its tokens stand
// before the text is not known.
func appendSGLang(dst []byte, _, prompt, text string) []byte {
	dst = strictjson.AppendQuote(append(dst, `{"text":`...), prompt+text)
	return append(dst, `,"sampling_params":{"max_new_tokens":1,"temperature":0},"return_logprob":true,"logprob_start_len":0,"return_text_in_logprobs":true}`...)
}

func parseSGLang(root strictjson.Value, _ string) (out []Token, err error) {
	for entry := range root.Get("meta_info").Get("input_token_logprobs").Elements() {
		var parts []strictjson.Value
		for v := range entry.Elements() {
			parts = append(parts, v)
		}
		if len(parts) != 3 || parts[2].Kind() != '"' {
			return nil, errScore
		}
		out = append(out, Token{Text: parts[2].Text(), LogProb: logProb(parts[0])})
	}
	return out, nil
}

func readSGLang(root strictjson.Value) *format.Answer {
	meta := root.Get("meta_info")
	a := &format.Answer{ID: meta.Get("id").Text(), Fingerprint: meta.Get("weight_version").Text()}
	if in, ok := meta.Get("prompt_tokens").Int64(); ok && in >= 0 {
		out, _ := meta.Get("completion_tokens").Int64()
		cached, _ := meta.Get("cached_tokens").Int64()
		a.Usage = format.Usage{Known: true, Input: in, Cached: min(max(cached, 0), in), Output: max(out, 0)}
	}
	return a
}

func appendLlamaCpp(dst []byte, _, prompt, text string) []byte {
	grammar := `root ::= "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	dst = strictjson.AppendQuote(append(dst, `{"prompt":`...), prompt)
	dst = strictjson.AppendQuote(append(dst, `,"grammar":`...), grammar)
	dst = strconv.AppendInt(append(dst, `,"n_predict":`...), int64(len(text))+1, 10)
	return append(dst, `,"temperature":0,"n_probs":1,"post_sampling_probs":false,"cache_prompt":true}`...)
}

func parseLlamaCpp(root strictjson.Value, _ string) (out []Token, err error) {
	for t := range root.Get("completion_probabilities").Elements() {
		out = append(out, Token{Text: t.Get("token").Text(), LogProb: logProb(t.Get("logprob"))})
	}
	return out, nil
}

func readLlamaCpp(root strictjson.Value) *format.Answer {
	a := &format.Answer{Model: root.Get("model").Text()}
	in, ok := root.Get("tokens_evaluated").Int64()
	if out, written := root.Get("tokens_predicted").Int64(); ok && written && in >= 0 && out >= 0 {
		cached, _ := root.Get("tokens_cached").Int64()
		if n, known := root.Get("timings").Get("prompt_n").Int64(); known {
			cached = in - n
		}
		a.Usage = format.Usage{Known: true, Input: in, Cached: min(max(cached, 0), in), Output: out}
	}
	return a
}
