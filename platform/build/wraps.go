// SPDX-License-Identifier: Apache-2.0

package build

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// runners start a package by its name: npx of npm, bunx of Bun, uvx of PyPI. Only these flags may precede the name:
// others select the source of the package.
var (
	runners     = []string{"npx", "bunx", "uvx"}
	runnerFlags = []string{"-y", "--yes", "--no", "-q", "--quiet", "--offline", "--prefer-offline", "-p", "--package", "--from", "--"}
)

// WrapWords returns the words of pellucid wrap in a command line, from "wrap" on, or nil if the command starts another
// program or verb. binary is the configured path of the program; it may be empty.
func WrapWords(command []string, binary string) []string {
	if command = behindShell(command); len(command) == 0 {
		return nil
	}
	rest := command[1:]
	if slices.Contains(runners, bareName(command[0])) {
		named := false
		for len(rest) > 0 && (isPackage(rest[0]) || slices.Contains(runnerFlags, rest[0])) {
			named = named || isPackage(rest[0])
			rest = rest[1:]
		}
		if !named {
			return nil
		}
	} else if !isThisProgram(command[0], binary) {
		return nil
	}
	if len(rest) == 0 || rest[0] != "wrap" {
		return nil
	}
	return rest
}

// behindShell returns the command that cmd.exe is asked to run, or command itself. It is nil where cmd.exe would find more
// than a single command in it, or might, by the value of a variable.
func behindShell(command []string) []string {
	if len(command) == 0 || bareName(strings.TrimPrefix(strings.ToLower(command[0]), `c:\windows\system32\`)) != "cmd" {
		return command
	}
	for i, word := range command[1:] {
		if !strings.HasPrefix(word, "/") {
			return nil
		}
		if !strings.EqualFold(word, "/c") {
			continue
		}
		command = command[i+2:]
		if slices.ContainsFunc(command, func(word string) bool { return strings.ContainsAny(word, "&|<>^%!\"\r\n") }) {
			return nil
		}
		if len(command) == 1 { // all of the command in a single word
			return strings.Fields(command[0])
		}
		return command
	}
	return nil
}

// isPackage reports whether a word names the package pellucid of a registry, in any version. A version with a colon or a
// slash would name another package.
func isPackage(word string) bool {
	version, ok := strings.CutPrefix(word, "pellucid")
	return ok && (version == "" || version[0] == '@' || version[0] == '=') && !strings.ContainsAny(version, `:/\`)
}

// isThisProgram reports whether a command is this program: pellucid of the path, binary, the file of one of these or of
// the running program, or, according to its build information, another build of the same package. A relative
// path names a file of a project, which may have any name and content: it is never this program.
func isThisProgram(command, binary string) bool {
	if command == binary && binary != "" || bareName(command) == "pellucid" {
		return true
	}
	at, err := exec.LookPath(command)
	if err != nil || !filepath.IsAbs(command) && !isBare(command) {
		return false
	}
	is, err := os.Stat(at)
	if err != nil || !is.Mode().IsRegular() {
		return false
	}
	self, _ := os.Executable()
	inPath, _ := exec.LookPath("pellucid")
	if slices.ContainsFunc([]string{binary, self, inPath}, func(own string) bool {
		info, err := os.Stat(own)
		return err == nil && os.SameFile(is, info)
	}) {
		return true
	}
	running, ok := debug.ReadBuildInfo()
	info, err := buildinfo.ReadFile(at)
	return ok && err == nil && info.Path == running.Path
}

// isBare reports whether a command is looked up in the path.
func isBare(command string) bool { return !strings.ContainsAny(command, `/\`) }

// bareName returns a command that is looked up in the path, as Windows compares names. It is empty for a command with a path.
func bareName(command string) string {
	if !isBare(command) {
		return ""
	}
	name := strings.ToLower(command)
	for _, ending := range []string{".exe", ".cmd"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}
