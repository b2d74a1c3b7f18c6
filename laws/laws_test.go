// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"bytes"
	"fmt"
	"go/doc"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// hidden lists the code points that no file of this repository may hold raw:
// everything that scrub removes (docs/spec/scrub.md), written down a second
// time on purpose, so that the law does not lean on the tables that it guards.
// A TAB and a line feed are the only controls that text needs.
var hidden = [][2]rune{
	{0x0000, 0x0008}, {0x000B, 0x001F}, {0x007F, 0x009F}, // controls
	{0x00AD, 0x00AD}, {0x034F, 0x034F}, {0x061C, 0x061C},
	{0x115F, 0x1160}, {0x1680, 0x1680}, {0x17B4, 0x17B5}, {0x180B, 0x180F},
	{0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
	{0x3164, 0x3164}, {0xFDD0, 0xFDEF}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
	{0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB},
	{0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
}

func isHidden(r rune) bool {
	if r&0xFFFE == 0xFFFE { // the noncharacters at the end of each plane
		return true
	}
	return slices.ContainsFunc(hidden, func(lohi [2]rune) bool { return lohi[0] <= r && r <= lohi[1] })
}

// firstHidden returns where the first hidden code point or ill-formed byte
// stands in b, and what it is; line 0 means that there is none.
func firstHidden(b []byte) (line int, what string) {
	line = 1
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return line, fmt.Sprintf("ill-formed UTF-8 (byte %#02x)", b[i])
		case isHidden(r):
			return line, fmt.Sprintf("%U", r)
		case r == '\n':
			line++
		}
		i += n
	}
	return 0, ""
}

// binary holds the extensions of files that are not text.
var binary = []string{".bin", ".safetensors", ".png", ".ico", ".gz", ".bz2", ".zst", ".woff2", ".pdf"}

func TestNoHiddenCharacters(t *testing.T) {
	for _, path := range textFiles(t) {
		if line, what := firstHidden(readFile(t, path)); line != 0 {
			t.Errorf("%s:%d: %s stands raw: write it as an escape", path, line, what)
		}
	}
}

func TestFirstHidden(t *testing.T) {
	for _, tt := range []struct {
		in   string
		line int
		what string
	}{
		{"plain\n\ttext, déjà vu, 日本\n", 0, ""},
		{"a\r\n", 1, "U+000D"},
		{"a\n\u202eb", 2, "U+202E"},
		{"\ufeff", 1, "U+FEFF"},
		{"\n\n\U0001F469\u200d\U0001F4BB", 3, "U+200D"},
		{"\u2764\ufe0f", 1, "U+FE0F"},
		{"\U000E0041", 1, "U+E0041"},
		{"\U0010FFFF", 1, "U+10FFFF"},
		{"\x00", 1, "U+0000"},
		{"\xff", 1, "ill-formed UTF-8 (byte 0xff)"},
	} {
		if line, what := firstHidden([]byte(tt.in)); line != tt.line || what != tt.what {
			t.Errorf("firstHidden(%+q) = %d, %q; want %d, %q", tt.in, line, what, tt.line, tt.what)
		}
	}
}

// homes finds paths into somebody's home directory. Names that documentation
// uses for nobody in particular are let through.
var homes = regexp.MustCompile(`(?:/ro` + `ot|/(?:home|Users)/([A-Za-z0-9._-]+))/`)

var nobodies = []string{"me", "you", "user", "alice", "bob"}

// TestNoMachinePaths fails where a file says on which machine it was written.
func TestNoMachinePaths(t *testing.T) {
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range textFiles(t) {
		b := readFile(t, path)
		for _, m := range homes.FindAllSubmatch(b, -1) {
			if !slices.Contains(nobodies, string(m[1])) {
				t.Errorf("%s mentions a home directory: %s", path, m[0])
				break
			}
		}
		if strings.Count(filepath.ToSlash(here), "/") >= 2 && bytes.Contains(b, []byte(here)) {
			t.Errorf("%s mentions the directory of this checkout", path)
		}
	}
}

