// SPDX-License-Identifier: Apache-2.0

package onnx

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

//go:embed runner.py
var program string

const (
	maxAnswer = 16 << 10 // bytes of a line
	maxKept   = 8        // lines of standard error from the start
)

// A runner is one process that has loaded the model.
type runner struct {
	proc     *child.Process
	out      *bufio.Reader
	answered bool
}

// What a runner writes: one ready or refusal, then answers.
type (
	ready struct {
		Model     string `json:"model"` // digests
		Tokenizer string `json:"tokenizer"`
		Scores    string `json:"scores"`
		Outputs   int    `json:"outputs"`
		Wanted    []int  `json:"wanted"`
	}
	greeting struct {
		Ready  *ready `json:"ready,omitempty"`
		Failed string `json:"failed,omitempty"`
		Detail string `json:"detail,omitempty"`
	}
	reply struct {
		ID     uint64   `json:"id"`
		Score  *float64 `json:"score"`
		Failed bool     `json:"failed,omitempty"`
	}
)

// settings are what a runner reads first.
type settings struct {
	Model           string   `json:"model"`
	Tokenizer       string   `json:"tokenizer"`
	Config          string   `json:"config"`
	ModelDigest     string   `json:"model_digest"`
	TokenizerDigest string   `json:"tokenizer_digest"`
	Injection       []string `json:"injection"`
	Scores          string   `json:"scores"`
	MaxTokens       int      `json:"max_tokens"`
	Overlap         int      `json:"overlap"`
	Threads         int      `json:"threads"`
	Memory          int      `json:"memory"`
	Behind          bool     `json:"behind"`
}

// kept are the first lines that a runner writes to standard error before it has read a
// text. Later lines might hold one, and are dropped.
type kept struct {
	mu    sync.Mutex
	lines []string
	done  bool
}

func (k *kept) add(line string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.done {
		k.lines = append(k.lines[max(0, len(k.lines)-maxKept+1):], line)
	}
}

// end drops what comes from now on. It returns the last line, "" if there was no line.
func (k *kept) end() (last string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
	if len(k.lines) > 0 {
		last = k.lines[len(k.lines)-1]
	}
	k.lines = nil
	return last
}

// startRunner starts a process and waits until it has loaded the model.
func startRunner(o *Options) (*runner, ready, error) {
	first, err := json.Marshal(settings{o.Model, o.Tokenizer, o.Config, o.ModelDigest, o.TokenizerDigest, o.Injection,
		o.Scores, o.MaxTokens, o.Overlap, o.Threads, o.Memory, o.Behind})
	if err != nil {
		return nil, ready{}, fmt.Errorf("onnx: %w", err)
	}
	args := o.program
	if args == nil {
		args = []string{o.Python, "-I", "-B", "-c", program}
	}
	var said kept
	threads := strconv.Itoa(o.Threads)
	proc, err := child.Start(child.Command{Args: args, Stderr: said.add, CloseWait: 300 * time.Millisecond, TermWait: 300 * time.Millisecond,
		Env: []string{"TOKENIZERS_PARALLELISM=false", "OMP_NUM_THREADS=" + threads, "OPENBLAS_NUM_THREADS=" + threads}})
	if err != nil {
		return nil, ready{}, fmt.Errorf("onnx: the runner: %w", err)
	}
	r := &runner{proc: proc, out: bufio.NewReaderSize(proc.Stdout, maxAnswer)}
	var g greeting
	err = r.exchange(append(first, '\n'), o.start, &g)
	last := said.end()
	if err == nil && g.Ready != nil && g.Failed == "" {
		return r, *g.Ready, nil
	}
	r.stop()
	if err == nil {
		return nil, ready{}, refusal(o, g)
	}
	if last != "" {
		return nil, ready{}, fmt.Errorf("onnx: the runner does not start: %w: its last line is %s", err, finding.Quote(last))
	}
	return nil, ready{}, fmt.Errorf("onnx: the runner does not start: %w", err)
}

// errEnded: the process has ended or closed its output.
var errEnded = errors.New("onnx: the runner has ended")

