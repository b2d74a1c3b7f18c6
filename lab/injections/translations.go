// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/lab/sources"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// ErrAbsent says that the packages with translations are not there.
var ErrAbsent = errors.New("injections: no packages with translations: run `make translations` in lab/")

// Folder is where `make translations` puts the packages, below the root of the repository.
const Folder = "lab/.tools/translations"

const (
	maxFile   = 8 << 20 // bytes of one file of translations
	maxLine   = 1 << 20 // bytes of one line of it
	fewest    = 40      // messages that a language needs
	ofOne     = 36      // honest rows of one language
	ofOwn     = 150     // honest rows of a language that has attacks
	ofEng     = 200     // honest rows of English
	ofPackage = 250     // pieces of files of one package
	attacked  = 36      // attacks among translations in one language
	paged     = 12      // of each side, long pages in one language
)

// licences of the packages, by the beginning of the file's name.
var licences = []struct{ prefix, licence string }{
	{"django_allauth-", "MIT"}, {"django-", "BSD-3-Clause"}, {"sphinx-", "BSD-2-Clause"}, {"wagtail-", "BSD-3-Clause"},
	{"age-", "BSD-3-Clause"}, {"client_golang-", "Apache-2.0"}, {"go-jose-", "Apache-2.0"}, {"pgx-", "MIT"}, {"zod-", "MIT"},
}

// Translations are honest texts out of the translations of free programs, whose packages lie in
// dir, and attacks among such texts. The texts are read where they lie and are no part of this
// project. The same packages and the same seed give the same rows.
func Translations(dir string, seed uint64) ([]Row, error) {
	byLanguage, err := messages(dir)
	if err != nil {
		return nil, err
	}
	own, err := read()
	if err != nil {
		return nil, err
	}
	m := &maker{dice: dice{rand.New(rand.NewPCG(seed, 2))}, languages: own, seen: map[string]bool{}}
	for _, code := range slices.Sorted(maps.Keys(byLanguage)) {
		list := slices.Sorted(maps.Keys(byLanguage[code]))
		if len(list) < fewest {
			continue
		}
		m.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		i := slices.IndexFunc(own, func(l *language) bool { return l.code == code })
		m.translated(code, i, list, byLanguage[code])
	}
	if err := errors.Join(m.sources(dir), m.documented(dir)); err != nil {
		return nil, err
	}
	for i := range m.rows {
		m.rows[i].ID = fmt.Sprintf("package-%05d", i)
	}
	return m.rows, nil
}

// sources are pieces of the files of the packages: programs, templates and their comments.
func (m *maker) sources(dir string) error {
	for _, form := range []string{"*.whl", "*.zip", "zod-*.tgz"} {
		paths, err := packages(dir, form)
		if err != nil {
			return err
		}
		for _, p := range paths {
			files, err := sources.Unpack(p)
			if err != nil {
				return fmt.Errorf("injections: %s: %w", finding.Quote(filepath.Base(p)), err)
			}
			m.pieces(files, licenceOf(p))
		}
	}
	return nil
}

var source = regexp.MustCompile(`\.(go|py|js|ts|html|txt|rst|css|toml)$`)

func (m *maker) pieces(files map[string][]byte, licence string) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool {
		n := len(files[name])
		return !source.MatchString(name) || strings.Contains(name, ".min.") || strings.HasSuffix(name, ".d.ts") || n < 300 || n > 200_000
	})
	m.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(len(names), ofPackage)] {
		b := files[name]
		n := min(len(b), m.between(300, 4000))
		from := m.IntN(len(b) - n + 1)
		m.add(Row{Family: "source", Language: "en", Group: "source", Carrier: "none", Licence: licence, Text: strings.ToValidUTF8(string(b[from:from+n]), "")})
	}
}

// translated makes the rows of one language, which is the one with the index own among those that
// have attacks, or none of them.
func (m *maker) translated(code string, own int, list []string, licence map[string]string) {
	n := ofOne
	switch {
	case code == "en":
		n = ofEng
	case own >= 0:
		n = ofOwn
	}
	next := 0
	m.some(n, func() Row {
		s := list[next%len(list)]
		r := Row{Family: "translation", Language: code, Group: "translation", Carrier: "none", Licence: licence[s], Text: s}
		switch next++; next % 3 {
		case 1:
			return r
		case 2:
			r.Carrier, r.Text = "text", m.joined(m.several(list, m.between(2, 7)))
		default:
			r = m.carried(r, m.several(list, m.between(1, 5)))
		}
		r.Licence = "BSD-3-Clause"
		return r
	})
	if own < 0 {
		return
	}
	m.some(attacked, func() Row {
		styles := m.styles()
		s := styles[m.IntN(len(styles))]
		order, goal := s.order(m, m.languages[own])
		parts := m.several(list, m.between(1, 4))
		r := Row{Attack: true, Family: s.name, Language: code, Group: s.name + "/" + goal, Licence: "BSD-3-Clause", Order: order}
		return m.carried(r, slices.Insert(parts, m.IntN(len(parts)+1), order))
	})
	m.some(paged, func() Row {
		styles := m.styles()
		s := styles[m.IntN(len(styles))]
		order, goal := s.order(m, m.languages[own])
		parts := m.several(list, m.between(20, 50))
		r := Row{Attack: true, Family: s.name, Language: code, Group: s.name + "/" + goal, Carrier: "page", Licence: "BSD-3-Clause", Order: order}
		r.Text = m.page(slices.Insert(parts, m.between(5, len(parts)-5), order))
		return r
	})
	m.some(paged, func() Row {
		return Row{Family: "translation", Language: code, Group: "translation", Carrier: "page", Licence: "BSD-3-Clause", Text: m.page(m.several(list, m.between(20, 50)))}
	})
}