// vague lists package names that say nothing of what is inside.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "shared", "lib", "manager", "service", "types", "core"}

func TestPackageNames(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, name := range []string{strings.TrimSuffix(f.ast.Name.Name, "_test"), filepath.Base(filepath.Dir(f.path))} {
			if slices.Contains(vague, name) {
				t.Errorf("%s: %q names no one thing", f.path, name)
			}
		}
	}
}

// TestPackageComments wants one comment for each package, which begins with
// one sentence, as godoc expects it, that says all. A format may follow.
func TestPackageComments(t *testing.T) {
	type pkg struct {
		name     string
		comments []string
	}
	pkgs := map[string]*pkg{}
	for _, f := range goFiles(t) {
		dir := filepath.ToSlash(filepath.Dir(f.path))
		inTest := strings.HasSuffix(f.path, "_test.go")
		if f.ignored || inTest && dir != "laws" {
			continue
		}
		if pkgs[dir] == nil {
			pkgs[dir] = &pkg{name: f.ast.Name.Name}
		}
		if f.ast.Doc != nil {
			pkgs[dir].comments = append(pkgs[dir].comments, f.ast.Doc.Text())
		}
	}
	for dir, p := range pkgs {
		if len(p.comments) != 1 {
			t.Errorf("%s: %d package comments, want one", dir, len(p.comments))
			continue
		}
		if why := wrongComment(p.name, filepath.Base(dir), p.comments[0]); why != "" {
			t.Errorf("%s: the package comment %s", dir, why)
		}
	}
}

func wrongComment(name, dir, text string) string {
	want := "Package " + name + " "
	if name == "main" {
		want = "Command " + dir + " "
	}
	if !strings.HasPrefix(text, want) {
		return fmt.Sprintf("does not begin with %q", want)
	}
	if first := new(doc.Package).Synopsis(text); !strings.HasSuffix(first, ".") || len(first) > 200 {
		return "does not begin with one sentence of at most 200 bytes"
	}
	return ""
}

// textFiles lists the text files that git tracks or would track; outside of
// git, every text file but build output.
func textFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	if out, err := exec.Command("git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard").Output(); err == nil {
		all = strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	} else {
		all = walk(t)
	}
	var out []string
	for _, path := range all {
		// A file that git knows may be gone from the work tree.
		if info, err := os.Lstat(rooted(path)); err != nil || !info.Mode().IsRegular() || slices.Contains(binary, filepath.Ext(path)) {
			continue
		}
		out = append(out, path)
	}
	if len(out) < 20 {
		t.Fatalf("only %d files found: this test has lost sight of the repository", len(out))
	}
	return out
}

func walk(t *testing.T) []string {
	var out []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".tools", "bin", "node_modules"}, d.Name()) {
			return fs.SkipDir
		}
		if !d.IsDir() {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(rooted(path))
	if err != nil && !os.IsNotExist(err) { // gone since it was listed
		t.Fatal(err)
	}
	return b
}

// licensed are the endings and names of the files that say their licence.
var licensed = []string{".go", ".mjs", ".py", ".sh", ".js", "Makefile", ".ci/run"}

// TestSPDX fails where a source file does not say its licence in one of its first three lines.
// Tables derived from Unicode data are under the licence of Unicode too (NOTICE).
func TestSPDX(t *testing.T) {
	checked := 0
	for _, path := range textFiles(t) {
		if !slices.ContainsFunc(licensed, func(end string) bool { return strings.HasSuffix(path, end) }) {
			continue
		}
		checked++
		want := "SPDX-License-Identifier: Apache-2.0"
		if strings.HasPrefix(path, "text/ucd/tables_") {
			want += " AND Unicode-DFS-2016"
		}
		head := strings.SplitN(string(readFile(t, path)), "\n", 4)
		if !slices.ContainsFunc(head[:min(3, len(head))], func(line string) bool { return strings.HasSuffix(line, " "+want) }) {
			t.Errorf("%s: the first lines do not say %q", path, want)
		}
	}
	if checked < 500 {
		t.Errorf("only %d files were looked at", checked)
	}
}
