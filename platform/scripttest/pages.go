// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// A Shell has the program under test in its path, and a state directory of its own.
type Shell struct {
	Dir string
	Env []string
}

// NewShell returns a shell in which the name of a program stands for the test binary. environ is what makes the test binary be
// that program.
func NewShell(t *testing.T, program string, environ ...string) *Shell {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, program)); err != nil {
		t.Fatal(err)
	}
	return &Shell{dir, append(append(os.Environ(), environ...), "PELLUCID_DB=", "PELLUCID_STATE="+filepath.Join(dir, "state"), "HOME="+dir, "XDG_CONFIG_HOME="+dir,
		"PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"))}
}

// ParsePage parses every command of a program in the code blocks of a page, and returns their number.
func ParsePage(t *testing.T, program, name string, parse func(args []string) error) (commands int) {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pageCommands(program, string(text)) {
		args, ours := arguments(c)
		if !ours {
			continue
		}
		commands++
		if err := parse(args); err != nil {
			t.Errorf("%s: %s: %v", name, c, err)
		}
	}
	return commands
}

// RunPage runs the blocks of a page that are marked "console", in one folder with the
// files of docs/examples/notes, and compares what is printed with the page. Numbers may differ,
// and the digests and ids of a page stand for those of this run. "…" stands for any text.
// With PELLUCID_UPDATE_DOCS set, output that differs is written to the page, and the test fails.
func (s *Shell) RunPage(t *testing.T, name string) {
	t.Helper()
	if err := os.CopyFS(s.Dir, os.DirFS("../../docs/examples/notes")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("../..", name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := s.page(t, string(text))
	if got == string(text) {
		return
	}
	if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
		t.Errorf("%s does not show what its commands print", name)
	} else if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pageCommands returns the commands in the code blocks of a page: lines that begin with the name
// of a program, behind a prompt or not, with the lines that continue them.
func pageCommands(program, page string) (out []string) {
	inside, more := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inside, more = !inside, false
			continue
		}
		line = strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "> ")
		if _, behind, piped := strings.Cut(line, "| "+program+" "); piped {
			line = program + " " + behind
		}
		switch {
		case !inside:
		case more:
			out[len(out)-1] += " " + strings.TrimSuffix(line, `\`)
			more = strings.HasSuffix(line, `\`)
		case strings.HasPrefix(line, program+" "), strings.HasPrefix(line, "bin/"+program+" "):
			out = append(out, strings.TrimSuffix(line, `\`))
			more = strings.HasSuffix(line, `\`)
		}
	}
	return out
}

// arguments splits a command as a shell does, up to the first operator such as | or >, and
// reports whether it runs a program with arguments.
func arguments(command string) (args []string, ours bool) {
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

// page returns the text of a page with the output of this run where the page shows another one.
func (s *Shell) page(t *testing.T, text string) string {
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
func (s *Shell) console(t *testing.T, block string, ids map[string]string) string {
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
		cmd.Dir, cmd.Env = s.Dir, s.Env
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
