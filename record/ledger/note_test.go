// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// TestKeysAreNotes: keys in their written form are those of x/mod/sumdb/note.
func TestKeysAreNotes(t *testing.T) {
	skey, vkey, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	if s.Key().String() != vkey {
		t.Errorf("vkey %s, want %s", s.Key(), vkey)
	}
	theirs, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := SignCheckpoint(7, Hash{1}, s)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := note.Open(msg, note.VerifierList(theirs)); err != nil || n.Text != origin+"\n7\nAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n" {
		t.Errorf("note %v, %v", n, err)
	}
}

func TestKeysRefused(t *testing.T) {
	skey, vkey, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		t.Fatal(err)
	}
	w := testWitness(t, "w.example").Witness().String()
	for _, bad := range []string{"", "a+b", vkey + "=", vkey[1:], strings.Replace(vkey, "+", "+0", 1), w, skey, "\n" + vkey, vkey + "\n",
		vkey[:len(vkey)-4] + "\n" + vkey[len(vkey)-4:]} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("ParseKey accepted %q", bad)
		}
	}
	for _, bad := range []string{"", vkey, skey + "A", skey[:len(skey)-4], "PRIVATE+KEY+x+00000000+" + skey[strings.LastIndex(skey, "+")+1:]} {
		if _, err := ParseSigner(bad); err == nil || strings.Contains(err.Error(), "evidence") {
			t.Errorf("ParseSigner of a wrong key: %v", err)
		}
	}
	if _, err := ParseWitness(vkey); err == nil {
		t.Error("ParseWitness accepted the key of a log")
	}
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	for _, name := range []string{"", "a b", "a+b", "a\nb", "\u00e9", strings.Repeat("a", 129)} {
		if _, err := NewSigner(name, private); !errors.Is(err, errOrigin) {
			t.Errorf("origin %q was accepted", name)
		}
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSigner(origin, other); !errors.Is(err, errNotEd25519) {
		t.Errorf("error %v", err)
	}
}

