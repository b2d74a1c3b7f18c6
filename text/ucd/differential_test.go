// SPDX-License-Identifier: Apache-2.0

package ucd

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// interesting holds what makes normalising hard: everything active or joining,
// what composes with it, confusables, hidden characters, jamo and syllables.
func interesting() (pool []rune) {
	for r := range allRunes {
		d := lookupNFD(r) != 0 || lookupNFKD(r) != 0
		if Of(r)&(NFKCActive|NFCActive|NFKCJoins|Confusable|Opener|Mark) != 0 || d ||
			Of(r)&Hidden != 0 && r < 0xE0000 || r < 0x80 {
			pool = append(pool, r)
		}
	}
	for _, e := range compositions {
		if e.composite != 0 {
			// Once for each composition, so that pairs do meet.
			pool = append(pool, rune(e.first), rune(e.second))
		}
	}
	for i := range rune(1000) {
		pool = append(pool, hangulS+i*11, hangulL+i%hangulLCount, hangulV+i%hangulVCount, hangulT+i%hangulTCount)
	}
	return pool
}

// randomStrings calls f with strings of up to 24 characters of which not more
// than 30 non-starters follow each other in the full decomposition.
func randomStrings(n int, f func(s string)) {
	rng := rand.New(rand.NewPCG(15, 0))
	pool := interesting()
	marks := []rune{}
	for _, r := range pool {
		if Of(r)&(NonStarter|NFKCJoins) != 0 {
			marks = append(marks, r)
		}
	}
	var b strings.Builder
	for range n {
		b.Reset()
		for range 1 + rng.IntN(24) {
			from := pool
			if rng.IntN(3) == 0 {
				from = marks
			}
			b.WriteRune(from[rng.IntN(len(from))])
		}
		f(b.String())
	}
}

