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

// runners start a package by its name: npx of npm, bunx of Bun, uvx of PyPI. Before the name only these flags may stand: others
// say where the package comes from.
var (
	runners     = []string{"npx", "bunx", "uvx"}
	runnerFlags = []string{"-y", "--yes", "--no", "-q", "--quiet", "--offline", "--prefer-offline", "-p", "--package", "--from", "--"}
)

// Wraps returns the words of pellucid wrap in a command line, from "wrap" on; nil if the command starts another program
// or verb. binary is where the program is said to be; it may be empty.
func Wraps(command []string, binary string) []string {
	if len(command) > 2 && bareName(command[0]) == "cmd" && strings.EqualFold(command[1], "/c") {
		command = command[2:]
	}
	if len(command) == 0 {
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
	} else if !IsOurs(command[0], binary) {
		return nil
	}
	if len(rest) == 0 || rest[0] != "wrap" {
		return nil
	}
	return rest
}

// isPackage reports whether a word names the package pellucid of a registry, in any version. A version with a colon or a
// slash would name another package.
func isPackage(word string) bool {
	version, ok := strings.CutPrefix(word, "pellucid")
	return ok && (version == "" || version[0] == '@' || version[0] == '=') && !strings.ContainsAny(version, `:/\`)
}

// IsOurs reports whether a command is this program: pellucid of the path, binary, a file that is the running program or
// one of these, or, as its build information says, another build of the same package. What stands at a relative path is a file of a project, which may
// have any name and content, and is never ours.
func IsOurs(command, binary string) bool {
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

// bareName is a command that is looked up in the path, as Windows compares names; "" of one with a path.
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
