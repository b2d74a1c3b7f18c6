// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestVerifyExport(t *testing.T) {
	for _, n := range []int{1, 2, 5, 255, 256, 257, 513, 700} {
		for _, openings := range []bool{false, true} {
			l := testLog(t, n)
			r := verify(t, l.export(t, openings), VerifyOptions{Keys: []*Key{l.signer.Key()}})
			if !r.OK() || len(r.NotChecked) > 0 {
				t.Fatalf("%d records: %q, not checked %q", n, problems(r), r.NotChecked)
			}
			if r.Records != int64(n) || r.Checkpoint.Size != int64(n) || r.Kinds[KeyInstalled] != 1 || r.Kinds[Message] != int64(n-1) {
				t.Errorf("%d records: report says %d, %v", n, r.Records, r.Kinds)
			}
			if openings && r.Openings != int64(n) {
				t.Errorf("%d records: %d openings hold", n, r.Openings)
			}
		}
	}
}

func TestVerifyEmptyLog(t *testing.T) {
	s := testSigner(t, "first")
	msg, err := SignCheckpoint(0, new(Tree).Root(), s)
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{"checkpoint": {Data: msg}}
	if r := verify(t, dir, VerifyOptions{Keys: []*Key{s.Key()}, Older: [][]byte{msg}}); !r.OK() {
		t.Error(problems(r))
	}
}

// TestFlippedBits flips every bit of every file of a small export, one at a time.
// Each flip must be found, and named by the file or the record that it is in.
func TestFlippedBits(t *testing.T) {
	l := testLog(t, 2)
	dir := l.export(t, true)
	o := VerifyOptions{Keys: []*Key{l.signer.Key()}, Workers: 1}
	flips := 0
	for path, f := range dir {
		for i := range f.Data {
			for bit := range 8 {
				f.Data[i] ^= 1 << bit
				mustName(t, dir, path, i, o)
				f.Data[i] ^= 1 << bit
				flips++
			}
		}
	}
	if flips < 20_000 {
		t.Errorf("only %d flips", flips)
	}
}

