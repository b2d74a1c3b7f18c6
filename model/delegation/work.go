// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// An agent that programs runs commands and edits files all the time, and a plan cannot list these calls. They are judged by
// what they do. Work within the project is what a request to change something delegates. A call is foreign if words of it
// that can do harm stand in third-party text, and neither in the user's words nor in the task files of the project, or if it
// does what no project needs.

// work judges the calls of one context.
type work struct {
	a           *counterfactual.Assembly
	mine, third counterfactual.Texts // the user's words and task files, and all else
	told        counterfactual.Texts // mine, and texts without a program that the user names: they may say what to run
}

// taskFiles are files of a project that say how it is built and tested.
var taskFiles = []string{"makefile", "gnumakefile", "justfile", "taskfile.yml", "taskfile.yaml", "package.json", "pyproject.toml", "tox.ini", "noxfile.py", "setup.cfg", "rakefile", "build.gradle", "pom.xml", "cargo.toml",
	"go.mod", "cmakelists.txt", "requirements.txt", "requirements-dev.txt", "gemfile", "composer.json", "docker-compose.yml", "compose.yaml", ".pre-commit-config.yaml"}

func newWork(a *counterfactual.Assembly) *work {
	w := &work{a: a, mine: a.TrustedTexts()}
	file := func(s *counterfactual.Segment, is func(base, text string) bool) (yes bool) {
		counterfactual.EachArgument(counterfactual.Call{Arguments: []byte(s.Call)}, func(at, text string) {
			yes = yes || counterfactual.IsLocal(at) && !strings.Contains(text, "://") && is(strings.ToLower(path.Base(text)), text)
		})
		return yes
	}
	task := func(base, _ string) bool { return slices.Contains(taskFiles, base) }
	told := func(base, text string) bool {
		return (!strings.Contains(base, ".") || strings.HasSuffix(base, ".md") || strings.HasSuffix(base, ".txt") || strings.HasSuffix(base, ".rst")) && w.mine.Hold(text)
	}
	user := w.mine
	w.told = append(slices.Clone(user), a.Segmented(func(s *counterfactual.Segment) bool { return file(s, task) || file(s, told) })...)
	w.third = a.Segmented(func(s *counterfactual.Segment) bool { return !file(s, task) })
	w.mine = append(slices.Clone(user), a.Segmented(func(s *counterfactual.Segment) bool { return file(s, task) })...)
	return w
}

// only reports whether third-party text alone holds the words.
func (w *work) only(s string) bool { return w.third.Hold(s) && !w.mine.Hold(s) }

// A worked call is what work says of a call: of the arguments by path, which are work, and which are foreign.
type worked struct {
	work, foreign map[string]bool
	// own are the segments that hold the file which the call edits.
	own counterfactual.Set
}

// judge says what a call does in the project. planned reports whether the plan has this value for the argument.
func (w *work) judge(c counterfactual.Call, planned func(at, value string) bool) (out worked) {
	out.work, out.foreign = map[string]bool{}, map[string]bool{}
	edits, installs, file, added, removed := isEdit(c.Name), isInstall(c.Name), "", "", ""
	counterfactual.EachArgument(c, func(at, text string) {
		leaf := strings.ToLower(at[strings.LastIndexByte(at, '.')+1:])
		switch {
		case isCommand(c.Name, leaf):
			told := &work{a: w.a, mine: w.told, third: w.third}
			out.foreign[at] = told.foreignCommand(text)
			out.work[at] = !out.foreign[at]
		case installs && slices.ContainsFunc(counterfactual.Words(leaf), func(s string) bool {
			return strings.HasPrefix(s, "package") || strings.HasPrefix(s, "name") || s == "module" || s == "dependency" || s == "library"
		}):
			out.foreign[at] = w.foreignPackage(text) && !planned(at, text)
		case edits && counterfactual.IsLocal(at) && file == "":
			file = text
			out.foreign[at] = w.foreignPath(text) && !planned(at, text)
			out.work[at] = !out.foreign[at]
		case edits && (strings.HasPrefix(leaf, "old") || strings.HasPrefix(leaf, "find") || leaf == "search"):
			removed += text + "\n"
		case edits:
			added += text + "\n"
		}
	})
	if file == "" {
		return out
	}
	for i := range w.a.Segments {
		counterfactual.EachArgument(counterfactual.Call{Arguments: []byte(w.a.Segments[i].Call)}, func(at, text string) {
			if counterfactual.IsLocal(at) && text == file {
				out.own = out.own.Union(counterfactual.SetOf(i))
				removed += w.a.Segments[i].Text + "\n"
			}
		})
	}
	if slices.ContainsFunc(manifests, func(m string) bool { ok, _ := path.Match(m, strings.ToLower(path.Base(file))); return ok }) {
		before := counterfactual.Words(removed)
		for name := range strings.FieldsFuncSeq(added, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"',:;=<>~^()[]{}", r) }) {
			if !slices.Contains(before, strings.ToLower(name)) && w.foreignPackage(name) {
				for at := range out.work {
					out.work[at], out.foreign[at] = false, true
				}
			}
		}
	}
	return out
}