// exchange writes a line and reads the answer to it. A runner that takes longer than within
// is ended. After an error it cannot be used any more.
func (r *runner) exchange(line []byte, within time.Duration, answer any) error {
	var late bool
	var mu sync.Mutex
	timer := time.AfterFunc(within, func() {
		mu.Lock()
		late = true
		mu.Unlock()
		r.kill()
	})
	defer timer.Stop()
	if r.out.Buffered() > 0 {
		return classify.ErrMalformed // it has said more than it was asked
	}
	_, err := r.proc.Stdin.Write(line)
	var got []byte
	if err == nil {
		got, err = r.out.ReadSlice('\n')
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case late:
		return errSlow
	case errors.Is(err, bufio.ErrBufferFull):
		return classify.ErrMalformed
	case err != nil:
		return errEnded // the error of a pipe says no more
	}
	if err := strictjson.Unmarshal(got[:len(got)-1], answer, strictjson.Limits{}); err != nil {
		return classify.ErrMalformed
	}
	return nil
}

// ask puts one question.
func (r *runner) ask(id uint64, text string, within time.Duration) (a reply, err error) {
	line := strconv.AppendUint([]byte(`{"id":`), id, 10)
	line = append(strictjson.AppendQuote(append(line, `,"text":`...), text), '}', '\n')
	if err := r.exchange(line, within, &a); err != nil {
		return reply{}, err
	}
	if a.ID != id {
		return reply{}, classify.ErrMalformed
	}
	r.answered = true
	return a, nil
}

// kill ends the process at once.
func (r *runner) kill() {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	r.proc.Stop(ctx)
}

// stop ends the process and its pipes.
func (r *runner) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r.proc.Stop(ctx)
	r.proc.Stdout.Close()
}

// A fault is what a runner refuses: what was expected, and what its detail is.
type fault struct{ want, detail string }

var faults = map[string]fault{
	"packages":          {"the runner's Python lacks a package: install onnxruntime, tokenizers and numpy for the program that `python` names", "missing"},
	"memory":            {"the model needs more memory than `memory` allows", ""},
	"model-missing":     {"`model_file` cannot be read", "the system says"},
	"model-digest":      {"the model is not the one of `model_digest`", "it has"},
	"model":             {"`model_file` is no ONNX model that the runtime loads (one file, without external data)", "it says"},
	"tokenizer-missing": {"`tokenizer_file` cannot be read; a model that has only spm.model or vocab.txt needs a tokenizer.json made of it", "the system says"},
	"tokenizer-digest":  {"the tokenizer is not the one of `tokenizer_digest`", "it has"},
	"tokenizer":         {"`tokenizer_file` is no tokenizer.json", "the reader says"},
	"config-missing":    {"`config_file` does not exist, and `injection` names a label: give the file, or indexes", ""},
	"config-unreadable": {"`config_file` is not JSON that can be read", ""},
	"input-unknown":     {"the model has an input other than input_ids, attention_mask and token_type_ids", "it has"},
	"input-missing":     {"the model has no input input_ids", "it has"},
	"input-shape":       {"an input is not of the shape [1 or any, length] and of whole numbers", "it has"},
	"outputs":           {"the model has several outputs, and no output is called logits", "outputs:"},
	"output-shape":      {"the model does not answer one row of scores, [1, labels], so it is no text classifier", "it answers"},
	"softmax":           {"`scores: softmax` needs two outputs or more, and the model has one: use sigmoid or probability", ""},
	"label":             {"`injection` names a label that the model does not have", "it has"},
	"index":             {"an index in `injection` is not below the number of outputs", "outputs:"},
	"all-labels":        {"`injection` names every output, so that every text would be one", "outputs:"},
	"not-finite":        {"the model gives no probability for a plain text: its weights are damaged, or `scores` is not right", ""},
	"positions":         {"`max_tokens` is more than the model has positions for", "positions:"},
	"length":            {"`max_tokens` is more than the length that the model has fixed", "length:"},
	"overlap":           {"`overlap_tokens` is not below what a window holds beside the tokenizer's own tokens", "it holds"},
	"vocabulary":        {"the tokenizer has more pieces than the model: they do not belong together", "pieces and room for them:"},
	"run":               {"the model cannot be run on a plain text", "the runtime says"},
}

// refusal says what a runner has refused.
func refusal(o *Options, g greeting) error {
	f, known := faults[g.Failed]
	if !known {
		return fmt.Errorf("onnx: the runner does not start: %w", classify.ErrMalformed)
	}
	err := "onnx: " + f.want
	if path := map[string]string{"model-missing": o.Model, "tokenizer-missing": o.Tokenizer, "config-missing": o.Config, "config-unreadable": o.Config}[g.Failed]; path != "" {
		err += ": " + strconv.QuoteToASCII(path) // the operator wrote it
	}
	if g.Detail != "" && f.detail != "" {
		err += "; " + f.detail + " " + finding.Quote(g.Detail)
	}
	return errors.New(err)
}
