// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify/onnx"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// ownProvider is the provider that is an ONNX model of the operator's.
const ownProvider = "onnx"

// ownTimeout is the default timeout of such a model, which needs tenths of a second for a text.
const ownTimeout = 10 * time.Second

// An ownModel is what the provider onnx needs.
type ownModel struct {
	model, tokenizer, config     string // files, absolute; "": beside the one before
	modelDigest, tokenizerDigest string
	injection                    []string
	scores                       string
	maxTokens, overlap, threads  int
	memory                       int
	python                       string
}

func (m *ownModel) members() []providerMember {
	file := func(v *string) value { return parsed(v, "PATH or `file:PATH`", (*compiler).file) }
	digest := func(v *string) value { return checked(v, "", "sha256: and 64 lower-case hex digits", isDigest) }
	isLabel := func(s string) bool { return s != "" && len(s) <= 64 }
	return []providerMember{
		{ownProvider, "", member{"model_file", live, file(&m.model), "the ONNX file"}},
		{"", ownProvider, member{"tokenizer_file", live, file(&m.tokenizer), "default: `tokenizer.json` beside the model file"}},
		{"", ownProvider, member{"config_file", live, file(&m.config), "default: `config.json` beside the tokenizer file"}},
		{"", ownProvider, member{"model_digest", live, digest(&m.modelDigest), "digest of the ONNX file; default: not checked"}},
		{"", ownProvider, member{"tokenizer_digest", live, digest(&m.tokenizerDigest), "digest of the tokenizer file; default: not checked"}},
		{ownProvider, "", member{"injection", live, list(&m.injection, nil, 16, "a label of the model, or its index", isLabel), "the outputs that mean an injection: `id2label` of config.json names them"}},
		{"", ownProvider, member{"scores", live, word(&m.scores, "", onnx.ScoreForms, onnx.ScoreForms), "how outputs become probabilities; default: softmax, and sigmoid of a single output"}},
		{"", ownProvider, member{"max_tokens", live, integer(&m.maxTokens, 512, 16, 8192), "tokens of one window"}},
		{"", ownProvider, member{"overlap_tokens", live, integer(&m.overlap, 64, 0, 4096), "tokens that two windows share"}},
		{"", ownProvider, member{"threads", live, integer(&m.threads, 1, 1, 64), "threads of the model"}},
		{"", ownProvider, member{"memory", live, size(&m.memory, 4<<30, 256<<20, 64<<30), "address space of the process, on Linux"}},
		{"", ownProvider, member{"python", live, parsed(&m.python, "a program of PATH, or a path", (*compiler).pythonOf), "the Python that has onnxruntime, tokenizers and numpy; default: python3"}},
	}
}

// pythonOf reads a name to be looked up in PATH, or a path relative to the configuration.
func (c *compiler) pythonOf(p place) string {
	s := c.text(p, maxText)
	if strings.ContainsAny(s, `/\`) {
		return c.opt.locate(s)
	}
	return s
}

// IsOwn reports whether it is an ONNX model of the operator's, which Own says how to run.
func (x *Classifier) IsOwn() bool { return x.Provider == ownProvider }

// Own says how to run the model.
func (x *Classifier) Own() onnx.Options {
	m := &x.own
	o := onnx.Options{Python: cmp.Or(m.python, "python3"), Model: m.model, Tokenizer: m.tokenizer, Config: m.config,
		ModelDigest: m.modelDigest, TokenizerDigest: m.tokenizerDigest, Injection: m.injection, Scores: m.scores,
		MaxTokens: m.maxTokens, Overlap: m.overlap, Threads: m.threads, Memory: m.memory, Behind: x.Mode == policy.Shadow}
	if o.Tokenizer == "" {
		o.Tokenizer = filepath.Join(filepath.Dir(o.Model), "tokenizer.json")
	}
	if o.Config == "" {
		o.Config = filepath.Join(filepath.Dir(o.Tokenizer), "config.json")
	}
	return o
}