func TestPAE(t *testing.T) {
	// The form is that of the DSSE protocol: type and body with their lengths.
	want := "DSSEv1 28 application/vnd.in-toto+json 11 hello world"
	if got := string(appendPAE(nil, []byte("hello world"))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEnvelope(t *testing.T) {
	s := testSigner(t, "first")
	b, err := Sign([]byte(`{"a":1}`), s)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEnvelope(b)
	if err != nil || string(e.Statement) != `{"a":1}` || !e.Verify(s.Key()) || e.Verify(testSigner(t, "second").Key()) {
		t.Fatalf("%+v, %v", e, err)
	}
	good := string(b)
	for _, bad := range []string{"", " " + good, good + "\n", strings.Replace(good, `:"`, `: "`, 1), strings.Replace(good, "eyJ", "eyK", 1) + "x",
		strings.Replace(good, "in-toto", "in-Toto", 1), strings.Replace(good, `"}]}`, `"},{}]}`, 1), strings.Replace(good, "eyJhIjoxfQ==", "eyJhIjoxfR==", 1),
		strings.Replace(good, "eyJhIjoxfQ==", "eyJhIjoxfQ", 1), strings.Replace(good, "evidence+", "evidence", 1), strings.Replace(good, "log.example", "log example", 1)} {
		if _, err := ParseEnvelope([]byte(bad)); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
	if _, err := Sign(make([]byte, maxStatement+1), s); err == nil {
		t.Error("signed a statement that is too long")
	}
	if b, err := Sign(make([]byte, maxStatement), s); err != nil || len(b) > maxEnvelope {
		t.Errorf("the longest statement makes %d bytes, %v", len(b), err)
	}
}

// TestUnverifiedStatement: a statement is read with any signature; what is not an envelope,
// or holds no statement, is an error.
func TestUnverifiedStatement(t *testing.T) {
	e := message(3)
	sealed, err := e.Seal(Salt{1})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"first", "second"} {
		b, err := Sign(sealed.Statement, testSigner(t, key))
		if err != nil {
			t.Fatal(err)
		}
		if st, err := UnverifiedStatement(b); err != nil || st.ID != e.ID || st.Kind != e.Kind {
			t.Errorf("%+v, %v", st, err)
		}
	}
	other, err := Sign([]byte(`{"a":1}`), testSigner(t, "first"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{nil, sealed.Statement, other} {
		if st, err := UnverifiedStatement(b); err == nil || st != nil {
			t.Errorf("%.64q: %+v, %v", b, st, err)
		}
	}
}

func TestOpenCheckpoint(t *testing.T) {
	first, second := testSigner(t, "first"), testSigner(t, "second")
	msg, err := SignCheckpoint(5, Hash{1, 2}, second, first)
	if err != nil {
		t.Fatal(err)
	}
	keys := []*Key{first.Key(), second.Key(), first.Key()}
	c, err := OpenCheckpoint(msg, keys, nil)
	if err != nil || c.Size != 5 || c.Root != (Hash{1, 2}) || c.Origin != origin || len(c.Keys) != 2 || c.Unverified != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if c, err = OpenCheckpoint(msg, keys[:1], nil); err != nil || c.Unverified != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	good := string(msg)
	lines := strings.SplitAfter(good, "\n") // origin, size, root, "", signature, signature, ""
	for name, tt := range map[string]struct {
		msg  string
		want error
	}{
		"empty":          {"", errCheckpoint},
		"no signature":   {strings.Join(lines[:4], ""), errCheckpoint},
		"leading zero":   {strings.Replace(good, "\n5\n", "\n05\n", 1), errCheckpoint},
		"negative":       {strings.Replace(good, "\n5\n", "\n-5\n", 1), errCheckpoint},
		"too large":      {strings.Replace(good, "\n5\n", "\n9223372036854775807\n", 1), errCheckpoint},
		"extension":      {strings.Join(lines[:3], "") + "more\n" + strings.Join(lines[3:], ""), errCheckpoint},
		"other size":     {strings.Replace(good, "\n5\n", "\n6\n", 1), errSignature},
		"twice signed":   {good + lines[5], errCheckpoint},
		"no line feed":   {good[:len(good)-1], errCheckpoint},
		"second text":    {lines[0] + lines[1] + lines[2] + "\n" + good, errCheckpoint},
		"not well-known": {strings.Join(lines[:4], "") + lines[4][:len(lines[4])-4] + "\n" + lines[5], errCheckpoint},
		"a stranger's":   {strings.Replace(good, "\u2014 "+origin, "\u2014 stranger", 2), errUnsigned},
	} {
		if _, err := OpenCheckpoint([]byte(tt.msg), keys, nil); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if _, err := OpenCheckpoint(msg, nil, nil); !errors.Is(err, errUnsigned) {
		t.Errorf("without keys: %v", err)
	}
	other, err := NewSigner("other.example", keyFromSeed(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := SignCheckpoint(1, Hash{}, first, other); !errors.Is(err, errSigners) {
		t.Errorf("two logs in one checkpoint: %v", err)
	}
}

// TestCheckpointSpecimen reads the example of C2SP tlog-cosignature.
func TestCheckpointSpecimen(t *testing.T) {
	c, err := readCheckpoint([]byte(specimen))
	if err != nil || c.Origin != "example.com/behind-the-sofa" || c.Size != 20852163 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, sig, ok := strings.Cut(specimen, "w1 "); ok {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(sig))
		if err != nil || cosignedAt(raw[4:]).Unix() != 1679315147 {
			t.Errorf("time of the cosignature: %v", err)
		}
	}
}

const specimen = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n" +
	"\u2014 example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n" +
	"\u2014 witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"

func TestCosignatures(t *testing.T) {
	l := newLog(t)
	keys := []*Key{l.signer.Key()}
	w1, w2 := testWitness(t, "w1.example"), testWitness(t, "w2.example/x")
	known := []*Witness{w1.Witness(), w2.Witness()}
	for _, w := range known {
		if back, err := ParseWitness(w.String()); err != nil || back.String() != w.String() {
			t.Errorf("%v, %v", back, err)
		}
	}
	c, err := readCheckpoint(l.checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1700000000, 0)
	line1, _ := w1.Cosign(c, at)
	line2, _ := w2.Cosign(c, at.Add(time.Second))
	msg, err := AddCosignature(l.checkpoint, append(bytes.Clone(line1), line2...), keys, known)
	if err != nil {
		t.Fatal(err)
	}
	open, err := OpenCheckpoint(msg, keys, known)
	if err != nil || len(open.Cosigned) != 2 || !open.Cosigned[1].Time.Equal(at.Add(time.Second)) {
		t.Fatalf("%+v, %v", open, err)
	}
	c.Size++
	wrong, _ := w1.Cosign(c, at)
	for name, line := range map[string][]byte{
		"of another checkpoint": wrong,
		"by nobody known":       bytes.Replace(line1, []byte("w1"), []byte("w9"), 1),
		"another time":          append(bytes.Clone(line1[:len(line1)-40]), line2[len(line2)-40:]...),
		"nothing":               nil,
		"no signature":          []byte("hello\n"),
		"twice":                 append(bytes.Clone(line1), line1...),
	} {
		if _, err := AddCosignature(l.checkpoint, line, keys, known); err == nil {
			t.Errorf("added a cosignature: %s", name)
		}
	}
	if w1.Witness().Verify(nil, nil) || w1.Witness().Verify(nil, bytes.Repeat([]byte{0xff}, 72)) {
		t.Error("a signature of the wrong form holds")
	}
}
