// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// TestSecondVerifier runs the verifier of docs/spec/verify, which shares no code
// with this one, on the same exports and proofs: both must say the same.
func TestSecondVerifier(t *testing.T) {
	python := programtest.Find(t, "python3")
	run := func(t *testing.T, args ...string) (string, bool) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, append([]string{"-I", "-B", "../../docs/spec/verify/verify.py"}, args...)...)
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte("Traceback")) {
			t.Fatalf("the second verifier fails: %s", out)
		}
		return string(out), err == nil
	}
	l := testLog(t, 258)
	first := l.signer.Key().String()
	l.rotate(t, "second")
	l.add(t, message(1))
	l.integrate(t)
	l.openings[7] = nil
	w := l.cosigned(t)
	vkey, witness := l.signer.Key().String(), w.Witness().String()

	t.Run("whole", func(t *testing.T) {
		dir := write(t, l.export(t, true))
		for _, k := range []string{first, vkey} {
			if out, ok := run(t, "log", dir, k, witness); !ok || !strings.HasPrefix(out, "ok: 260 records, 2 keys") {
				t.Errorf("%s", out)
			}
		}
		if out, ok := run(t, "log", dir, testSigner(t, "stranger").Key().String()); ok {
			t.Errorf("a stranger's key is enough: %s", out)
		}
		if out, ok := run(t, "log", dir, vkey, testWitness(t, "w2").Witness().String()); ok {
			t.Errorf("a witness that did not sign is enough: %s", out)
		}
	})

	t.Run("flipped", func(t *testing.T) {
		small := testLog(t, 3)
		files := small.export(t, false)
		rnd := rand.New(rand.NewPCG(3, 4))
		for path, f := range files {
			for range 4 {
				i, bit := rnd.IntN(len(f.Data)), rnd.IntN(8)
				f.Data[i] ^= 1 << bit
				out, ok := run(t, "log", write(t, files), first)
				ours := verify(t, files, VerifyOptions{Keys: []*Key{small.signer.Key()}})
				f.Data[i] ^= 1 << bit
				if ok || ours.OK() {
					t.Errorf("%s, byte %d, bit %d: second verifier %v, first %v:\n%s", path, i, bit, ok, ours.OK(), out)
				}
			}
		}
	})

	t.Run("forged", func(t *testing.T) {
		for name, change := range map[string]func(l *memLog, files fstest.MapFS){
			"a bundle is missing": func(_ *memLog, files fstest.MapFS) { delete(files, "tile/entries/000.p/9") },
			"a stray file":        func(_ *memLog, files fstest.MapFS) { files["tile/0/001"] = files["checkpoint"] },
			"signed by a stranger": func(l *memLog, files fstest.MapFS) {
				l.resign(t, 5, testSigner(t, "stranger"))
				replaceAll(files, l.export(t, true))
			},
			"twice the same": func(l *memLog, files fstest.MapFS) {
				l.openings[5] = nil
				l.replace(t, 5, l.entries[4])
				replaceAll(files, l.export(t, true))
			},
			"a tile is wrong": func(l *memLog, files fstest.MapFS) {
				l.tiles[place{0, 0, 0}][0] ^= 1
				replaceAll(files, l.export(t, true))
			},
		} {
			l := testLog(t, 9)
			files := l.export(t, true)
			change(l, files)
			if out, ok := run(t, "log", write(t, files), first); ok || verify(t, files, VerifyOptions{Keys: []*Key{l.signer.Key()}}).OK() {
				t.Errorf("%s: %s", name, out)
			}
		}
	})

	t.Run("proof", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "record.tlog-proof")
		for _, i := range []int64{0, 5, 255, 256, 258, 259} {
			p, err := Prove(t.Context(), l, i)
			if err != nil {
				t.Fatal(err)
			}
			b := p.Bytes()
			writeFile(t, file, b)
			if out, ok := run(t, "proof", file, vkey, witness); !ok {
				t.Errorf("record %d: %s", i, out)
			}
			at := bytes.Index(b, []byte("\nindex ")) + 20
			b[at] ^= 1
			writeFile(t, file, b)
			if out, ok := run(t, "proof", file, vkey, witness); ok {
				t.Errorf("record %d with another path: %s", i, out)
			}
		}
	})

	src, err := os.ReadFile("../../docs/spec/verify/verify.py")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(src, []byte{'\n'}); n > 330 {
		t.Errorf("the second verifier has %d lines; it is to have 330 at most", n)
	}
}

func write(t testing.TB, files fstest.MapFS) string {
	t.Helper()
	dir := t.TempDir()
	for path, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, to, f.Data)
	}
	return dir
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, slices.Clip(b), 0o600); err != nil {
		t.Fatal(err)
	}
}
