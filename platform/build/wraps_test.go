// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestIsThisProgram: a name proves nothing. This program is the one in the path, the running file, and any other build of
// it.
func TestIsThisProgram(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pellucid", "other"} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("path", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pellucid-linux-amd64", "path/pellucid-amd64"} {
		if err := os.Symlink(self, name); err != nil {
			t.Skip(err)
		}
	}
	running, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no build information")
	}
	for name, path := range map[string]string{"release-1.0": running.Path, "stranger": "example.com/pellucid"} {
		at := filepath.Join(dir, "of-"+name)
		for file, content := range map[string]string{"go.mod": "module " + path + "\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
			if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, file), []byte(content), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), ".")
		build.Dir = at
		if out, err := build.CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
			t.Skip("the go command is not in the path")
		} else if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "path"))
	for command, want := range map[string]bool{
		"pellucid": true, "Pellucid.exe": true, "/opt/gone/pellucid": true, self: true,
		filepath.Join(dir, "pellucid-linux-amd64"): true, "pellucid-amd64": true,
		filepath.Join(dir, "release-1.0"): true, "./release-1.0": false, filepath.Join(dir, "stranger"): false, dir: false,
		"./pellucid": false, "../x/pellucid": false, `.\pellucid.exe`: false, filepath.Join(dir, "pellucid"): false,
		filepath.Join(dir, "other"): false, "/elsewhere/pellucid": false, "sh": false, "": false, "./pellucid-linux-amd64": false,
	} {
		if got := isThisProgram(command, "/opt/gone/pellucid"); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

// TestWrapWords: a runner is recognised where it starts the package of the registry, and no other.
func TestWrapWords(t *testing.T) {
	const wrap = "wrap --name a -- srv"
	for command, want := range map[string]string{
		"pellucid " + wrap: wrap, "/opt/pellucid " + wrap: wrap, "npx pellucid " + wrap: wrap, "npx -y pellucid@1.2.3 " + wrap: wrap,
		"npx.cmd --yes pellucid@latest " + wrap: wrap, "cmd /c npx -y pellucid " + wrap: wrap, "npx -p pellucid@2 pellucid " + wrap: wrap,
		"bunx pellucid " + wrap: wrap, "uvx pellucid==1.0 " + wrap: wrap, "uvx --from pellucid pellucid " + wrap: wrap,
		"npx -y -- pellucid " + wrap: wrap, "cmd /c pellucid " + wrap: wrap, "CMD.EXE /d /s /C pellucid.exe " + wrap: wrap,
		`C:\Windows\System32\cmd.exe /q /e:on /c pellucid ` + wrap: wrap, "cmd /c npx.cmd -y pellucid " + wrap: wrap,
		"pellucid up": "", "pellucid": "", "": "", "npx": "", "npx pellucid": "", "npx -y srv " + wrap: "", "npx wrap": "",
		"npx --package=evil pellucid " + wrap: "", "npx -p evil pellucid " + wrap: "", "npx --registry=http://h pellucid " + wrap: "",
		"npx pellucid@npm:evil " + wrap: "", "npx pellucid@file:../evil " + wrap: "", "npx pellucid@evil/repo " + wrap: "",
		"npx pellucid-evil " + wrap: "", "./npx pellucid " + wrap: "", "uvx --from git+https://h/evil pellucid " + wrap: "", "cmd /c": "", "cmd": "",
		"cmd /k pellucid " + wrap: "", "cmd pellucid " + wrap: "", `C:\evil\cmd.exe /c pellucid ` + wrap: "", `.\cmd.exe /c pellucid ` + wrap: "",
		"cmd /c pellucid " + wrap + " & evil": "", "cmd /c pellucid " + wrap + "|evil": "", "cmd /c pellucid " + wrap + " %X%": "", "cmd /c evil&pellucid " + wrap: "",
		"cmd /c cmd /c pellucid " + wrap: "",
	} {
		if got := WrapWords(strings.Fields(command), "/opt/pellucid"); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q", command, got)
		}
	}
	for word, want := range map[string]string{"pellucid " + wrap: wrap, " npx  -y pellucid " + wrap: wrap, "evil": "", "": "", " ": "", `"pellucid" ` + wrap: ""} {
		if got := WrapWords([]string{"cmd", "/c", word}, ""); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("cmd /c with the word %q: %q", word, got)
		}
	}
}