// page is a long text of paragraphs.
func (m *maker) page(parts []string) string {
	var b strings.Builder
	for i, s := range parts {
		b.WriteString(s)
		if i%m.between(3, 7) == 0 {
			b.WriteString("\n\n")
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func (m *maker) several(list []string, n int) (out []string) {
	for range n {
		if s := m.from(list); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// messages reads the packages in dir: the messages of each language, with the licence of each.
func messages(dir string) (map[string]map[string]string, error) {
	paths, err := packages(dir, "*.whl")
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for _, p := range paths {
		if err := archive(p, out); err != nil {
			return nil, fmt.Errorf("injections: %s: %w", finding.Quote(filepath.Base(p)), err)
		}
	}
	return out, nil
}

// packages are the files in dir whose names have the form, each with a known licence.
func packages(dir, form string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, form))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(ErrAbsent, err)
	}
	slices.Sort(paths)
	for _, p := range paths {
		if licenceOf(p) == "" {
			return nil, fmt.Errorf("injections: %s is no package of the list", finding.Quote(filepath.Base(p)))
		}
	}
	return paths, nil
}

func licenceOf(p string) string {
	for _, l := range licences {
		if strings.HasPrefix(filepath.Base(p), l.prefix) {
			return l.licence
		}
	}
	return ""
}

var place = regexp.MustCompile(`/locales?/([A-Za-z]+)[^/]*/LC_MESSAGES/[^/]+\.po$`)

func archive(p string, out map[string]map[string]string) error {
	z, err := zip.OpenReader(p)
	if err != nil {
		return err
	}
	defer z.Close()
	slices.SortFunc(z.File, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range z.File {
		at := place.FindStringSubmatch(path.Clean("/" + f.Name))
		if at == nil || strings.Contains(f.Name, "/gis/") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return err
		}
		code := strings.ToLower(at[1])
		err = readPO(io.LimitReader(r, maxFile), func(id, s string) {
			if s = plain(s); long(s) && s != plain(id) {
				keep(out, code, s, licenceOf(p))
			}
			if id = plain(id); code == "de" && long(id) {
				keep(out, "en", id, licenceOf(p))
			}
		})
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func keep(out map[string]map[string]string, code, s, licence string) {
	if out[code] == nil {
		out[code] = map[string]string{}
	}
	if out[code][s] == "" {
		out[code][s] = licence
	}
}

// long reports whether a message says more than the name of a button.
func long(s string) bool {
	return len(s) >= 18 || len(s) >= 8 && []rune(s)[0] > 0x2e80
}

var (
	tags  = regexp.MustCompile(`</?[A-Za-z][^>]*>`)
	rooms = regexp.MustCompile(`%\(\w+\)[a-z]|%[sdr]|\{\w*\}`)
)

// plain is a message without markup, with a word where the program puts one.
func plain(s string) string {
	s = rooms.ReplaceAllString(tags.ReplaceAllString(s, ""), "7")
	return strings.Join(strings.Fields(s), " ")
}

// readPO calls yield with each message of a PO file and its translation, but for those that are
// marked as not checked. It is lenient: a line that it does not know is passed over.
func readPO(r io.Reader, yield func(id, translation string)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var id, translation string
	var into *string
	fuzzy := false
	done := func() {
		if id != "" && translation != "" && !fuzzy {
			yield(id, translation)
		}
		id, translation, into = "", "", nil
	}
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		key, value, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "#"):
			if translation != "" {
				done()
				fuzzy = false
			}
			fuzzy = fuzzy || strings.HasPrefix(line, "#,") && strings.Contains(line, "fuzzy")
		case key == "msgid":
			if translation != "" {
				done()
				fuzzy = false
			}
			id, translation, into = "", "", &id
		case key == "msgstr", key == "msgstr[0]":
			into = &translation
		case strings.HasPrefix(line, `"`):
			value = line
		default:
			into = nil
		}
		if s, err := strconv.Unquote(value); into != nil && err == nil && len(*into) < maxLine {
			*into += s
		}
		if line == "" {
			done()
			fuzzy = false
		}
	}
	done()
	return lines.Err()
}
