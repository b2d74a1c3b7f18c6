// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestProofs(t *testing.T) {
	l := testLog(t, 700)
	keys := []*Key{l.signer.Key()}
	dir := Dir(l.export(t, false))
	for _, src := range []Source{l, dir} {
		for _, i := range []int64{0, 1, 255, 256, 511, 512, 698, 699} {
			p, err := Prove(t.Context(), src, i)
			if err != nil {
				t.Fatal(err)
			}
			back, err := ParseProof(p.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			got, err := back.Verify(keys, nil, 0)
			if err != nil || got.Index != i || !got.Signed || !bytes.Equal(back.Envelope, l.entries[i]) || got.Checkpoint.Size != 700 {
				t.Errorf("record %d: %+v, %v", i, got, err)
			}
		}
		for _, i := range []int64{-1, 700, 1 << 40} {
			if _, err := Prove(t.Context(), src, i); !errors.Is(err, ErrNotFound) {
				t.Errorf("record %d: %v", i, err)
			}
		}
	}
}

// TestProofFlips flips each bit of a proof: it must not hold any more.
func TestProofFlips(t *testing.T) {
	l := testLog(t, 5)
	keys := []*Key{l.signer.Key()}
	p, err := Prove(t.Context(), l, 3)
	if err != nil {
		t.Fatal(err)
	}
	b := p.Bytes()
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if p, err := ParseProof(b); err == nil {
				if _, err := p.Verify(keys, nil, 0); err == nil {
					t.Fatalf("byte %d, bit %d: still holds", i, bit)
				}
			}
			b[i] ^= 1 << bit
		}
	}
}

func TestProofAcrossRotation(t *testing.T) {
	l := testLog(t, 5)
	first := l.signer.Key()
	l.rotate(t, "second")
	l.integrate(t)
	l.add(t, message(9))
	l.integrate(t)
	p, err := Prove(t.Context(), l, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Verify([]*Key{first}, nil, 0); !errors.Is(err, errUnsigned) {
		t.Errorf("with the first key alone: %v", err)
	}
	if got, err := p.Verify([]*Key{l.signer.Key()}, nil, 0); err != nil || got.Signed {
		t.Errorf("with the second key alone: %+v, %v", got, err)
	}
	if got, err := p.Verify([]*Key{first, l.signer.Key()}, nil, 0); err != nil || !got.Signed {
		t.Errorf("with both: %+v, %v", got, err)
	}
}

func TestProofQuorum(t *testing.T) {
	l := testLog(t, 5)
	w := testWitness(t, "w.example")
	keys, known := []*Key{l.signer.Key()}, []*Witness{w.Witness()}
	p, err := Prove(t.Context(), l, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Verify(keys, known, 1); !errors.Is(err, errQuorum) {
		t.Errorf("error %v", err)
	}
	c, _ := readCheckpoint(p.Checkpoint)
	line, _ := w.Cosign(c, time.Unix(1700000000, 0))
	if p.Checkpoint, err = AddCosignature(p.Checkpoint, line, keys, known); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Verify(keys, known, 1); err != nil {
		t.Error(err)
	}
}

func TestParseProofRefuses(t *testing.T) {
	l := testLog(t, 5)
	p, _ := Prove(t.Context(), l, 3)
	good := string(p.Bytes())
	for _, tt := range []struct{ old, new string }{
		{"@v1", "@v2"}, {"index 3", "index 03"}, {"index 3", "index +3"}, {"extra ", "extra  "}, {"\n\n", "\n"}, {"index 3\n", "index 3\n\n"},
		{"index 3\n", "index 3\nAAAA\n"}, {"index 3", "index 99999999999999999999"},
		{"index 3\n", "index 3\n" + strings.Repeat("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", 64)},
	} {
		bad := strings.Replace(good, tt.old, tt.new, 1)
		if p, err := ParseProof([]byte(bad)); err == nil {
			if _, err = p.Verify([]*Key{l.signer.Key()}, nil, 0); err == nil {
				t.Errorf("%q in place of %q was accepted", tt.new, tt.old)
			}
		}
	}
}

func TestProveRefusesWrongTiles(t *testing.T) {
	l := testLog(t, 300)
	l.tiles[place{0, 1, 0}][3] ^= 1
	if p, err := Prove(t.Context(), l, 280); err == nil {
		t.Errorf("proved %+v from a wrong tile", p)
	}
	l = testLog(t, 300)
	l.entries[7] = l.entries[8]
	if _, err := Prove(t.Context(), l, 7); !errors.Is(err, errInclusion) {
		t.Errorf("error %v", err)
	}
}

func TestConsistency(t *testing.T) {
	l := newLog(t)
	var points []Checkpoint
	for i := 1; i < 600; i++ {
		l.add(t, message(i))
		if i%37 == 0 || i == 255 || i == 256 || i == 599 {
			l.integrate(t)
			c, _ := readCheckpoint(l.checkpoint)
			points = append(points, c)
		}
	}
	points = append([]Checkpoint{{origin, 0, new(Tree).Root()}}, points...)
	newest := points[len(points)-1]
	rapid.Check(t, func(t *rapid.T) {
		older := rapid.SampledFrom(points).Draw(t, "older")
		path, err := ProveConsistency(t.Context(), l, older.Size, newest)
		if err != nil {
			t.Fatal(err)
		}
		if err := VerifyConsistency(older, newest, path); err != nil {
			t.Fatalf("%d to %d: %v", older.Size, newest.Size, err)
		}
		other := older
		other.Root[5] ^= 1
		if VerifyConsistency(other, newest, path) == nil {
			t.Fatalf("%d to %d: another root is consistent", older.Size, newest.Size)
		}
		if older.Size > 0 && older.Size < newest.Size {
			path[rapid.IntRange(0, len(path)-1).Draw(t, "at")][0] ^= 1
			if VerifyConsistency(older, newest, path) == nil {
				t.Fatal("a wrong path holds")
			}
		}
	})
	if _, err := ProveConsistency(t.Context(), l, newest.Size+1, newest); err == nil {
		t.Error("a longer log is older")
	}
	stranger := points[1]
	stranger.Origin = "other.example"
	if VerifyConsistency(stranger, newest, nil) == nil || VerifyConsistency(newest, points[1], nil) == nil {
		t.Error("two that cannot be compared are consistent")
	}
	if !slices.Contains(points, newest) {
		t.Error("no newest")
	}
}