// TestFlippedBitsSampled does so with a log of more than one bundle, a rotated key
// and a witness.
func TestFlippedBitsSampled(t *testing.T) {
	l := testLog(t, 255)
	l.rotate(t, "second")
	for i := range 20 {
		l.add(t, message(i))
	}
	l.integrate(t)
	w, first := l.cosigned(t), testSigner(t, "first").Key()
	dir := l.export(t, true)
	o := VerifyOptions{Keys: []*Key{first}, Witnesses: []*Witness{w.Witness()}, Workers: 1}
	if r := verify(t, dir, o); !r.OK() || len(r.NotChecked) > 0 || len(r.Keys) != 2 || len(r.Checkpoint.Cosigned) != 1 {
		t.Fatalf("%q, not checked %q", problems(r), r.NotChecked)
	}
	n := 30
	if testing.Short() {
		n = 3
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, path := range slices.Sorted(maps.Keys(dir)) {
		data := dir[path].Data
		for range n {
			i, bit := rnd.IntN(len(data)), rnd.IntN(8)
			data[i] ^= 1 << bit
			mustName(t, dir, path, i, o)
			data[i] ^= 1 << bit
		}
	}
}

// mustName fails unless a report names the file, or a record or opening in it.
func mustName(t *testing.T, dir fstest.MapFS, path string, at int, o VerifyOptions) {
	t.Helper()
	r := verify(t, dir, o)
	if r.OK() {
		t.Fatalf("%s: byte %d: a flipped bit was not found", path, at)
	}
	named := slices.ContainsFunc(r.Problems, func(p Problem) bool {
		level := entries
		if strings.HasPrefix(path, "openings") {
			level = openings
		}
		inFile := p.Index >= 0 && path == tilePath(level, p.Index/tileWidth, width(r.claimedSize(), 0, p.Index/tileWidth))
		return p.Path == path || inFile
	})
	if !named {
		t.Fatalf("%s: byte %d: a flipped bit was found, but not named: %q", path, at, problems(r))
	}
}

func (r *Report) claimedSize() int64 {
	if r.Checkpoint == nil {
		return 0
	}
	return r.Checkpoint.Size
}

func testWitness(t testing.TB, name string) *cosigner {
	t.Helper()
	seed := sha256.Sum256([]byte("test witness " + name))
	w, err := newCosigner(name, ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// cosigned has a witness sign the checkpoint.
func (l *memLog) cosigned(t testing.TB) *cosigner {
	t.Helper()
	w := testWitness(t, "witness.example/w1")
	c, err := readCheckpoint(l.checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	line, err := w.Cosign(c, time.Unix(1700000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if l.checkpoint, err = AddCosignature(l.checkpoint, line, []*Key{l.signer.Key()}, []*Witness{w.Witness()}); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestVerifyNames is the fault matrix: what was done to an export, and what the
// report must say.
func TestVerifyNames(t *testing.T) {
	first, second, stranger := testSigner(t, "first"), testSigner(t, "second"), testSigner(t, "stranger")
	trust := VerifyOptions{Keys: []*Key{first.Key()}}
	for _, tt := range []struct {
		name string
		do   func(l *memLog, dir fstest.MapFS)
		o    func(l *memLog, o *VerifyOptions)
		want []string
	}{
		{name: "a bundle is missing", do: func(l *memLog, dir fstest.MapFS) { delete(dir, "tile/entries/001") },
			want: []string{"bundle 1 is missing (tile/entries/001)"}},
		{name: "a bundle is cut", do: func(l *memLog, dir fstest.MapFS) {
			f := dir["tile/entries/002.p/88"]
			f.Data = f.Data[:len(f.Data)-1]
		}, want: []string{"bundle 2 does not have the form that docs/spec/evidence.md gives (tile/entries/002.p/88)"}},
		{name: "the first bundle is missing", do: func(l *memLog, dir fstest.MapFS) { delete(dir, "tile/entries/000") },
			want: []string{"bundle 0 is missing (tile/entries/000)"}},
		{name: "a tile is missing", do: func(l *memLog, dir fstest.MapFS) { delete(dir, "tile/0/001") },
			want: []string{"tile 0/1 is missing (tile/0/001)"}},
		{name: "an upper tile is missing", do: func(l *memLog, dir fstest.MapFS) { delete(dir, "tile/1/000.p/2") },
			want: []string{"tile 1/0 is missing (tile/1/000.p/2)"}},
		{name: "a tile is cut", do: func(l *memLog, dir fstest.MapFS) { dir["tile/0/001"].Data = dir["tile/0/001"].Data[:8191] },
			want: []string{"tile 0/1 does not have the form that docs/spec/evidence.md gives (tile/0/001)"}},
		{name: "no checkpoint", do: func(l *memLog, dir fstest.MapFS) { delete(dir, "checkpoint") },
			want: []string{"checkpoint is missing (checkpoint)"}},
		{name: "two stray files", do: func(l *memLog, dir fstest.MapFS) {
			dir["tile/0/000.p/3"] = dir["tile/0/000"]
			dir["note\u202etxt"] = dir["tile/0/000"]
		}, want: []string{`file "note\u202etxt" does not belong to the export`, `file "tile/0/000.p/3" does not belong to the export`}},
		{name: "two records change places", do: func(l *memLog, dir fstest.MapFS) {
			l.entries[300], l.entries[301] = l.entries[301], l.entries[300]
			maps.Copy(dir, l.export(t, false))
		}, want: []string{"record 300 is not the record that the tree holds", "record 301 is not the record that the tree holds"}},
		{name: "a record and its tile are replaced", do: func(l *memLog, dir fstest.MapFS) {
			l.entries[300] = l.entries[7]
			copy(l.tiles[place{0, 1, 0}][44*32:], joined([]Hash{LeafHash(l.entries[300])}))
			maps.Copy(dir, l.export(t, false))
		}, want: []string{"record 300 has the id of an earlier record", "checkpoint has a root that is not that of the records (checkpoint)",
			"tile 1/0 does not hold the hashes that follow from the records (tile/1/000.p/2)"}},
		{name: "another's signature", do: func(l *memLog, dir fstest.MapFS) {
			l.resign(t, 300, stranger)
			maps.Copy(dir, l.export(t, false))
		}, want: []string{"record 300 is signed by another key than the one in force"}},
		{name: "a statement that is not in its form", do: func(l *memLog, dir fstest.MapFS) {
			e, _ := Sign([]byte(`{"_type": "https://in-toto.io/Statement/v1"}`), l.signer)
			l.replace(t, 9, e)
			maps.Copy(dir, l.export(t, false))
		}, want: []string{"record 9 does not have the form that docs/spec/evidence.md gives"}},
		{name: "a key that nobody trusts", o: func(l *memLog, o *VerifyOptions) { o.Keys = []*Key{stranger.Key()} },
			want: []string{"checkpoint is not signed by a key that leads to one of the trusted keys (checkpoint)"}},
		{name: "no key", o: func(l *memLog, o *VerifyOptions) { o.Keys = nil },
			want: []string{"checkpoint is not signed by a key that leads to one of the trusted keys (checkpoint)"}},
		{name: "the checkpoint is another's", do: func(l *memLog, dir fstest.MapFS) {
			dir["checkpoint"].Data, _ = SignCheckpoint(l.tree.Size(), l.tree.Root(), stranger)
		}, want: []string{"checkpoint is not signed by the key in force (checkpoint)"}},
		{name: "rotated, and the old key goes on", do: func(l *memLog, dir fstest.MapFS) {
			l.add(t, keyEvent(second))
			l.add(t, message(1))
			l.integrate(t)
			replaceAll(dir, l.export(t, false))
		}, want: []string{"record 601 is signed by another key than the one in force", "checkpoint is not signed by the key in force (checkpoint)"}},
		{name: "rotated by a stranger", do: func(l *memLog, dir fstest.MapFS) {
			l.signer = stranger
			l.add(t, keyEvent(stranger))
			l.integrate(t)
			replaceAll(dir, l.export(t, false))
		}, want: []string{"record 600 is signed by another key than the one in force", "checkpoint is not signed by the key in force (checkpoint)"}},
		{name: "a stranger's log that names the trusted key", do: func(l *memLog, dir fstest.MapFS) {
			m := &memLog{tiles: map[place][]byte{}, signer: stranger}
			m.add(t, keyEvent(stranger))
			m.add(t, keyEvent(first))
			m.integrate(t)
			replaceAll(dir, m.export(t, false))
		}, want: []string{"checkpoint is not signed by the key in force (checkpoint)"}},
		{name: "no first key", do: func(l *memLog, dir fstest.MapFS) {
			m := &memLog{tiles: map[place][]byte{}, signer: first}
			m.add(t, message(1))
			m.integrate(t)
			replaceAll(dir, m.export(t, false))
		}, want: []string{"record 0 does not name the first key of the log"}},
		{name: "a witness is missing", o: func(l *memLog, o *VerifyOptions) {
			o.Witnesses = []*Witness{testWitness(t, "w").Witness()}
		}, want: []string{"checkpoint is cosigned by too few of the witnesses (checkpoint)"}},
		{name: "another history", o: func(l *memLog, o *VerifyOptions) {
			m := newLog(t)
			m.add(t, message(99))
			m.integrate(t)
			o.Older = [][]byte{m.checkpoint}
		}, want: []string{"older checkpoint 0 is not the beginning of this log"}},
		{name: "rolled back", o: func(l *memLog, o *VerifyOptions) { o.Older = [][]byte{testLog(t, 601).checkpoint} },
			want: []string{"older checkpoint 0 is of a longer log than this one"}},
		{name: "the database says otherwise", o: func(l *memLog, o *VerifyOptions) {
			o.Each = func(i int64, _ []byte, s *Statement) Fault {
				if i == 77 {
					return "is not what its row says"
				}
				return ""
			}
		}, want: []string{"record 77 is not what its row says"}},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			l := testLog(t, 600)
			dir, o := l.export(t, false), trust
			if tt.do != nil {
				tt.do(l, dir)
			}
			if tt.o != nil {
				tt.o(l, &o)
			}
			r := verify(t, dir, o)
			if diff := cmp.Diff(tt.want, problems(r)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if r.OK() {
				t.Error("the report says OK")
			}
		})
	}
}

func replaceAll(dir, with fstest.MapFS) {
	clear(dir)
	maps.Copy(dir, with)
}

// resign signs a record anew, and builds the tree over it.
func (l *memLog) resign(t testing.TB, i int, s *Signer) {
	e, err := ParseEnvelope(l.entries[i])
	if err != nil {
		t.Fatal(err)
	}
	env, err := Sign(e.Statement, s)
	if err != nil {
		t.Fatal(err)
	}
	l.replace(t, i, env)
}

func (l *memLog) replace(t testing.TB, i int, envelope []byte) {
	l.entries[i] = envelope
	l.tree, l.tiles = Tree{}, map[place][]byte{}
	l.integrate(t)
}

// TestManyGaps ends a verification of a log of which next to nothing is there.
// TestIrregular: whoever opens a pipe waits for somebody to write, and a device has no end.
func TestIrregular(t *testing.T) {
	l := testLog(t, 3)
	for path := range l.export(t, true) {
		dir := l.export(t, true)
		dir[path] = &fstest.MapFile{Data: dir[path].Data, Mode: fs.ModeNamedPipe}
		r := verify(t, opened{dir, path, t}, VerifyOptions{Keys: []*Key{l.signer.Key()}})
		if r.OK() || !strings.Contains(strings.Join(problems(r), "\n"), string(FaultUnreadable)) {
			t.Errorf("%s: %q", path, problems(r))
		}
	}
}

// opened is a directory in which nobody may open one of the files.
type opened struct {
	fstest.MapFS
	never string
	t     *testing.T
}

func (o opened) Open(name string) (fs.File, error) {
	if name == o.never {
		o.t.Errorf("%s was opened", name)
	}
	return o.MapFS.Open(name)
}

// TestManyKeys: a log may name as many keys as it has records.
func TestManyKeys(t *testing.T) {
	s := testSigner(t, "first")
	keys := []*Key{s.Key()}
	for i := range 100_000 {
		public := sha256.Sum256(fmt.Append(nil, i))
		keys = append(keys, newKey("first", public[:], typeEd25519))
	}
	msg, err := SignCheckpoint(0, new(Tree).Root(), s)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	c, err := OpenCheckpoint(msg, append(keys, keys...), nil)
	if err != nil || len(c.Keys) != 1 {
		t.Errorf("%v, %v", c, err)
	}
	if d := time.Since(start); d > 10*time.Second { // a tenth of a second; each with each takes minutes
		t.Errorf("it took %v", d)
	}
}

func TestManyGaps(t *testing.T) {
	s := testSigner(t, "first")
	msg, err := SignCheckpoint(1<<50, Hash{1}, s)
	if err != nil {
		t.Fatal(err)
	}
	r := verify(t, fstest.MapFS{"checkpoint": {Data: msg}}, VerifyOptions{Keys: []*Key{s.Key()}})
	if r.OK() || len(r.NotChecked) != 4 || !strings.HasPrefix(r.NotChecked[0], "records from 4352 on") {
		t.Errorf("%q, not checked %q", problems(r), r.NotChecked)
	}
}

func TestRotation(t *testing.T) {
	l := testLog(t, 300)
	older := l.checkpoint
	l.rotate(t, "second")
	l.integrate(t)
	both := l.checkpoint
	l.add(t, message(1))
	l.rotate(t, "third")
	l.add(t, message(2))
	l.integrate(t)
	dir := l.export(t, false)
	for _, name := range []string{"first", "second", "third"} {
		o := VerifyOptions{Keys: []*Key{testSigner(t, name).Key()}, Older: [][]byte{older, both}}
		if r := verify(t, dir, o); !r.OK() || len(r.Keys) != 3 || len(r.NotChecked) > 0 {
			t.Errorf("with the %s key: %q, %d keys, not checked %q", name, problems(r), len(r.Keys), r.NotChecked)
		}
	}
	// Each key of the time of the rotation can open its checkpoint.
	for _, name := range []string{"first", "second"} {
		if _, err := OpenCheckpoint(both, []*Key{testSigner(t, name).Key()}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErasedOpenings(t *testing.T) {
	l := testLog(t, 300)
	for i := 10; i < 290; i++ {
		l.openings[i] = nil
	}
	r := verify(t, l.export(t, true), VerifyOptions{Keys: []*Key{l.signer.Key()}})
	if !r.OK() || r.Openings != 20 || r.Erased != 280 {
		t.Errorf("%q: %d hold, %d erased", problems(r), r.Openings, r.Erased)
	}
	l.openings[5] = l.openings[6]
	r = verify(t, l.export(t, true), VerifyOptions{Keys: []*Key{l.signer.Key()}})
	if want := []string{"opening 5 does not open its record"}; !slices.Equal(problems(r), want) {
		t.Errorf("%q, want %q", problems(r), want)
	}
}

// TestTamperedDatabase verifies a Source that is no export, each part of it changed.
func TestTamperedDatabase(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		part       func(l *memLog) []byte
	}{
		{"entry", "record 3", func(l *memLog) []byte { return l.entries[3] }},
		{"opening", "opening 3", func(l *memLog) []byte { return l.openings[3] }},
		{"tile", "tile 0/1", func(l *memLog) []byte { return l.tiles[place{0, 1, 0}] }},
		{"upper tile", "tile 1/0", func(l *memLog) []byte { return l.tiles[place{1, 0, 0}] }},
		{"checkpoint", "checkpoint", func(l *memLog) []byte { return l.checkpoint }},
	} {
		l := testLog(t, 300)
		b := tt.part(l)
		b[len(b)/2] ^= 4
		r, err := Verify(t.Context(), l, VerifyOptions{Keys: []*Key{l.signer.Key()}})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() || !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Place == tt.want }) {
			t.Errorf("%s: %q, want %s named", tt.name, problems(r), tt.want)
		}
	}
}

func TestVerifyStops(t *testing.T) {
	l := testLog(t, 2000)
	ctx, stop := testContext(t)
	o := VerifyOptions{Keys: []*Key{l.signer.Key()}, Each: func(i int64, _ []byte, _ *Statement) Fault {
		if i == 100 {
			stop()
		}
		return ""
	}}
	if r, err := Verify(ctx, l, o); err == nil {
		t.Errorf("report %+v after the context ended", r)
	}
}

func TestNoPanicOnCutFiles(t *testing.T) {
	l := testLog(t, 3)
	dir := l.export(t, true)
	for path, f := range dir {
		whole := f.Data
		for n := range whole {
			f.Data = bytes.Clone(whole[:n])
			if r := verify(t, dir, VerifyOptions{Keys: []*Key{l.signer.Key()}, Workers: 1}); r.OK() {
				t.Fatalf("%s cut to %d bytes was not found", path, n)
			}
		}
		f.Data = whole
	}
}

func ExampleProblem() {
	fmt.Println(Problem{"tile 0/3", "tile/0/003", -1, FaultTile})
	// Output: tile 0/3 does not hold the hashes that follow from the records (tile/0/003)
}
