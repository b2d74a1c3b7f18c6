// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A form is what the file of a test holds.
type formOf struct {
	shape
	random  *rand.Rand
	tensors map[string]made
}

type made struct {
	kind string
	dims []int
	data []byte
}

func (f *formOf) floats(name string, size float32, dims ...int) {
	var b []byte
	n := 1
	for _, d := range dims {
		n *= d
	}
	for range n {
		x := (f.random.Float32()*2 - 1) * size
		if strings.HasSuffix(name, ".gain") {
			x = 1
		}
		if strings.HasSuffix(name, ".scale") {
			x = size
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	f.tensors[name] = made{"F32", dims, b}
}

func (f *formOf) weights(name string, rows, cols int) {
	b := make([]byte, rows*cols)
	for i := range b {
		b[i] = byte(f.random.UintN(256))
	}
	f.tensors[name+".weight"] = made{"I8", []int{rows, cols}, b}
	f.floats(name+".scale", .002, rows)
	if name != "word" {
		f.floats(name+".bias", .1, rows)
	}
}

// words are the pieces of a file: some words and each letter of printable ASCII.
func words() []string {
	pieces := []string{"", "", "", space, "ignore", space + "the"}
	for c := byte('!'); c <= '~'; c++ {
		pieces = append(pieces, string(rune(c)))
	}
	return pieces
}

// small makes the tensors of a file of random weights.
func small() *formOf {
	pieces := words()
	f := &formOf{shape: shape{len(pieces), 64, 2, 96, 2, 16, 10, 24}, random: rand.New(rand.NewPCG(1, 2)), tensors: map[string]made{}}
	var lengths, scores []byte
	for i, p := range pieces {
		lengths = append(lengths, byte(len(p)))
		scores = binary.LittleEndian.AppendUint32(scores, math.Float32bits(-float32(min(i, 1))*float32(10-len(p))))
	}
	f.tensors["vocabulary.text"] = made{"U8", []int{len(strings.Join(pieces, ""))}, []byte(strings.Join(pieces, ""))}
	f.tensors["vocabulary.length"] = made{"U8", []int{len(pieces)}, lengths}
	f.tensors["vocabulary.score"] = made{"F32", []int{len(pieces)}, scores}
	f.weights("word", f.Pieces, f.Width)
	f.floats("place", .1, f.Places, f.Width)
	norm := func(name string) {
		f.floats(name+".gain", 1, f.Width)
		f.floats(name+".bias", .1, f.Width)
	}
	norm("embed")
	for i := range f.Layers {
		at := fmt.Sprintf("layer.%d.", i)
		f.weights(at+"qkv", 3*f.Width, f.Width)
		f.weights(at+"out", f.Width, f.Width)
		f.weights(at+"up", f.Inner, f.Width)
		f.weights(at+"down", f.Width, f.Inner)
		norm(at + "norm1")
		norm(at + "norm2")
	}
	f.floats("head.weight", .3, 2*f.Width)
	f.floats("head.bias", .3, 1)
	return f
}

// header is what stands before the tensors.
func (f *formOf) header() map[string]any {
	s, _ := json.Marshal(map[string]int{"pieces": f.Pieces, "width": f.Width, "layers": f.Layers, "inner": f.Inner, "heads": f.Heads, "window": f.Window, "stride": f.Stride, "places": f.Places})
	h := map[string]any{"__metadata__": map[string]string{"form": form, "shape": string(s), "begin": "0", "end": "1", "unknown": "2"}}
	at := 0
	for _, name := range slices.Sorted(maps.Keys(f.tensors)) {
		t := f.tensors[name]
		h[name] = map[string]any{"dtype": t.kind, "shape": t.dims, "data_offsets": []int{at, at + len(t.data)}}
		at += len(t.data)
	}
	return h
}

func (f *formOf) write() []byte { return f.under(f.header()) }

// under is the file with another header.
func (f *formOf) under(h any) []byte {
	head, _ := json.Marshal(h)
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)
	for _, name := range slices.Sorted(maps.Keys(f.tensors)) {
		b = append(b, f.tensors[name].data...)
	}
	return b
}

func mustParse(t testing.TB, b []byte) *Model {
	t.Helper()
	m, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOpen(t *testing.T) {
	good := small().write()
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Find(path, Digest(good))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Find(path, Digest(good))
	if err != nil || again != f || f.Digest() != Digest(good) || f.Size() != int64(len(good)) || f.model != nil {
		t.Errorf("one file is %p and %p, %v, %s", f, again, err, f.Digest())
	}
	m, err := f.Model()
	if second, _ := f.Model(); err != nil || m != second {
		t.Errorf("the model is read twice, or not: %v", err)
	}
	if _, err := Find(path, ""); !errors.Is(err, ErrDigest) {
		t.Errorf("a file that was not published, without its digest: %v", err)
	}
	bad := bytes.Clone(good)
	bad[len(bad)-9]++
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func() error{
		func() error { _, err := Open(path, Digest(good)); return err },
		func() error { _, err := Find(path, Digest(good)); return err },
	} {
		if err := open(); !errors.Is(err, ErrDigest) {
			t.Errorf("a changed file: %v", err)
		}
	}
	if _, err := Find(path+"2", ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Open(t.TempDir(), Digest(nil)); err == nil {
		t.Error("a folder is a model")
	}
}

// TestParseRefuses: every other header and every other number of the right form is refused.
func TestParseRefuses(t *testing.T) {
	f := small()
	good := f.write()
	mustParse(t, bytes.Clone(good))
	of := func(h map[string]any, name string) map[string]any { return h[name].(map[string]any) }
	header := func(change func(h map[string]any)) []byte {
		h := f.header()
		change(h)
		return f.under(h)
	}
	meta := func(name, value string) []byte {
		return header(func(h map[string]any) { h["__metadata__"].(map[string]string)[name] = value })
	}
	shaped := func(name string, n int) []byte {
		var s map[string]int
		text := f.header()["__metadata__"].(map[string]string)["shape"]
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		s[name] = n
		b, _ := json.Marshal(s)
		return meta("shape", string(b))
	}
	number := func(name string, x float64) []byte {
		g := small()
		binary.LittleEndian.PutUint32(g.tensors[name].data, math.Float32bits(float32(x)))
		return g.write()
	}
	for name, b := range map[string][]byte{
		"empty":              nil,
		"no header":          good[:8],
		"header of 100 MB":   append(binary.LittleEndian.AppendUint64(nil, 100<<20), good[8:]...),
		"header beyond 2^63": append(binary.LittleEndian.AppendUint64(nil, 1<<63+5), good[8:]...),
		"other form":         meta("form", "pellucid-detector-2"),
		"other mark":         meta("begin", "7"),
		"no shape":           meta("shape", ""),
		"no width":           shaped("width", 0),
		"width of 2^31":      shaped("width", 1<<31),
		"layers of 2^40":     shaped("layers", 1<<40),
		"other heads":        shaped("heads", 1),
		"fewer pieces":       shaped("pieces", f.Pieces-1),
		"stride of 0":        shaped("stride", 0),
		"window of 255":      shaped("window", 255),
		"a member more":      shaped("more", 1),
		"a tensor more": header(func(h map[string]any) {
			h["more"] = map[string]any{"dtype": "U8", "shape": []int{1}, "data_offsets": []int{0, 1}}
		}),
		"a tensor less":       header(func(h map[string]any) { delete(h, "embed.gain") }),
		"overlap":             header(func(h map[string]any) { of(h, "embed.gain")["data_offsets"] = []int{0, f.Width * 4} }),
		"gap":                 header(func(h map[string]any) { of(h, "head.bias")["data_offsets"] = of(h, "head.weight")["data_offsets"] }),
		"backwards":           header(func(h map[string]any) { of(h, "embed.gain")["data_offsets"] = []int{f.Width * 8, f.Width * 4} }),
		"beyond the end":      header(func(h map[string]any) { of(h, "word.weight")["data_offsets"] = []int{1 << 40, 1<<40 + 4} }),
		"product beyond 2^31": header(func(h map[string]any) { of(h, "word.weight")["shape"] = []int{1 << 20, 1 << 20} }),
		"other type":          header(func(h map[string]any) { of(h, "word.weight")["dtype"] = "U8" }),
		"other shape":         header(func(h map[string]any) { of(h, "word.weight")["shape"] = []int{f.Width, f.Pieces} }),
		"three dimensions":    header(func(h map[string]any) { of(h, "word.weight")["shape"] = []int{f.Pieces, f.Width, 1} }),
		"unknown member":      header(func(h map[string]any) { of(h, "word.weight")["more"] = 1 }),
		"member twice":        bytes.Replace(good, []byte(`"embed.bias"`), []byte(`"embed.gain"`), 1),
		"scale NaN":           number("layer.0.up.scale", math.NaN()),
		"scale infinite":      number("word.scale", math.Inf(1)),
		"scale below 0":       number("layer.1.qkv.scale", -1e-9),
		"gain NaN":            number("layer.1.norm2.gain", math.NaN()),
		"likely above 1":      number("vocabulary.score", 1),
		"longer":              append(bytes.Clone(good), 0),
	} {
		if _, err := parse(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for at := range good { // the tensors by steps: each cut is refused by the header alone
		if at < 12_000 || at%97 == 0 || at > len(good)-200 {
			if _, err := parse(bytes.Clone(good[:at])); err == nil {
				t.Fatalf("cut at %d: accepted", at)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	good := small().write()
	f.Add(good[:binary.LittleEndian.Uint64(good)+8], uint32(len(good)))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), uint32(0))
	f.Fuzz(func(t *testing.T, head []byte, size uint32) {
		// The tensors of the good file, so that what is mutated is the header.
		b := bytes.Clone(head)
		if n := int(size) % (len(good) + 1); n > len(b) {
			b = append(b, good[len(b):n]...)
		}
		m, err := parse(b)
		if err != nil {
			return
		}
		if _, err := m.Logits(t.Context(), [][]int32{{3, 4}, {}}); err != nil {
			t.Fatal(err)
		}
	})
}
