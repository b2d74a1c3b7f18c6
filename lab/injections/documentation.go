// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/lab/sources"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// The documentation of a free program, which its authors publish in 21 languages: pages for
// programmers, articles, questions and answers, terms and a privacy notice.
const (
	documentation        = "intlayer-docs-*.tgz"
	documentationLicence = "Apache-2.0"
)

const (
	ofDocumentation = 90 // honest passages of one language
	inDocumentation = 24 // attacks in passages of one language
)

var page = regexp.MustCompile(`^package/(?:docs|blog|legal|frequent_questions)/([a-z]{2})/.+\.md$`)

// documented makes rows of passages of the documentation in dir: honest ones in every language, and
// attacks between the paragraphs of some in the languages that have attacks.
func (m *maker) documented(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, documentation))
	if err != nil || len(paths) == 0 {
		return errors.Join(ErrAbsent, err)
	}
	pages, err := documents(paths[0])
	if err != nil {
		return fmt.Errorf("injections: %s: %w", finding.Quote(filepath.Base(paths[0])), err)
	}
	for _, code := range slices.Sorted(maps.Keys(pages)) {
		list := pages[code]
		passage := func() []string {
			p := list[m.IntN(len(list))]
			n := m.between(1, 12)
			at := m.IntN(max(1, len(p)-n+1))
			return slices.Clone(p[at:min(at+n, len(p))])
		}
		row := Row{Family: "documentation", Language: code, Group: "documentation", Carrier: "none", Licence: documentationLicence}
		m.some(ofDocumentation, func() Row {
			r := row
			r.Text = strings.Join(passage(), "\n\n")
			return r
		})
		own := slices.IndexFunc(m.languages, func(l *language) bool { return l.code == code })
		if own < 0 {
			continue
		}
		m.some(inDocumentation, func() Row {
			styles := m.styles()
			s := styles[m.IntN(len(styles))]
			order, goal := s.order(m, m.languages[own])
			parts := passage()
			r := row
			r.Attack, r.Family, r.Group, r.Carrier, r.Order = true, s.name, s.name+"/"+goal, "page", order
			r.Text = strings.Join(slices.Insert(parts, m.IntN(len(parts)+1), order), "\n\n")
			return r
		})
	}
	return nil
}

// documents reads a package: the paragraphs of each page, by language.
func documents(path string) (map[string][][]string, error) {
	files, err := sources.Unpack(path)
	if err != nil {
		return nil, err
	}
	out := map[string][][]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := page.FindStringSubmatch(name)
		if at == nil {
			continue
		}
		if p := paragraphs(strings.ToValidUTF8(string(files[name]), "")); len(p) > 0 {
			out[at[1]] = append(out[at[1]], p)
		}
	}
	return out, nil
}

// paragraphs are those of a page of Markdown without the lines about it at its beginning. A block
// of code may be cut, as in a page that is read in parts.
func paragraphs(s string) (out []string) {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if rest, found := strings.CutPrefix(s, "---\n"); found {
		if _, body, closed := strings.Cut(rest, "\n---\n"); closed {
			s = body
		}
	}
	for p := range strings.SplitSeq(s, "\n\n") {
		if p = strings.TrimSpace(p); len(p) >= 20 && len(p) <= 2000 {
			out = append(out, p)
		}
	}
	return out
}
