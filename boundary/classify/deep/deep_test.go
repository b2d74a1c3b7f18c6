// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"bytes"
	"encoding/binary"
	"errors"
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
	words  []string // pieces beside the single letters
	random *rand.Rand
	b      []byte
}

func (f *formOf) numbers(n int, size float32) {
	for range n {
		f.b = binary.LittleEndian.AppendUint32(f.b, math.Float32bits((f.random.Float32()*2-1)*size))
	}
}

func (f *formOf) same(n int, x float32) {
	for range n {
		f.b = binary.LittleEndian.AppendUint32(f.b, math.Float32bits(x))
	}
}

func (f *formOf) matrix(rows, cols int) {
	f.same(rows, .002)
	for range rows * cols {
		f.b = append(f.b, byte(f.random.UintN(256)))
	}
	f.numbers(rows, .1)
}

// write makes a file of random weights. It has a piece for each letter of printable ASCII.
func (f *formOf) write() []byte {
	f.random = rand.New(rand.NewPCG(1, 2))
	pieces := append([]string{"", "", "", space}, f.words...)
	for c := byte('!'); c <= '~'; c++ {
		pieces = append(pieces, string(rune(c)))
	}
	f.pieces = len(pieces)
	f.b = append([]byte(nil), magic...)
	for _, n := range []int{form, f.pieces, f.width, f.depth, f.inner, f.window, f.stride} {
		f.b = binary.LittleEndian.AppendUint32(f.b, uint32(n))
	}
	for _, x := range []float32{.5, .1, .9, .5, .5, 0, -4, 4} {
		f.same(1, x)
	}
	f.b = append(f.b, "test\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	for _, p := range pieces {
		f.b = append(append(f.b, byte(len(p))), p...)
	}
	for i, p := range pieces {
		f.same(1, -float32(min(i, 1))*float32(10-len(p)))
	}
	f.same(f.pieces, .01)
	for range f.pieces * f.width {
		f.b = append(f.b, byte(f.random.UintN(256)))
	}
	f.numbers((f.window+2)*f.width, .1)
	for range f.depth {
		f.same(f.width, 1)
		f.numbers(f.width, .1)
		f.matrix(3*f.width, f.width)
		f.matrix(f.width, f.width)
		f.same(f.width, 1)
		f.numbers(f.width, .1)
		f.matrix(f.inner, f.width)
		f.matrix(f.width, f.inner)
	}
	f.same(f.width, 1)
	f.numbers(f.width, .1)
	f.numbers(2*f.width+1, .3)
	return f.b
}

func small() *formOf {
	return &formOf{shape: shape{width: 64, depth: 2, inner: 96, window: 16, stride: 10}, words: []string{"ignore", space + "the"}}
}

func mustParse(t testing.TB, b []byte) *Model {
	t.Helper()
	m, err := parse(b, Digest(b))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDot(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range [][3]int{{2, 4, 16}, {98, 384, 128}, {98, 112, 32}, {98, 32, 112}, {6, 12, 2048}} {
		m, n, k := s[0], s[1], s[2]
		a, b := make([]int16, m*k), make([]int16, n*k)
		for i := range a {
			a[i] = int16(r.IntN(2*top+1) - top)
		}
		for i := range b {
			b[i] = int16(int8(r.UintN(256)))
		}
		got, want := make([]int32, m*n), make([]int32, m*n)
		dot(got, a, b, m, n, k)
		dotPlain(want, a, b, m, n, k)
		if !slices.Equal(got, want) {
			t.Errorf("%v: the two kernels differ", s)
		}
	}
}

func FuzzDot(f *testing.F) {
	f.Add([]byte("numbers of any size\xff\x7f\x00\x80"), byte(2), byte(1), byte(3))
	f.Fuzz(func(t *testing.T, seed []byte, pairs, cols, steps byte) {
		m, n, k := 2*(int(pairs%8)+1), 4*(int(cols%8)+1), 16*(int(steps%8)+1)
		a, b := make([]int16, m*k), make([]int16, n*k)
		for i := range a {
			a[i] = at(seed, 2*i)
		}
		for i := range b {
			b[i] = at(seed, 2*i+1)
		}
		got, want := make([]int32, m*n), make([]int32, m*n)
		dot(got, a, b, m, n, k)
		dotPlain(want, a, b, m, n, k)
		if !slices.Equal(got, want) {
			t.Errorf("the two kernels differ: %v, %v", got, want)
		}
	})
}

// at is a number of two bytes of a seed that repeats, and of 0 of an empty one.
func at(seed []byte, i int) int16 {
	if len(seed) == 0 {
		return 0
	}
	return int16(seed[i%len(seed)]) | int16(seed[(i*7+1)%len(seed)])<<8
}

func TestOpen(t *testing.T) {
	good := small().write()
	path := filepath.Join(t.TempDir(), "model.bin")
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path, Digest(good))
	if err != nil {
		t.Fatal(err)
	}
	if m.Size() != len(good) || m.Digest() != Digest(good) || !strings.HasPrefix(m.Version(), "deep-1-") {
		t.Errorf("size %d, digest %s, version %s", m.Size(), m.Digest(), m.Version())
	}
	if _, err := Open(path, ""); !errors.Is(err, ErrDigest) {
		t.Errorf("a file that was not published, without its digest: %v", err)
	}
	bad := bytes.Clone(good)
	bad[len(bad)-9]++
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Digest(good)); !errors.Is(err, ErrDigest) {
		t.Errorf("a changed file: %v", err)
	}
	if _, err := Open(path+"2", ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	good := small().write()
	set := func(at int, with ...byte) []byte {
		return append(append(bytes.Clone(good[:at]), with...), good[at+len(with):]...)
	}
	notNumber := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	endless := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.Inf(1))))
	scale := bytes.Index(good, binary.LittleEndian.AppendUint32(nil, math.Float32bits(.01)))
	for name, b := range map[string][]byte{
		"empty":           nil,
		"other magic":     set(0, 'Q'),
		"other form":      set(len(magic), 9),
		"no width":        set(len(magic)+8, 0, 0, 0, 0),
		"huge width":      set(len(magic)+8, 0, 0, 0, 0x20),
		"huge vocabulary": set(len(magic)+4, 0xff, 0xff, 0xff, 0x7f),
		"stride of 0":     set(len(magic)+24, 0, 0, 0, 0),
		"limit NaN":       set(len(magic)+28, notNumber...),
		"scale NaN":       set(scale, notNumber...),
		"scale infinite":  set(scale, endless...),
		"cut":             good[:len(good)-1],
		"longer":          append(bytes.Clone(good), 0),
	} {
		if _, err := parse(b, Digest(b)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	tiny := &formOf{shape: shape{width: 32, depth: 1, inner: 16, window: 8, stride: 8}}
	f.Add(tiny.write())
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b, Digest(b))
		if err != nil {
			return
		}
		m.Logit("any text that has more pieces than one window can hold, ignore the rest")
	})
}

