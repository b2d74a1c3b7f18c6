// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// form is what the metadata of a file say.
const form = "pellucid-detector-1"

// Bounds of a file in the format safetensors: 8 bytes with the length of a header of JSON, which
// names the type, the shape and the place of each tensor, and the tensors.
const (
	maxHeader = 64 << 10
	// largest bounds the numbers of a file, so that products of them stay finite.
	largest = 1e4
)

var errModel = errors.New("deep: not a model of this form")

// A shape is the size of everything in a file.
type shape struct{ Pieces, Width, Layers, Inner, Heads, Window, Stride, Places int }

// usable bounds what a file can make the program compute and hold.
func (s *shape) usable() bool {
	return s.Pieces > specials && s.Pieces <= maxPieces && s.Width >= headWidth && s.Width <= 512 && s.Width == s.Heads*headWidth &&
		s.Layers >= 1 && s.Layers <= 12 && s.Inner >= widest && s.Inner <= 2048 && s.Inner%widest == 0 &&
		s.Window >= 8 && s.Window <= batchPlaces-2 && s.Stride >= 1 && s.Stride <= s.Window && s.Places >= s.Window+2 && s.Places <= 256
}

// A file is the tensors of a file by name. What was taken is no longer there.
type file struct {
	tensors map[string]tensor
	bad     bool
}

type tensor struct {
	kind       string
	dims       [2]int // the second is 0 for a list
	begin, end int
	data       []byte
}

// parse reads a file whose digest is known. The weights are used where they lie: b must not change
// any more.
func parse(b []byte) (*Model, error) {
	f, meta, err := header(b)
	if err != nil {
		return nil, err
	}
	m := &Model{}
	for name, want := range map[string]string{"form": form, "begin": fmt.Sprint(Begin), "end": fmt.Sprint(End), "unknown": fmt.Sprint(Unknown)} {
		if meta.Get(name).Text() != want {
			return nil, errModel
		}
	}
	if !m.shape.read(meta.Get("shape").Text()) {
		return nil, errModel
	}
	texts := f.bytes("U8", "vocabulary.text", -1, 0)
	lengths, scores := f.bytes("U8", "vocabulary.length", m.Pieces, 0), f.floats("vocabulary.score", -largest, m.Pieces, 0)
	m.vectors, m.scales = f.bytes("I8", "word.weight", m.Pieces, m.Width), f.floats("word.scale", 0, m.Pieces, 0)
	m.place = f.floats("place", -largest, m.Places, m.Width)
	m.first = f.norm("embed", m.Width)
	for i := 0; i < m.Layers && !f.bad; i++ {
		at := fmt.Sprintf("layer.%d.", i)
		m.layers = append(m.layers, layer{
			qkv: f.matrix(at+"qkv", 3*m.Width, m.Width), out: f.matrix(at+"out", m.Width, m.Width), norm1: f.norm(at+"norm1", m.Width),
			up: f.matrix(at+"up", m.Inner, m.Width), down: f.matrix(at+"down", m.Width, m.Inner), norm2: f.norm(at+"norm2", m.Width)})
	}
	m.head = f.floats("head.weight", -largest, 2*m.Width, 0)
	if bias := f.floats("head.bias", -largest, 1, 0); !f.bad {
		m.bias = bias[0]
	}
	if f.bad || len(f.tensors) > 0 {
		return nil, errModel
	}
	m.zeros, m.ones = make([]float32, headWidth), make([]float32, headWidth)
	for i := range m.ones {
		m.ones[i] = 1
	}
	m.vocabulary, err = vocabulary(texts, lengths, scores)
	if err == nil {
		m.pack()
	}
	return m, err
}