// longestRun is the longest run of non-starters in the full decomposition.
func longestRun(s string) int {
	var b Buffer
	b.Decompose(NFKC, s, 0)
	run, longest := 0, 0
	for _, x := range b.Cells {
		if run++; x.CCC == 0 {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

func TestAgainstXText(t *testing.T) {
	if unicode.Version != Version {
		t.Skipf("x/text follows the toolchain, which has Unicode %s, not %s", unicode.Version, Version)
	}
	forms := []struct {
		f Form
		x norm.Form
	}{{NFC, norm.NFC}, {NFKC, norm.NFKC}}
	var b Buffer
	compare := func(s string) {
		for _, c := range forms {
			want := c.x.String(s)
			if got := string(b.Append(nil, c.f, s)); got != want {
				t.Fatalf("form %d of %+q: %+q, not %+q", c.f, s, got, want)
			}
			if got := b.isNormal(c.f, s); got != (s == want) {
				t.Fatalf("IsNormal(%d, %+q) = %v", c.f, s, got)
			}
		}
	}
	for r := range allRunes {
		compare(string(r))
		if c := norm.NFC.PropertiesString(string(r)).CCC(); c != CCC(r) {
			t.Fatalf("CCC(%U) = %d, not %d", r, CCC(r), c)
		}
	}
	n := 0
	randomStrings(100_000, func(s string) {
		if longestRun(s) <= 30 {
			n++
			compare(s)
		}
	})
	if n < 90_000 {
		t.Errorf("only %d strings compared", n)
	}
}

// TestAgainstGo compares with package unicode what it also knows.
func TestAgainstGo(t *testing.T) {
	if unicode.Version != Version {
		t.Skipf("the toolchain has Unicode %s, not %s", unicode.Version, Version)
	}
	for r := range allRunes {
		if table := unicode.Scripts[PinnedScript(r).String()]; PinnedScript(r) != ScriptUnknown && !unicode.Is(table, r) {
			t.Fatalf("%U: pinned script %s", r, PinnedScript(r))
		}
		plain := unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf)
		if !plain {
			continue // it may have been assigned since
		}
		if got, want := Of(r)&Mark != 0, unicode.Is(unicode.M, r); got != want {
			t.Errorf("%U: Mark = %v", r, got)
		}
		if got, want := Of(r)&Flagged != 0, r == 0x2800 || r == 0xFFFC; got != want {
			t.Errorf("%U: Flagged = %v", r, got)
		}
		if got, want := Symbol(r), r >= 0x80 && unicode.In(r, unicode.So, unicode.Sm, unicode.No); got != want {
			t.Errorf("%U: Symbol = %v", r, got)
		}
		if got, want := Virama(r), CCC(r) == 9; got != want {
			t.Errorf("%U: Virama = %v", r, got)
		}
		if ScriptOf(r) != PinnedScript(r) {
			t.Errorf("%U: script %s, and it was %s", r, ScriptOf(r), PinnedScript(r))
		}
	}
}

// TestAgainstUnicodedata2 compares what is of NewestVersion with Python's unicodedata2, which may
// be newer: then only what NewestVersion assigns.
func TestAgainstUnicodedata2(t *testing.T) {
	const program = `import sys, unicodedata2 as u
if int(u.unidata_version.split(".")[0]) < 17: sys.exit(1)
for c in range(0x110000): print(u.category(chr(c)), u.combining(chr(c)), u.bidirectional(chr(c)) or "-")`
	out, err := exec.Command(programtest.Find(t, "python3"), "-c", program).Output()
	if err != nil {
		t.Skipf("needs Python's unicodedata2 of Unicode 17 or newer: %v", err)
	}
	lines := strings.Split(string(out), "\n")
	assigned := 0
	for r := range allRunes {
		f := strings.Fields(lines[r])
		if Of(r)&Flagged != 0 && r != 0x2800 && r != 0xFFFC && CCC(r) == 0 && ScriptOf(r) == ScriptUnknown {
			continue
		}
		if f[0] != "Cn" {
			assigned++
		}
		if got, want := Of(r)&Mark != 0, f[0][0] == 'M'; got != want {
			t.Errorf("%U: Mark = %v", r, got)
		}
		if got, want := Symbol(r), r >= 0x80 && (f[0] == "So" || f[0] == "Sm" || f[0] == "No"); got != want {
			t.Errorf("%U: Symbol = %v", r, got)
		}
		if got, want := Virama(r), f[1] == "9"; got != want {
			t.Errorf("%U: Virama = %v", r, got)
		}
		if left, right := Direction(r); f[0] != "Cn" && r != 0x1B3A && r != 0x1B3C && r != 0x1B42 && // changed in 18.0
			(left != (f[2] == "L") || right != (f[2] == "R" || f[2] == "AL")) {
			t.Errorf("%U: direction %v, %v, not %s", r, left, right, f[2])
		}
	}
	if assigned < 159_801 {
		t.Errorf("only %d characters compared", assigned)
	}
}

func TestAgainstICU(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	cc := programtest.Find(t, "cc")
	program := filepath.Join(t.TempDir(), "icu")
	if out, err := exec.Command(cc, "-O1", "-o", program, "testdata/icu.c", "-licuuc", "-licui18n").CombinedOutput(); err != nil {
		t.Skipf("needs ICU 72 (libicu-dev): %v: %.200s", err, out)
	}
	var input bytes.Buffer
	var texts []string
	add := func(s string) {
		texts = append(texts, s)
		for _, r := range s {
			fmt.Fprintf(&input, "%X ", r)
		}
		input.WriteByte('\n')
	}
	for r := range allRunes {
		if Of(r) != Flagged {
			add(string(r))
		}
	}
	randomStrings(50_000, add)
	for _, s := range hardTexts {
		add(strings.ToValidUTF8(s, "\uFFFD"))
	}

	cmd := exec.Command(program)
	cmd.Stdin = &input
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 1<<20)
	if sc.Scan(); sc.Text() != "15.0" {
		t.Skipf("ICU has Unicode %s", sc.Text())
	}
	var b Buffer
	failed := 0
	for _, s := range texts {
		if !sc.Scan() {
			t.Fatal("short output")
		}
		columns := strings.Split(sc.Text(), ";")
		for i, got := range [][]byte{b.Append(nil, NFC, s), b.Append(nil, NFKC, s), b.AppendSkeleton(nil, s)} {
			if want := parseRunes(t, columns[i]); string(got) != want {
				failed++
				t.Errorf("%s of %+q: %+q, ICU has %+q", []string{"NFC", "NFKC", "skeleton"}[i], s, got, want)
			}
		}
		if failed > 20 {
			t.FailNow()
		}
	}
	t.Logf("%d texts agree", len(texts))
}