// The plain kernel and the other give the same logit, and a text of any length ends.
func TestLogit(t *testing.T) {
	m := mustParse(t, small().write())
	for _, text := range []string{"", " ", "a", "ignore the rest", strings.Repeat("ignore the rest ", 10), "\xff\xfe\x00", "\u0627\u0644\u0639", strings.Repeat("x", 100_000)} {
		x := m.Logit(text)
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			t.Errorf("%.20q: %v", text, x)
		}
		if y := m.Logit(text); x != y {
			t.Errorf("%.20q: %v, then %v", text, x, y)
		}
	}
}

func TestCut(t *testing.T) {
	m := mustParse(t, small().write())
	v := m.vocabulary
	text := func(ids []int32) string {
		var out []string
		for _, id := range ids {
			for p := range m.pieces {
				if int32(p) == id {
					out = append(out, names(m)[p])
				}
			}
		}
		return strings.Join(out, "|")
	}
	for in, want := range map[string]string{
		"":                     "",
		" \t\n":                "",
		"ignore":               space + "|ignore",
		"the\u00a0\x00 the":    space + "the|" + space + "the",
		"\u4f60":               space + "|?",
		"ab\xffc":              space + "|a|b|" + space + "|c",
		"the " + space + "the": space + "the|" + space + "|" + space + "the",
	} {
		ids, n := v.Cut(nil, in, 100)
		if got := text(ids); got != want || n != len(in) {
			t.Errorf("%q: %s, %d bytes; want %s", in, got, n, want)
		}
	}
	if ids, n := v.Cut(nil, strings.Repeat("the ", 1000), 10); len(ids) != 10 || n > 50 {
		t.Errorf("%d pieces of %d bytes", len(ids), n)
	}
}

// names are the pieces by number, for messages.
func names(m *Model) []string {
	f := small()
	out := append([]string{"^", "$", "?", space}, f.words...)
	for c := byte('!'); c <= '~'; c++ {
		out = append(out, string(rune(c)))
	}
	return out
}

func FuzzCut(f *testing.F) {
	m, err := parse(small().write(), "x")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("ignore the rest", 20)
	f.Add("\xff\u2581\u0301 \u4f60", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(0, min(most, 10_000))
		ids, n := m.vocabulary.Cut(nil, text, most)
		if len(ids) > most || n < 0 || n > len(text) {
			t.Fatalf("%d pieces of at most %d, %d bytes of %d", len(ids), most, n, len(text))
		}
		for _, id := range ids {
			if id < Unknown || int(id) >= m.pieces {
				t.Fatalf("piece %d", id)
			}
		}
	})
}

func BenchmarkLogit(b *testing.B) {
	f := &formOf{shape: shape{width: 128, depth: 2, inner: 512, window: 96, stride: 64}}
	m := mustParse(b, f.write())
	text := strings.Repeat("abcdefghi ", 30) // 300 pieces
	if ids, _ := m.vocabulary.Cut(nil, text, 1000); len(ids) != 300 {
		b.Fatalf("%d pieces", len(ids))
	}
	for b.Loop() {
		m.Logit(text)
	}
}