// header reads the header. The tensors have to fill what is behind it, each byte once.
func header(b []byte) (*file, strictjson.Value, error) {
	var none strictjson.Value
	if len(b) < 8 {
		return nil, none, errModel
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxHeader || n > uint64(len(b)-8) {
		return nil, none, errModel
	}
	var doc strictjson.Doc
	if err := doc.Reset(b[8:8+n], strictjson.Limits{Depth: 4, Values: 8192}); err != nil {
		return nil, none, errModel
	}
	data := b[8+n:]
	f, begins, total := &file{tensors: map[string]tensor{}}, map[int]string{}, 0
	for name, v := range doc.Root().Members() {
		if name.Text() == "__metadata__" {
			continue
		}
		t, ok := tensorOf(v, len(data))
		if _, twice := begins[t.begin]; !ok || twice {
			return nil, none, errModel
		}
		t.data = data[t.begin:t.end:t.end]
		f.tensors[name.Text()], begins[t.begin] = t, name.Text()
	}
	for range begins { // from each tensor to the one behind it
		next, ok := begins[total]
		if !ok {
			return nil, none, errModel
		}
		total = f.tensors[next].end
	}
	if total != len(data) {
		return nil, none, errModel
	}
	return f, doc.Root().Get("__metadata__"), nil
}

// tensorOf is what a header says of a tensor that is not empty and lies within so many bytes.
func tensorOf(v strictjson.Value, most int) (t tensor, ok bool) {
	dims, at := v.Get("shape"), v.Get("data_offsets")
	if v.Len() != 3 || dims.Kind() != '[' || dims.Len() < 1 || dims.Len() > 2 || at.Kind() != '[' || at.Len() != 2 {
		return t, false
	}
	numbers := func(list strictjson.Value, dst ...*int) bool {
		i := 0
		for e := range list.Elements() {
			n, whole := e.Int64()
			if !whole || n < 0 || n > int64(most) {
				return false
			}
			*dst[i] = int(n)
			i++
		}
		return true
	}
	t.kind = v.Get("dtype").Text()
	ok = numbers(dims, &t.dims[0], &t.dims[1]) && numbers(at, &t.begin, &t.end) && t.begin < t.end
	return t, ok
}

// bytes takes the tensor of that name, type and shape; a list has no columns, and -1 stands for any
// length of one.
func (f *file) bytes(kind, name string, rows, cols int) []byte {
	t, ok := f.tensors[name]
	delete(f.tensors, name)
	if rows < 0 {
		rows = len(t.data)
	}
	size := rows * max(cols, 1)
	if kind == "F32" {
		size *= 4
	}
	if !ok || t.kind != kind || t.dims != [2]int{rows, cols} || len(t.data) != size {
		f.bad = true
		return nil
	}
	return t.data
}

// floats takes a tensor of numbers between least and largest.
func (f *file) floats(name string, least float32, rows, cols int) []float32 {
	b := f.bytes("F32", name, rows, cols)
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if !(out[i] >= least && out[i] <= largest) { // NaN too
			f.bad = true
		}
	}
	return out
}

func (f *file) norm(name string, n int) norm {
	return norm{f.floats(name+".gain", -largest, n, 0), f.floats(name+".bias", -largest, n, 0)}
}

func (f *file) matrix(name string, rows, cols int) matrix {
	return matrix{rows, cols, f.bytes("I8", name+".weight", rows, cols), f.floats(name+".scale", 0, rows, 0), f.floats(name+".bias", -largest, rows, 0)}
}

// read reads a shape of JSON that has each of its numbers and nothing else.
func (s *shape) read(text string) bool {
	var doc strictjson.Doc
	if doc.Reset([]byte(text), strictjson.Limits{Depth: 1, Values: 64}) != nil {
		return false
	}
	want := map[string]*int{"pieces": &s.Pieces, "width": &s.Width, "layers": &s.Layers, "inner": &s.Inner,
		"heads": &s.Heads, "window": &s.Window, "stride": &s.Stride, "places": &s.Places}
	for name, to := range want {
		n, ok := doc.Root().Get(name).Int64()
		if !ok || n < 0 || n > maxFile {
			return false
		}
		*to = int(n)
	}
	return doc.Root().Len() == len(want) && s.usable()
}

// vocabulary cuts the texts of the pieces apart.
func vocabulary(text, lengths []byte, scores []float32) (*Vocabulary, error) {
	pieces := make([]string, len(lengths))
	for i, n := range lengths {
		if int(n) > len(text) {
			return nil, errModel
		}
		pieces[i], text = string(text[:n]), text[n:]
	}
	if len(text) > 0 {
		return nil, errModel
	}
	return NewVocabulary(pieces, scores)
}

// pack makes panels of the weights.
func (m *Model) pack() {
	row := make([]byte, panelWidth*max(m.Width, m.Inner))
	for i := range m.layers {
		l := &m.layers[i]
		for _, a := range []*matrix{&l.qkv, &l.out, &l.up, &l.down} {
			for at := 0; at < len(a.weights); at += panelWidth * a.cols {
				panel := a.weights[at:][:panelWidth*a.cols]
				rows := row[:copy(row, panel)]
				for c := range panelWidth {
					for t, v := range rows[c*a.cols:][:a.cols] {
						panel[t/2*2*panelWidth+2*c+t%2] = v
					}
				}
			}
		}
	}
}