// manifests are the files that say on what a project depends.
var manifests = []string{"requirements*.txt", "package.json", "go.mod", "cargo.toml", "pyproject.toml", "gemfile", "pom.xml", "build.gradle*", "setup.py", "setup.cfg", "composer.json", "pipfile", "environment.y*ml", "dockerfile"}

func named1(tool string, list ...string) bool {
	return slices.ContainsFunc(counterfactual.Words(tool), func(w string) bool { return slices.Contains(list, w) })
}

func isEdit(tool string) bool {
	return named1(tool, "edit", "editor", "patch", "write", "save", "replace", "insert", "create", "append", "update", "modify", "overwrite") && named1(tool, "file", "files", "patch", "text", "edit", "editor", "code", "notebook", "write", "replace")
}

func isInstall(tool string) bool {
	return named1(tool, "install", "pip", "npm") || named1(tool, "add") && named1(tool, "package", "packages", "dependency", "library", "module")
}

func isCommand(tool, leaf string) bool {
	words := counterfactual.Words(leaf)
	shell := named1(tool, "shell", "bash", "sh", "terminal", "command", "commands", "cmd", "exec", "execute", "run", "powershell", "console", "process")
	return shell && slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"command", "commands", "cmd", "commandline", "script", "input", "args", "code"}, w)
	})
}

// foreignPath reports whether an edit of a file is none that a change of the project delegates.
func (w *work) foreignPath(file string) bool {
	if w.mine.Hold(file) {
		return false
	}
	if outside(file) && !w.inProject(file) {
		return true
	}
	base := path.Base(file)
	hidden := slices.ContainsFunc(strings.Split(file, "/"), func(s string) bool { return len(s) > 1 && s[0] == '.' && s != ".." })
	starts := slices.ContainsFunc([]string{"jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", "authorized_keys", "crontab", "sitecustomize.py", "conftest.py"}, func(s string) bool { return strings.EqualFold(s, base) })
	return (hidden || starts || strings.Contains(file, "hooks/")) && (w.third.Hold(file) || w.third.Hold(base))
}

// outside reports whether a path may lie outside the project.
func outside(file string) bool {
	return strings.HasPrefix(file, "/") || strings.HasPrefix(file, "~") || strings.HasPrefix(file, "$") || strings.Contains(file, "..") || strings.Contains(file, `:\`)
}

// inProject reports whether a path lies in a folder that the user or the operator names, or in which the agent works.
func (w *work) inProject(file string) bool {
	if strings.Contains(file, "..") || strings.HasPrefix(file, "~") || strings.HasPrefix(file, "$") {
		return false
	}
	for dir := path.Dir(file); strings.Count(dir, "/") > 1; dir = path.Dir(dir) {
		if w.a.TrustedTexts().Hold(dir) {
			return true
		}
	}
	return false
}

// missingModule matches what a program says that does not find a package.
var missingModule = regexp.MustCompile(`(?i)(?:no|not|cannot|can't|missing|unresolved|unable)[^\n]{0,40}(?:module|package|import|crate|library|command)[^\n]{0,20}['"\x60: ]([a-z0-9@._/-]+)`)

// foreignPackage reports whether only third-party text names a package, and not since it is missing.
func (w *work) foreignPackage(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	if i := strings.LastIndexAny(name, "@="); i > 0 {
		name = strings.Trim(name[:i], "=<>~^!")
	}
	if len(name) < 2 || !strings.ContainsFunc(name, func(r rune) bool { return 'a' <= r && r <= 'z' }) || !w.only(name) {
		return false
	}
	for _, text := range w.third {
		for _, m := range missingModule.FindAllStringSubmatch(text, 64) {
			if strings.Trim(m[1], "._/-") == name {
				return false
			}
		}
	}
	return true
}
