// SPDX-License-Identifier: Apache-2.0

// Package build reports the version of this program, and those of its rules for text, of Unicode and of Go.
package build

import (
	"runtime"
	"runtime/debug"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

type versions struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Sanitation string `json:"sanitation_version"`
	Unicode    string `json:"unicode_version"`
	Go         string `json:"go_version"`
	Platform   string `json:"platform"`
}

// Read says what the toolchain wrote into the binary: a module
// version where it was installed by one, the commit where it was built in a
// checkout with -buildvcs.
func Read() versions {
	v := versions{
		Version:    "(devel)",
		Sanitation: scrub.Version,
		Unicode:    scrub.UnicodeVersion,
		Go:         runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}
