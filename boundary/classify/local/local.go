// SPDX-License-Identifier: Apache-2.0

// Package local is a linear model of what injections look like, in pure Go and
// without a download. It refines; it is never a boundary.
//
// A text is read as tokens; each has features (the word, pairs and triples with
// those before it, runs of five bytes in it) that are hashed into 2^20 weights of
// one byte, and the kinds of words that orders to models are made of, with their
// pairs. The score is that of the worst window of 24 or 64 tokens. lab/MODELS.md says how
// it was trained, on what, and where it fails.
package local

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// A Model scores texts. It does not change and may be used at the same time.
type Model struct {
	weights []int8 // of Buckets
	scale   float32
	bias    float32
	version string

	calibration Calibration
}

//go:embed weights.bin
var weights []byte

// Default is the model that comes with the program.
var Default = sync.OnceValue(func() *Model {
	m, err := parse(weights)
	if err != nil {
		panic("local: the weights that come with the program: " + err.Error()) // a test reads them
	}
	return m
})

// A Score is what a Model says of a text.
type Score struct {
	// P is a calibrated probability: of texts with the score 0.8, in any script and of any
	// length, four in five are injections where half of all texts are. Where fewer are, as in
	// most places, it is a likeness and no probability.
	P float32
	// Start and End are the bytes of the window that P is of; 0, 0 if the text has
	// no token.
	Start, End int
}

const magic = "PELLUCID-LINEAR\x00"

const headerSize = len(magic) + 4 + 4 + 4 + 16 + calibrationSize

var errModel = errors.New("local: not a model of this form")

// parse reads weights as [Model.Bytes] writes them:
//
//	16 bytes  "PELLUCID-LINEAR\x00"
//	 4 bytes  form, little endian, as all numbers
//	 4 bytes  scale of a weight, IEEE 754
//	 4 bytes  bias, IEEE 754
//	16 bytes  version, ASCII, filled up with zeros
//	72 bytes  slope and shift of each sort of texts, IEEE 754
//	28 bytes  limits for Rates, IEEE 754
//	 n bytes  DEFLATE (RFC 1951) of 2^17 bytes with a bit for each weight, the lowest
//	          first: whether it is not 0; and of those that are not 0, in order
func parse(b []byte) (*Model, error) {
	if len(b) < headerSize || string(b[:len(magic)]) != magic || binary.LittleEndian.Uint32(b[len(magic):]) != form {
		return nil, errModel
	}
	b = b[len(magic)+4:]
	m := &Model{weights: make([]int8, Buckets),
		scale: math.Float32frombits(binary.LittleEndian.Uint32(b)), bias: math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))}
	m.calibration.read(b[24:])
	if !finite(m.scale) || !finite(m.bias) || m.scale <= 0 || !m.calibration.usable() {
		return nil, errModel
	}
	v := b[8:24]
	n := 0
	for n < len(v) && v[n] > ' ' && v[n] < 0x7f {
		n++
	}
	m.version = string(v[:n])
	packed := bytes.NewReader(b[24+calibrationSize:])
	b, err := io.ReadAll(io.LimitReader(flate.NewReader(packed), Buckets/8+Buckets+1))
	if err != nil || len(b) < Buckets/8 || packed.Len() > 0 {
		return nil, errModel
	}
	bit, b := b[:Buckets/8], b[Buckets/8:]
	for i := range m.weights {
		if bit[i/8]>>(i%8)&1 == 0 {
			continue
		}
		if len(b) == 0 || b[0] == 0 {
			return nil, errModel
		}
		m.weights[i], b = int8(b[0]), b[1:]
	}
	if len(b) > 0 {
		return nil, errModel
	}
	return m, nil
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }

// New makes a Model of trained weights: the logit of a window is bias plus the sum
// of its features' weights over [Norm] of their number.
func New(weights []float32, bias float32, c Calibration, version string) (*Model, error) {
	if len(weights) != Buckets || len(version) > 16 || !c.usable() {
		return nil, errModel
	}
	m := &Model{weights: make([]int8, Buckets), bias: bias, calibration: c, version: version}
	var most float32
	for _, w := range weights {
		most = max(most, w, -w)
	}
	if !finite(most) || !finite(bias) || most == 0 {
		return nil, fmt.Errorf("local: weights: %w", errModel)
	}
	m.scale = most / 127
	for i, w := range weights {
		m.weights[i] = int8(math.RoundToEven(float64(w / m.scale)))
	}
	return m, nil
}

