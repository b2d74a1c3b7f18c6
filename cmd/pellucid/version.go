// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/boundary/pinfile"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print the versions as JSON, also those of the formats that this program writes, and of its modules with their hashes."`
}

// formats is the version of each format that this binary writes.
type formats struct {
	Configuration  string `json:"configuration"`
	Store          int64  `json:"store"` // the number of the newest migration
	Surface        string `json:"surface"`
	Pin            string `json:"pin"`
	PinFile        string `json:"pin_file"`
	Evidence       string `json:"evidence"`
	Counterfactual string `json:"counterfactual"`
	Calibration    string `json:"calibration"`
}

func (c *versionCmd) Run(e *env) error {
	v := build.Read()
	if c.JSON {
		schema, err := storage.SchemaVersion()
		if err != nil {
			return err
		}
		return terminal.WriteJSON(e.Stdout, struct {
			build.Versions
			Formats formats        `json:"formats"`
			Modules []build.Module `json:"modules"`
		}{v, formats{
			Configuration: rules.FormatVersion, Store: schema, Surface: surface.DumpFormat, Pin: surface.PinFormat, PinFile: pinfile.Format,
			Evidence: ledger.PredicateType, Counterfactual: counterfactual.RecordVersion, Calibration: analysis.CalibrationVersion,
		}, build.Modules()})
	}
	commit := ""
	if v.Commit != "" {
		commit = fmt.Sprintf("commit %s of %s", v.Commit, v.CommitTime)
		if v.Modified != nil && *v.Modified {
			commit += ", with changes that are not in it"
		}
		commit += "\n"
	}
	_, err := fmt.Fprintf(e.Stdout, "pellucid %s\n%ssanitation %s\nUnicode %s\n%s %s\n", v.Version, commit, v.Sanitation, v.Unicode, v.Go, v.Platform)
	return err
}
