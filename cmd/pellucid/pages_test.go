// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are the documents whose commands are parsed. Of the pages under docs, blocks that are
// marked "console" are also run, and their output is compared.
var pages = []string{
	"README.md", "docs/OPERATING.md", "docs/install.md", "docs/desktop.md", "docs/gateway.md", "docs/review.md", "docs/evidence.md",
	"docs/attestations.md", "docs/guard.md", "docs/hosts.md",
}

// TestPagesParse parses every command of this program in the code blocks of the pages.
func TestPagesParse(t *testing.T) {
	for _, name := range pages {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		commands := 0
		for _, c := range pageCommands(string(text)) {
			args, ours := pellucidArgs(c)
			if !ours {
				continue
			}
			commands++
			var line cli
			k, err := newParser(&line, &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := k.Parse(args); err != nil {
				t.Errorf("%s: %s: %v", name, c, err)
			}
		}
		if commands < 2 {
			t.Errorf("%s: only %d commands were found", name, commands)
		}
	}
}

// pageCommands returns the commands in the code blocks of a page: lines that begin with the name
// of this program, behind a prompt or not, with the lines that continue them.
func pageCommands(page string) (out []string) {
	inside, more := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inside, more = !inside, false
			continue
		}
		line = strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "> ")
		if _, behind, piped := strings.Cut(line, "| pellucid "); piped {
			line = "pellucid " + behind
		}
		switch {
		case !inside:
		case more:
			out[len(out)-1] += " " + strings.TrimSuffix(line, `\`)
			more = strings.HasSuffix(line, `\`)
		case strings.HasPrefix(line, "pellucid "), strings.HasPrefix(line, "bin/pellucid "):
			out = append(out, strings.TrimSuffix(line, `\`))
			more = strings.HasSuffix(line, `\`)
		}
	}
	return out
}

// pellucidArgs splits a command as a shell does, up to the first operator such as | or >, and
// reports whether it runs this program with arguments.
func pellucidArgs(command string) (args []string, ours bool) {
	var word strings.Builder
	var quote rune
	depth, begun := 0, false
	end := func() {
		if begun {
			args = append(args, word.String())
		}
		word.Reset()
		begun = false
	}
scan:
	for _, r := range command {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
				continue
			}
		case depth == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
			continue
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth > 0:
		case r == ' ':
			end()
			continue
		case strings.ContainsRune("|<>;&#", r):
			if b := word.String(); (r == '>' || r == '<') && b == "2" {
				word.Reset()
				begun = false
			}
			break scan
		}
		word.WriteRune(r)
		begun = true
	}
	end()
	return args[1:], len(args) > 1
}

func TestPellucidArgs(t *testing.T) {
	for command, want := range map[string]string{
		`pellucid pins list                  # all`:                  "pins|list",
		`pellucid ledger verify --key "$(cat a b)" > out`:            "ledger|verify|--key|$(cat a b)",
		`pellucid scrub 2>log`:                                       "scrub",
		`bin/pellucid wrap --name 'a b' -- sh server.sh < x | tee y`: "wrap|--name|a b|--|sh|server.sh",
	} {
		args, ours := pellucidArgs(command)
		if got := strings.Join(args, "|"); !ours || got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

// TestDocsPages runs the blocks of each page that are marked "console", in one folder with the
// files of docs/examples/notes, and compares what is printed with the page. Numbers may differ,
// and the digests and ids of a page stand for those of this run. "…" stands for any text.
// With PELLUCID_UPDATE_DOCS set, output that differs is written to the page, and the test fails.
func TestDocsPages(t *testing.T) {
	for _, name := range pages[2:] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newShell(t)
			sh.env = append(sh.env, "HOME="+sh.dir, "XDG_CONFIG_HOME="+sh.dir)
			if err := os.CopyFS(sh.dir, os.DirFS("../../docs/examples/notes")); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("../..", name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := sh.page(t, string(text))
			if got == string(text) {
				return
			}
			if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
				t.Errorf("%s does not show what its commands print", name)
			} else if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// page returns the text of a page with the output of this run where the page shows another one.
func (s *shell) page(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	ids := map[string]string{} // of the page: those of this run
	block := regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	last := 0
	for _, m := range block.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[last:m[2]])
		out.WriteString(s.console(t, text[m[2]:m[3]], ids))
		last = m[3]
	}
	out.WriteString(text[last:])
	return out.String()
}

// console runs the commands of one block and returns the block as it should be.
func (s *shell) console(t *testing.T, block string, ids map[string]string) string {
	t.Helper()
	var out strings.Builder
	for _, part := range regexp.MustCompile(`(?m)^\$ `).Split(block, -1)[1:] {
		lines := strings.SplitAfter(part, "\n")
		n := 1
		for n < len(lines) && strings.HasPrefix(lines[n], "> ") {
			n++
		}
		shown, want := strings.Join(lines[:n], ""), strings.Join(lines[n:], "")
		command := longHex.ReplaceAllStringFunc(strings.ReplaceAll(shown, "\n> ", "\n"), func(id string) string {
			if now, ok := ids[id]; ok {
				return now
			}
			return id
		})
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir, cmd.Env = s.dir, s.env
		var failed strings.Builder
		cmd.Stderr = &failed
		printed, err := cmd.Output()
		out.WriteString("$ " + shown)
		if matches(want, string(printed), ids) {
			out.WriteString(want)
			continue
		}
		t.Errorf("$ %s\nprinted (%v):\n%s\n%s\nand the page shows:\n%s", command, err, printed, &failed, want)
		out.WriteString(longHex.ReplaceAllStringFunc(string(printed), func(now string) string {
			for shown, id := range ids {
				if id == now {
					return shown
				}
			}
			ids[now] = now
			return now
		}))
	}
	return out.String()
}

var (
	longHex  = regexp.MustCompile(`[0-9a-f]{16,}`)
	variable = regexp.MustCompile(`[0-9a-f]{16,}|[0-9][0-9.,:-]*|…|\s+|[^\s…0-9a-f]+|[a-f]`)
)

// matches reports whether printed is what the page shows, and adds to ids what the digests and
// ids of the page are in this run. A line break of the page stands for any white space.
func matches(page, printed string, ids map[string]string) bool {
	var b strings.Builder
	var names []string
	b.WriteString(`(?s)^`)
	for _, word := range variable.FindAllString(strings.TrimSpace(page), -1) {
		switch {
		case len(word) >= 16 && longHex.MatchString(word):
			names = append(names, word)
			b.WriteString(`([0-9a-f]+)`)
		case word[0] >= '0' && word[0] <= '9':
			b.WriteString(`[0-9][0-9.,:-]*`)
		case word == "…":
			b.WriteString(`.*?`)
		case strings.Contains(word, "\n"): // a long line may be broken on the page
			b.WriteString(`\s*`)
		case strings.TrimSpace(word) == "":
			b.WriteString(`\s+`)
		default:
			b.WriteString(regexp.QuoteMeta(word))
		}
	}
	found := regexp.MustCompile(b.String() + `$`).FindStringSubmatch(strings.TrimSpace(printed))
	if found == nil {
		return false
	}
	for i, name := range names {
		if now, ok := ids[name]; ok && now != found[i+1] {
			return false
		}
		ids[name] = found[i+1]
	}
	return true
}

func TestMatches(t *testing.T) {
	const id = "4a0c5f7d2b91e3384a0c5f7d2b91e338"
	other := strings.Repeat("0", 32)
	for _, c := range []struct {
		page, printed string
		want          bool
	}{
		{"held  " + id + "  3 bytes\n", "held   " + other + "  14 bytes\n", true},
		{"held\n", "held\nreleased\n", false},
		{"held\n…\n", "held\nreleased\n", true},
		{"a " + id + " b " + id, "a " + other + " b " + id, false},
		{"2026-11-22 23:43Z", "2027-01-01 00:00Z", true},
		{"[\"a\",\n\"b\"]", `["a","b"]`, true},
		{"deadline", "deadlines", false},
	} {
		if got := matches(c.page, c.printed, map[string]string{}); got != c.want {
			t.Errorf("%q, %q: %v", c.page, c.printed, got)
		}
	}
}
