// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bounds of an Embedder.
const (
	maxEmbedded   = 8 << 10 // bytes of a text: what is beyond is not looked at
	maxDimensions = 16 << 10
	maxVectors    = 1024 // that are kept
)

// An Embedder measures how similar the meanings of two texts are, by an endpoint that speaks
// OpenAI's embeddings. A text is asked about once. It may be used at the same time.
type Embedder struct {
	e *Endpoint

	mu   sync.Mutex
	kept map[[sha256.Size]byte]vector
}

// A vector is the embedding of a text, of length 1.
type vector []float64

// NewEmbedder makes one of o, whose Format does not count.
func NewEmbedder(o Options) (*Embedder, error) {
	o.Format = format.Chat
	e, err := New(o)
	if err != nil {
		return nil, err
	}
	e.format = embeddings{e.format}
	return &Embedder{e: e, kept: map[[sha256.Size]byte]vector{}}, nil
}

// Close closes connections that are idle.
func (m *Embedder) Close() { m.e.Close() }

// Similarity is the cosine of the angle between two texts, from -1 to 1. The error is an *Error.
func (m *Embedder) Similarity(ctx context.Context, x, y string) (float64, error) {
	u, err := m.vector(ctx, x)
	if err != nil {
		return 0, err
	}
	v, err := m.vector(ctx, y)
	if err != nil {
		return 0, err
	}
	if len(u) != len(v) {
		return 0, failure(CodeMalformed)
	}
	sum := 0.0
	for i := range u {
		sum += u[i] * v[i]
	}
	return min(max(sum, -1), 1), nil
}

func (m *Embedder) vector(ctx context.Context, text string) (vector, error) {
	text = cutText(text)
	key := sha256.Sum256([]byte(text))
	m.mu.Lock()
	v, ok := m.kept[key]
	m.mu.Unlock()
	if ok {
		return v, nil
	}
	body := append([]byte(`{"model":`), strictjson.AppendQuote(nil, m.e.o.Model)...)
	body = append(strictjson.AppendQuote(append(body, `,"input":[`...), text), `],"encoding_format":"float"}`...)
	r, err := m.e.Complete(ctx, Request{Raw: body})
	if err != nil {
		return nil, err
	}
	if v, err = parseVector(r.Answer); err != nil {
		return nil, failure(CodeMalformed)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) < maxVectors {
		m.kept[key] = v
	}
	return v, nil
}

// cutText is at most maxEmbedded bytes of text, whole characters.
func cutText(text string) string {
	if len(text) <= maxEmbedded {
		return text
	}
	end := maxEmbedded
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

var errVector = errors.New("llm: not an answer with one embedding")

// parseVector reads the only embedding of an answer.
func parseVector(body []byte) (vector, error) {
	var doc strictjson.Doc
	if doc.Reset(body, strictjson.Limits{}) != nil {
		return nil, errVector
	}
	var list strictjson.Value
	data := doc.Root().Get("data")
	for e := range data.Elements() {
		list = e.Get("embedding")
	}
	if data.Len() != 1 || list.Kind() != '[' || list.Len() == 0 || list.Len() > maxDimensions {
		return nil, errVector
	}
	out := make(vector, 0, list.Len())
	most := 0.0
	for e := range list.Elements() {
		x, err := strconv.ParseFloat(string(e.Raw()), 64)
		if e.Kind() != '0' || err != nil {
			return nil, errVector
		}
		out = append(out, x)
		most = max(most, math.Abs(x))
	}
	if most == 0 {
		return nil, errVector
	}
	sum := 0.0
	for i := range out {
		out[i] /= most // else the sum of squares might be no number
		sum += out[i] * out[i]
	}
	for i := range out {
		out[i] /= math.Sqrt(sum)
	}
	return out, nil
}

// embeddings is the wire format of embeddings, as far as an Endpoint needs one: how a request is
// signed and an error reads is as in chat completions.
type embeddings struct{ format.Format }

// Path implements format.Format.
func (embeddings) Path(string, bool) string { return "/embeddings" }

// Asks implements format.Format. An embedding has no tokens.
func (embeddings) Asks(root strictjson.Value) format.Asked {
	return format.Asked{Model: root.Get("model").Text(), Bound: 1}
}

// Read implements format.Format: the vector is read from the bytes. An error that has a status of
// success has no vector.
func (embeddings) Read(root strictjson.Value) *format.Answer {
	a := &format.Answer{Model: root.Get("model").Text(), Stop: format.StopEnd}
	if n, ok := root.Get("usage").Get("prompt_tokens").Int64(); ok && n >= 0 {
		a.Usage = format.Usage{Known: true, Input: n}
	}
	return a
}
