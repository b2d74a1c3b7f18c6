// SPDX-License-Identifier: Apache-2.0

// Package deep is a small transformer that judges whether a text is an injection, in pure Go.
// It is slower than package local and finds more, so that it looks only at what package
// local is unsure of.
//
// The weights are a file of their own, which the program does not hold. A file is read only
// if its digest is known. A text is cut into pieces; the model reads windows of them, and
// the score of the text is that of its worst window.
package deep

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Model scores texts. It does not change and may be used at the same time.
type Model struct {
	shape
	Numbers
	digest  string
	size    int
	version string

	vocabulary *Vocabulary
	vectors    []int8    // of each piece
	scales     []float32 // of each vector
	place      []float32 // is added to the vector at each place of a window
	layers     []layer
	last       norm
	head       []float32
	bias       float32
}

// A shape is the size of everything in a file.
type shape struct{ pieces, width, depth, inner, window, stride int }

// Numbers say what the logit of the model means beside the score of the fast one.
type Numbers struct {
	// Limit is the score from which a text counts as an injection by default.
	Limit float32
	// Low and High are the scores of the fast model between which the deep one looks.
	Low, High float32
	// The score is the logistic function of Fast times the logit of the fast model, plus
	// Deep times that of the deep one, plus Bias. Below and Above stand for the logit of
	// the deep model where it has not looked.
	Fast, Deep, Bias, Below, Above float32
}

// A layer is attention and two matrices with a ramp between them.
type layer struct {
	before, between    norm
	qkv, out, up, down matrix
}

type norm struct{ gain, bias []float32 }

// A matrix has a row for each number that it puts out.
type matrix struct {
	rows, cols int
	weights    []int16 // of 8 bits each; the kernels multiply numbers of 16
	scales     []float32
	bias       []float32
}

const (
	magic   = "PELLUCID-DEEP\x00\x00\x00"
	form    = 1
	headLen = len(magic) + 4 + 6*4 + 8*4 + 16
	maxFile = 64 << 20
	// largest bounds the numbers of a file, so that products of them stay finite.
	largest = 1e4
)

// What is wrong with a file.
var (
	ErrDigest = errors.New("deep: the file is not the one whose digest is known")
	errModel  = errors.New("deep: not a model of this form")
)

// Published are the digests (SHA-256) of the files that were published with the program.
var Published = []string{
	"336610875ce9abe5b1f1cc6c017a1b67611fca3ff644221015e9a32f7ca26ed8",
}

// Digest is how a file is named: SHA-256, in lower case.
func Digest(b []byte) string {
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}

