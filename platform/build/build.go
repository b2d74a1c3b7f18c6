// SPDX-License-Identifier: Apache-2.0

// Package build reports the versions of this program, of its rules for text, of Unicode and of Go, and recognizes commands that start it.
package build

import (
	"runtime"
	"runtime/debug"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Versions is what the toolchain wrote into the binary: a module version where go install or a
// tag gave one, and the commit where the binary was built in a checkout.
type Versions struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	CommitTime string `json:"commit_time,omitempty"` // RFC 3339
	Modified   *bool  `json:"modified,omitempty"`    // the checkout had changes that are not in the commit; absent without a commit
	Sanitation string `json:"sanitation_version"`
	Unicode    string `json:"unicode_version"`
	Go         string `json:"go_version"`
	Platform   string `json:"platform"`
}

// A Module is a part of the binary, with the hash by which go.sum and the checksum database know it.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	Sum     string `json:"sum,omitempty"`
}

// Read returns the versions of this binary.
func Read() Versions {
	info, _ := debug.ReadBuildInfo()
	return read(info)
}

func read(info *debug.BuildInfo) Versions {
	v := Versions{
		Version:    "(devel)",
		Sanitation: scrub.Version,
		Unicode:    scrub.UnicodeVersion,
		Go:         runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info == nil {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.CommitTime = s.Value
		case "vcs.modified":
			modified := s.Value != "false"
			v.Modified = &modified
		}
	}
	return v
}

// Modules lists the modules that this binary was made of, its own first. A module that go.mod
// replaces is listed as what takes its place.
func Modules() []Module {
	info, _ := debug.ReadBuildInfo()
	return modules(info)
}

func modules(info *debug.BuildInfo) []Module {
	list := []Module{}
	if info == nil {
		return list
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		for m.Replace != nil {
			m = m.Replace
		}
		list = append(list, Module{m.Path, m.Version, m.Sum})
	}
	return list
}
