// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print it as JSON."`
}

type versions struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Sanitation string `json:"sanitation_version"`
	Unicode    string `json:"unicode_version"`
	Go         string `json:"go_version"`
	Platform   string `json:"platform"`
}

func (c *versionCmd) Run(e *env) error {
	v := buildVersions()
	if c.JSON {
		return writeJSON(e.Stdout, v)
	}
	_, err := fmt.Fprintf(e.Stdout, "pellucid %s\nsanitation %s\nUnicode %s\n%s %s\n", v.Version, v.Sanitation, v.Unicode, v.Go, v.Platform)
	return err
}

// buildVersions says what the toolchain wrote into the binary: a module
// version where it was installed by one, the commit where it was built in a
// checkout with -buildvcs.
func buildVersions() versions {
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
