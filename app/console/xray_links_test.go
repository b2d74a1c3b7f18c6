// SPDX-License-Identifier: Apache-2.0

package console

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// What references and addresses find, as regular expressions.
const (
	referenceForm = `(?m)^ {0,3}\[([^\]\n]+)\]:\s*<?(\S+?)>?(?:\s|$)`
	addressForm   = `()\b((?:https?|ftp|file|data|javascript|vbscript):[^\s<>"')\]]+)`
)

func sameLinks(t *testing.T, text string) {
	t.Helper()
	for form, find := range map[string]func(string, int) []place{referenceForm: references, addressForm: addresses} {
		for _, most := range []int{1, 3, 200} {
			if got, want := find(text, most), matches(form)(text, most); !slices.Equal(got, want) {
				t.Fatalf("%q, at most %d of %s: %v, want %v", text, most, form, got, want)
			}
		}
	}
}

// TestLinksAsRegexp: what is read by hand is what the regular expressions find.
func TestLinksAsRegexp(t *testing.T) {
	t.Parallel()
	parts := []string{" ", "  ", "\n", "\t", "\r\n", "\f", "[", "]", "]:", "[a]: ", "[b]:<", "<", ">", "<>", "x", "_", "0", "http", "https:", "http://h.example/p", "ftp:", "file:", "data:", "javascript:", "vbscript:", ":", "(", ")", `"`, "'", "\u00e9", "\xff", "\u2028"}
	d := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b strings.Builder
		for range d.IntN(14) {
			b.WriteString(parts[d.IntN(len(parts))])
		}
		sameLinks(t, b.String())
	}
}

func FuzzLinksAsRegexp(f *testing.F) {
	f.Add("[a]: <https://a.example/>\n  [b]:\n\tdata:x see http://h.example/'")
	f.Fuzz(func(t *testing.T, text string) { sameLinks(t, text) })
}

// TestLinksOfHostileText: no text of a megabyte takes long.
func TestLinksOfHostileText(t *testing.T) {
	t.Parallel()
	for _, part := range []string{":", "http:", "x:http:", "[a]:", "[a]:\n", "[", "[a", "\n", " [a]:<", "](", "![", "<img ", "<a ", "\x1b]8;"} {
		text := strings.Repeat(part, 1<<20/len(part))
		began := time.Now()
		linksIn(text)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%q again and again: %s", part, took)
		}
	}
}
