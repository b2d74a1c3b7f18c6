// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
)

var semantic = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$`)

// A system is one that a release has a binary for, by the names of Go, npm and PyPI.
type system struct {
	os, arch string // of Go
	npmOS    string
	npmCPU   string
	wheel    string // the platform tags of a wheel
}

// systems are all of them. The binaries of Linux are static, so they run with every C library;
// Go 1.26 needs macOS 12.
var systems = []system{
	{"linux", "amd64", "linux", "x64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"},
	{"linux", "arm64", "linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"},
	{"darwin", "amd64", "darwin", "x64", "macosx_12_0_x86_64"},
	{"darwin", "arm64", "darwin", "arm64", "macosx_12_0_arm64"},
	{"windows", "amd64", "win32", "x64", "win_amd64"},
	{"windows", "arm64", "win32", "arm64", "win_arm64"},
}

// program is the name of the binary on the system.
func (s system) program() string { return s.file("pellucid") }

func (s system) file(name string) string {
	if s.os == "windows" {
		name += ".exe"
	}
	return name
}

type binary struct {
	system
	content []byte
	info    *debug.BuildInfo
	hook    []byte // pellucid-hook
}

// files are the binaries in a folder of a package.
func (b binary) files(folder string) []file {
	return []file{{folder + b.program(), b.content, true}, {folder + b.file("pellucid-hook"), b.hook, true}}
}

// readBinaries reads the binaries for each system. It refuses one that was built for another
// system than its folder says, and one that needs a C library.
func readBinaries(folder string) ([]binary, error) {
	var out []binary
	for _, s := range systems {
		content, info, err := s.read(folder, "pellucid")
		if err != nil {
			return nil, err
		}
		hook, _, err := s.read(folder, "pellucid-hook")
		if err != nil {
			return nil, err
		}
		out = append(out, binary{s, content, info, hook})
	}
	return out, nil
}

// read reads the binary of that name for the system.
func (s system) read(folder, name string) ([]byte, *debug.BuildInfo, error) {
	pattern := filepath.Join(folder, name+"_"+s.os+"_"+s.arch+"*", s.file(name))
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, nil, err
	}
	if len(found) != 1 {
		return nil, nil, fmt.Errorf("pack: %d files match %s, want one", len(found), pattern)
	}
	content, err := os.ReadFile(found[0])
	if err != nil {
		return nil, nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, nil, fmt.Errorf("pack: read build information of %s: %w", found[0], err)
	}
	for key, want := range map[string]string{"GOOS": s.os, "GOARCH": s.arch, "CGO_ENABLED": "0"} {
		if got := setting(info, key); got != want {
			return nil, nil, fmt.Errorf("pack: %s was built with %s=%s, want %s", found[0], key, got, want)
		}
	}
	return content, info, nil
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
