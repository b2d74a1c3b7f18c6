// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`^#{1,6}\s+(.+?)\s*$`)
	numberPattern  = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)*)\.?\s`)
	wholeLink      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinks fails where a document links to a file or heading that there is not, or
// numbers two of its sections alike.
func TestLinks(t *testing.T) {
	pages := map[string]*page{}
	for _, name := range textFiles(t) {
		if filepath.Ext(name) == ".md" {
			pages[filepath.ToSlash(name)] = readPage(string(readFile(t, name)))
		}
	}
	if len(pages) < 20 {
		t.Fatalf("%d documents found", len(pages))
	}
	for name, p := range pages {
		for number, n := range p.numbers {
			if n > 1 {
				t.Errorf("%s: %d sections are numbered %s", name, n, number)
			}
		}
		if strings.HasSuffix(name, "CONFORMANCE.md") { // it quotes clauses of others
			continue
		}
		for _, link := range p.links {
			target, anchor, _ := strings.Cut(link, "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := name
			if target != "" {
				to = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(rooted(to)); err != nil {
				t.Errorf("%s links to %s, which there is not", name, link)
			} else if other := pages[to]; anchor != "" && other != nil && !other.anchors[anchor] {
				t.Errorf("%s links to %s, where there is no such heading", name, link)
			}
		}
	}
}

// A page is what TestLinks knows of a document.
type page struct {
	links   []string
	anchors map[string]bool
	numbers map[string]int // of numbered headings: how many bear it
}

func readPage(text string) *page {
	p := &page{anchors: map[string]bool{}, numbers: map[string]int{}}
	inside := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		}
		if inside {
			continue
		}
		for _, m := range linkPattern.FindAllStringSubmatch(line, -1) {
			p.links = append(p.links, m[1])
		}
		if m := headingPattern.FindStringSubmatch(line); m != nil {
			p.anchors[anchorOf(m[1])] = true
			if n := numberPattern.FindStringSubmatch(m[1]); n != nil {
				p.numbers[n[1]]++
			}
		}
	}
	return p
}

// anchorOf is the name that GitHub gives a heading.
func anchorOf(heading string) string {
	heading = wholeLink.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func TestReadPage(t *testing.T) {
	p := readPage("# `up`, and [more](x.md#y)\n## 1. One\n```\n## 1. not a heading\n[no](link)\n```\n### 1. One again\n")
	if !p.anchors["up-and-more"] || !p.anchors["1-one-again"] || p.anchors["1-not-a-heading"] {
		t.Errorf("anchors = %v", p.anchors)
	}
	if len(p.links) != 1 || p.links[0] != "x.md#y" || p.numbers["1"] != 2 {
		t.Errorf("links = %q, numbers = %v", p.links, p.numbers)
	}
}