// Open reads the file at path. digest is the one it must have; "" stands for one of
// Published. Nothing of a file with another digest is read into a model.
func Open(path, digest string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("deep: open %s: %w", finding.Quote(path), reason(err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("deep: read %s: %w", finding.Quote(path), reason(err))
	}
	if len(b) > maxFile {
		return nil, errModel
	}
	got := Digest(b)
	if known := digest; known == "" {
		for _, p := range Published {
			if p == got {
				return parse(b, got)
			}
		}
		return nil, fmt.Errorf("%w: it has sha256:%s, which is no published file's; name the digest to use it", ErrDigest, got)
	} else if known != got {
		return nil, fmt.Errorf("%w: it has sha256:%s", ErrDigest, got)
	}
	return parse(b, got)
}

// reason is err without the path, which the caller quotes.
func reason(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Digest is that of the file.
func (m *Model) Digest() string { return m.digest }

// Size is that of the file, in bytes.
func (m *Model) Size() int { return m.size }

// Version names the model: its form and its file.
func (m *Model) Version() string { return fmt.Sprintf("deep-%d-%s", form, m.digest[:12]) }

// A reader takes the parts of a file one after the other. After an error it gives nothing.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// floats are n numbers between least and largest.
func (r *reader) floats(n int, least float32) []float32 {
	b := r.take(4 * n)
	if b == nil {
		return nil
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if !(out[i] >= least && out[i] <= largest) { // NaN too
			r.bad = true
			return nil
		}
	}
	return out
}

func (r *reader) norm(n int) norm {
	return norm{r.floats(n, -largest), r.floats(n, -largest)}
}

func (r *reader) matrix(rows, cols int) matrix {
	m := matrix{rows: rows, cols: cols, scales: r.floats(rows, 0)}
	b := r.take(rows * cols)
	m.bias = r.floats(rows, -largest)
	if r.bad {
		return matrix{}
	}
	m.weights = make([]int16, len(b))
	for i, w := range b {
		m.weights[i] = int16(int8(w))
	}
	return m
}

// parse reads a file as the trainer writes it; all numbers are little endian, and a number
// that is no integer is IEEE 754 of 32 bits:
//
//	16 bytes  "PELLUCID-DEEP\x00\x00\x00"
//	 4 bytes  form
//	24 bytes  pieces, width, layers, inner width, window, stride
//	32 bytes  Numbers
//	16 bytes  version, ASCII, filled up with zeros
//	          of each piece: its length in one byte, and its text
//	          the scores of the pieces
//	          the scales of their vectors, and the vectors, one byte a number
//	          what is added at each place of a window with its two ends
//	          of each layer: gain and bias of a norm; the matrices qkv and out; gain and
//	          bias of a norm; the matrices up and down. A matrix is the scales of its
//	          rows, the rows, one byte a number, and the bias of each row
//	          gain and bias of the last norm, the head, its bias
func parse(b []byte, digest string) (*Model, error) {
	if len(b) < headLen || string(b[:len(magic)]) != magic || binary.LittleEndian.Uint32(b[len(magic):]) != form {
		return nil, errModel
	}
	m := &Model{digest: digest, size: len(b)}
	r := &reader{b: b[len(magic)+4:]}
	var n [6]int
	for i := range n {
		n[i] = int(binary.LittleEndian.Uint32(r.take(4)))
	}
	m.shape = shape{n[0], n[1], n[2], n[3], n[4], n[5]}
	x := r.floats(8, -largest)
	label := r.take(16)
	if r.bad || !m.shape.usable() {
		return nil, errModel
	}
	m.Numbers = Numbers{x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]}
	if !m.Numbers.usable() {
		return nil, errModel
	}
	for len(label) > 0 && label[0] > ' ' && label[0] < 0x7f {
		m.version, label = m.version+string(label[0]), label[1:]
	}
	if err := m.read(r); err != nil {
		return nil, err
	}
	return m, nil
}

// read takes everything behind the head.
func (m *Model) read(r *reader) (err error) {
	texts := make([]string, m.pieces)
	for i := range texts {
		n := r.take(1)
		if n == nil {
			return errModel
		}
		texts[i] = string(r.take(int(n[0])))
	}
	scores := r.floats(m.pieces, -largest)
	if r.bad {
		return errModel
	}
	if m.vocabulary, err = NewVocabulary(texts, scores); err != nil {
		return err
	}
	m.scales = r.floats(m.pieces, 0)
	for _, w := range r.take(m.pieces * m.width) {
		m.vectors = append(m.vectors, int8(w))
	}
	m.place = r.floats((m.window+2)*m.width, -largest)
	for range m.depth {
		var l layer
		l.before, l.qkv, l.out = r.norm(m.width), r.matrix(3*m.width, m.width), r.matrix(m.width, m.width)
		l.between, l.up, l.down = r.norm(m.width), r.matrix(m.inner, m.width), r.matrix(m.width, m.inner)
		if r.bad {
			return errModel
		}
		m.layers = append(m.layers, l)
	}
	m.last, m.head = r.norm(m.width), r.floats(2*m.width, -largest)
	bias := r.floats(1, -largest)
	if r.bad || len(r.b) != 0 {
		return errModel
	}
	m.bias = bias[0]
	return nil
}

// usable bounds what a file can make the program compute and hold.
func (s shape) usable() bool {
	return s.pieces > specials && s.pieces <= maxPieces && s.width >= headWidth && s.width <= 512 && s.width%headWidth == 0 &&
		s.depth >= 1 && s.depth <= 12 && s.inner >= 16 && s.inner <= 2048 && s.inner%16 == 0 &&
		s.window >= 8 && s.window <= 254 && s.stride >= 1 && s.stride <= s.window
}

func (n Numbers) usable() bool {
	return n.Limit > 0 && n.Limit < 1 && n.Low >= 0 && n.Low <= n.High && n.High <= 1 && n.Fast >= 0 && n.Deep >= 0
}
