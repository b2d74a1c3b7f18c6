// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// honestTexts are the rows of testdata/benign_tokens.txt.
func honestTexts(t *testing.T) (texts []string) {
	b, err := os.ReadFile("testdata/benign_tokens.txt")
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n") {
		if row == "" || row[0] == '#' && strings.HasPrefix(row, "# ") {
			continue
		}
		text, err := strconv.Unquote(`"` + strings.NewReplacer(`"`, `\"`, `\d`, `\\d`).Replace(row) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		texts = append(texts, text)
	}
	return texts
}

// TestHonestTokens: texts that hold spellings of tokens in an honest sense keep
// them under both profiles, and stay byte for byte under faithful.
func TestHonestTokens(t *testing.T) {
	texts := honestTexts(t)
	if len(texts) < 200 {
		t.Errorf("only %d texts", len(texts))
	}
	mcp, faithful := compile(t, Policy{}), compile(t, Policy{Profile: Faithful})
	for _, in := range texts {
		in, narrow := strings.CutPrefix(in, "mcp removes it: ")
		if out, r := clean(t, faithful, in); out != in {
			t.Errorf("faithful: %+q -> %+q: %s", in, out, describe(in, r))
		}
		if out, r := clean(t, mcp, in); r.Tokens > 0 != narrow {
			t.Errorf("mcp: %+q -> %+q: %s", in, out, describe(in, r))
		}
	}
}

// TestHonestPrograms: so do the help texts of programs that are present.
func TestHonestPrograms(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	n := 0
	for _, args := range [][]string{
		{"go", "help"}, {"go", "help", "build"}, {"go", "help", "test"}, {"go", "help", "testflag"},
		{"go", "help", "list"}, {"go", "help", "mod"}, {"go", "help", "get"}, {"go", "help", "vet"},
		{"go", "help", "environment"}, {"go", "help", "packages"}, {"go", "help", "buildconstraint"},
		{"git", "--help"}, {"git", "commit", "-h"}, {"git", "log", "-h"}, {"git", "rebase", "-h"},
		{"tar", "--help"}, {"ls", "--help"}, {"sed", "--help"}, {"grep", "--help"}, {"sort", "--help"},
		{"cp", "--help"}, {"date", "--help"}, {"awk", "--help"}, {"make", "--help"}, {"gzip", "--help"},
		{"python3", "--help"}, {"node", "--help"}, {"npm", "help"}, {"curl", "--help", "all"}, {"gcc", "--help"},
	} {
		path, err := exec.LookPath(args[0])
		if err != nil {
			continue
		}
		b, _ := exec.Command(path, args[1:]...).CombinedOutput() // many exit with 1 or 129
		if in := strings.ToValidUTF8(string(b), "?"); in != "" {
			n++
			if _, r := clean(t, s, in); r.Tokens > 0 {
				t.Errorf("%v: %s", args, describe(in, r))
			}
		}
	}
	t.Logf("%d help texts", n)
}

// aboutTokens are the folders of this project whose files spell tokens on purpose.
var aboutTokens = []string{"text/scrub", "text/frame", "text/href", "text/finding", "boundary/gateway", "boundary/surface",
	"boundary/classify", "boundary/policy", "grounding/corpus", "grounding/ground", "grounding/attest", "grounding/conform",
	"model/guard", "model/counterfactual", "app/demo", "lab", "mcp/mcpmsg",
	"platform/capture", "docs/spec", "docs/DESIGN.md", "e2e", "cmd", "packaging"}

// TestHonestSource: the other source files of this project hold no token.
func TestHonestSource(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	n := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, "../.."), string(filepath.Separator)))
		if err != nil {
			return err
		}
		if d.IsDir() && rel != "" && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		for _, skip := range aboutTokens {
			if rel == skip && d.IsDir() {
				return filepath.SkipDir
			} else if rel == skip {
				return nil
			}
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".md" && ext != ".yaml" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(b) {
			return err
		}
		if strings.Contains(string(b), "<|") {
			return nil // it speaks of tokens
		}
		n++
		if _, r := clean(t, s, string(b)); r.Tokens > 0 {
			t.Errorf("%s: %s", rel, describe(string(b), r))
		}
		return nil
	})
	if err != nil || n < 100 {
		t.Errorf("%d files: %v", n, err)
	}
}
