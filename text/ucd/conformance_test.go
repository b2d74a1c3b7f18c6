// SPDX-License-Identifier: Apache-2.0

package ucd

import (
	"bufio"
	"compress/bzip2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// unicodeDir is where Debian's package unicode-data puts the database.
const unicodeDir = "/usr/share/unicode/"

func parseRunes(t *testing.T, hex string) string {
	t.Helper()
	var b strings.Builder
	for _, h := range strings.Fields(hex) {
		x, err := strconv.ParseUint(h, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteRune(rune(x))
	}
	return b.String()
}

// TestNormalizationTest runs every line of NormalizationTest.txt, every column.
func TestNormalizationTest(t *testing.T) {
	f, err := os.Open(unicodeDir + "NormalizationTest.txt.bz2")
	if err != nil {
		t.Skipf("needs Debian's unicode-data (TestExhaustive covers less without it): %v", err)
	}
	defer f.Close()
	var b Buffer
	lines, part := 0, ""
	inPart1 := map[string]bool{}
	sc := bufio.NewScanner(bzip2.NewReader(f))
	for sc.Scan() {
		line, _, _ := strings.Cut(sc.Text(), "#")
		if strings.HasPrefix(line, "@") {
			part = strings.TrimSpace(line)
			continue
		}
		fields := strings.Split(line, ";")
		if len(fields) < 5 {
			continue
		}
		lines++
		var c [5]string
		for i := range c {
			c[i] = parseRunes(t, fields[i])
		}
		if part == "@Part1" {
			inPart1[c[0]] = true
		}
		for i := range c {
			nfc := c[1]
			if i >= 3 {
				nfc = c[3]
			}
			checkForm(t, &b, NFC, c[i], nfc)
			checkForm(t, &b, NFKC, c[i], c[3])
		}
		checkDecomposed(t, &b, NFC, c[0], c[2])
		checkDecomposed(t, &b, NFKC, c[0], c[4])
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if lines != 19074 {
		t.Errorf("%d lines, not 19074", lines)
	}
	// What part 1 does not list is its own normal form.
	for r := range allRunes {
		if s := string(r); !inPart1[s] {
			checkForm(t, &b, NFC, s, s)
			checkForm(t, &b, NFKC, s, s)
		}
	}
}

func checkForm(t *testing.T, b *Buffer, f Form, in, want string) {
	t.Helper()
	if got := string(b.Append(nil, f, in)); got != want {
		t.Errorf("form %d of %+q: %+q, not %+q", f, in, got, want)
	}
	if got := b.isNormal(f, in); got != (in == want) {
		t.Errorf("IsNormal(%d, %+q) = %v", f, in, got)
	}
}

func checkDecomposed(t *testing.T, b *Buffer, f Form, in, want string) {
	t.Helper()
	b.Reset()
	b.Decompose(f, in, 0)
	if got := string(b.AppendTo(nil)); got != want {
		t.Errorf("decomposition %d of %+q: %+q, not %+q", f, in, got, want)
	}
}

// allRunes yields the 1,112,064 scalar values.
func allRunes(yield func(rune) bool) {
	for r := rune(0); r <= MaxRune; r++ {
		if r == 0xD800 {
			r = 0xE000
		}
		if !yield(r) {
			return
		}
	}
}