// Bytes is the model as parse reads it.
func (m *Model) Bytes() []byte {
	b := append([]byte(nil), magic...)
	b = binary.LittleEndian.AppendUint32(b, form)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(m.scale))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(m.bias))
	var v [16]byte
	copy(v[:], m.version)
	b = m.calibration.append(append(b, v[:]...))
	bit := make([]byte, Buckets/8)
	var list []byte
	for i, w := range m.weights {
		if w != 0 {
			bit[i/8] |= 1 << (i % 8)
			list = append(list, byte(w))
		}
	}
	out := bytes.NewBuffer(b)
	z, _ := flate.NewWriter(out, flate.HuffmanOnly) // of a known level, into memory: no errors
	z.Write(bit)
	z.Write(list)
	z.Close()
	return out.Bytes()
}

// Version names the model: its form and the data it was trained on.
func (m *Model) Version() string { return fmt.Sprintf("linear-%d-%s", form, m.version) }

// floor is the number of features below which a window is not taken for a small
// one: two words say little.
const floor = 256

// Norm is the divisor of a sum over so many features.
func Norm(features int) float32 {
	if features <= floor {
		return 16 // its root
	}
	return float32(math.Sqrt(float64(features)))
}

// Score judges a text, which should be the normalised view of it: without hidden
// characters and with compatibility forms folded. Time is linear in its length and
// nothing is allocated.
func (m *Model) Score(text string) Score {
	var r Reader
	var c Count
	var s sums
	s.limit = math.MinInt32
	r.Reset(text)
	n := uint(0)
	// Weights are looked up for many tokens at once, since a look-up waits for memory.
	var features [8 * perToken]uint32
	var sum [len(features) + 1]int32 // of the weights up to a feature
	for more := true; more; {
		first, k := n, 0
		for ; n-first < kept-widest && k <= len(features)-perToken; n++ {
			if more = r.next((*[perToken]uint32)(features[k:])); !more {
				break
			}
			c.Add(&r)
			k += r.Count
			s.start[n%kept], s.end[n%kept], s.count[(n+1)%kept] = r.start, r.at, s.count[first%kept]+int32(k)
		}
		sum[0] = s.sum[first%kept]
		for i, f := range features[:k] {
			sum[i+1] = sum[i] + int32(m.weights[f])
		}
		for i := first + 1; i <= n; i++ {
			now := sum[s.count[i%kept]-s.count[first%kept]]
			s.sum[i%kept] = now
			if i >= short && now-s.sum[(i-short)%kept] > s.limit {
				s.raise(i-short, i)
			}
			if i >= widest && now-s.sum[(i-widest)%kept] > s.limit {
				s.raise(i-widest, i)
			}
		}
	}
	if n == 0 {
		return Score{}
	}
	if n < short {
		s.raise(0, n)
	}
	s.worst.P = m.calibration.score(s.worst.P*m.scale+m.bias, c.Sort())
	return s.worst
}

// kept is how many tokens are remembered: a widest window, and those whose weights are looked up
// together.
const kept = 2 * widest

// sums are those of the tokens before one, by its number.
type sums struct {
	start, end [kept]int
	count, sum [kept]int32 // of features and of their weights
	worst      Score       // of the windows so far
	limit      int32       // a window with no more than this sum is not worse
}

// raise makes the window of the tokens before to the worst if it is, or the first.
func (s *sums) raise(from, to uint) {
	from, last, to := from%kept, (to-1)%kept, to%kept
	p := float32(s.sum[to]-s.sum[from]) / Norm(int(s.count[to]-s.count[from]))
	if s.worst.End != 0 && p <= s.worst.P {
		return
	}
	s.worst = Score{p, s.start[from], s.end[last]}
	// Whatever the number of features: Norm is at least 16, and less than 64.
	s.limit = int32(math.Floor(float64(p * 16)))
	if p < 0 {
		s.limit = int32(math.Floor(float64(p * 64)))
	}
}
