// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"testing"
	"testing/fstest"
)

// seeds adds good specimens to a corpus, and some that are nearly good.
func seeds(f *testing.F, good ...[]byte) {
	for _, b := range good {
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(bytes.Clone(b), b...))
	}
	f.Add([]byte{})
}

// FuzzParseStatement: what is accepted has one spelling, and can be sealed again.
func FuzzParseStatement(f *testing.F) {
	l := testLog(f, 3)
	for _, e := range l.entries {
		env, err := ParseEnvelope(e)
		if err != nil {
			f.Fatal(err)
		}
		seeds(f, env.Statement)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStatement(b)
		if err != nil {
			return
		}
		if got := s.appendStatement(nil); !bytes.Equal(got, b) || !bytes.Equal(s.Bytes, b) {
			t.Errorf("%q read and written is %q", b, got)
		}
		if _, err := s.Seal(Salt{}); err != nil {
			t.Errorf("%q cannot be sealed: %v", b, err)
		}
	})
}

func FuzzParseEnvelope(f *testing.F) {
	l := testLog(f, 3)
	seeds(f, l.entries...)
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := ParseEnvelope(b); err == nil && !bytes.Equal(e.append(nil), b) {
			t.Errorf("%q has another spelling", b)
		}
	})
}

func FuzzParseOpening(f *testing.F) {
	l := testLog(f, 3)
	seeds(f, l.openings...)
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := ParseOpening(b); err == nil && !bytes.Equal(appendOpening(nil, o.ID, o.Salt, o.Subjects), b) {
			t.Errorf("%q has another spelling", b)
		}
	})
}

func FuzzOpenCheckpoint(f *testing.F) {
	l := testLog(f, 3)
	seeds(f, l.checkpoint, []byte(specimen))
	keys, witnesses := []*Key{l.signer.Key()}, []*Witness{testWitness(f, "w").Witness()}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := OpenCheckpoint(b, keys, witnesses)
		if err == nil && (c.Origin != origin || len(c.Keys) != 1 || !bytes.HasPrefix(b, []byte(c.text()+"\n"))) {
			t.Errorf("%q was opened as %+v", b, c)
		}
	})
}

func FuzzParseProof(f *testing.F) {
	l := testLog(f, 9)
	p, err := Prove(f.Context(), l, 5)
	if err != nil {
		f.Fatal(err)
	}
	seeds(f, p.Bytes())
	keys := []*Key{l.signer.Key()}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseProof(b)
		if err != nil {
			return
		}
		if !bytes.Equal(p.Bytes(), b) {
			t.Errorf("%q has another spelling", b)
		}
		if got, err := p.Verify(keys, nil, 0); err == nil && !bytes.Equal(p.Envelope, l.entries[got.Index]) {
			t.Errorf("%q proves what is not in the log", b)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(testSigner(f, "first").Key().String())
	f.Add(testWitness(f, "w").Witness().String())
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := ParseKey(s); err == nil && k.String() != s {
			t.Errorf("%q has another spelling", s)
		}
		if w, err := ParseWitness(s); err == nil && w.String() != s {
			t.Errorf("%q has another spelling", s)
		}
		if _, err := ParseSigner(s); err == nil {
			t.Errorf("%q is a private key", s)
		}
	})
}

// FuzzVerifyExport replaces one file of an export: nothing but the bytes that
// stood there is accepted.
func FuzzVerifyExport(f *testing.F) {
	l := testLog(f, 4)
	dir := l.export(f, true)
	paths := []string{"checkpoint", "tile/0/000.p/4", "tile/entries/000.p/4", "openings/000.p/4"}
	for i, path := range paths {
		f.Add(byte(i), dir[path].Data)
		f.Add(byte(i), dir[path].Data[1:])
	}
	o := VerifyOptions{Keys: []*Key{l.signer.Key()}, Workers: 1}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		path := paths[int(which)%len(paths)]
		changed := fstest.MapFS{}
		for p, file := range dir {
			changed[p] = file
		}
		changed[path] = &fstest.MapFile{Data: b}
		r := verify(t, changed, o)
		if r.OK() && !bytes.Equal(b, dir[path].Data) && r.Checkpoint.Unverified == 0 && r.Erased == 0 {
			t.Errorf("%s was replaced by %q, and holds", path, b)
		}
	})
}

func FuzzParseTilePath(f *testing.F) {
	for _, s := range []string{"tile/0/000", "tile/entries/x001/234.p/17", "tile/63/999.p/255"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if level, n, w, ok := parseTilePath(s); ok && tilePath(level, n, w) != s {
			t.Errorf("%q has another spelling", s)
		}
	})
}
