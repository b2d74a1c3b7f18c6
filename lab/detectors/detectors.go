// SPDX-License-Identifier: Apache-2.0

// Package detectors measures detectors of prompt injections, other people's beside ours, on
// the same texts: by family and by language, at their own limits and at equal false alarms.
package detectors

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/training"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// Options say what Run measures.
type Options struct {
	Root     string   // of the repository, beside which the data are
	Model    string   // file of the deep model, from there
	Programs []string // each runs detectors by name, and without a name lists them
	Cage     string   // command that the programs are run by, to take the network and memory from them
	Locales  string   // folder of locales, for those that want one
	Only     []string // names of detectors to run; none: all
	Longest  time.Duration
}

// Run measures, and writes the tables to out. It tells progress how far it has come.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	dir, err := datatest.CorporaDir(o.Root)
	if err != nil {
		return err
	}
	left, err := training.LeftOut(o.Root, dir, progress)
	if err != nil {
		return err
	}
	rows, err := load(left, dir)
	if err != nil {
		return err
	}
	columns, err := own(ctx, rows)
	if err != nil {
		return err
	}
	peers, err := others(ctx, o, rows, progress)
	if err != nil {
		return err
	}
	var tables bytes.Buffer
	write(&tables, rows, append(columns, peers...))
	if err := training.DeepTable(training.DeepTableOptions{Root: o.Root, Model: o.Model, Left: left}, &tables, progress); err != nil {
		return err
	}
	_, err = out.Write(tables.Bytes())
	return err
}

// others asks every detector of the programs, one after the other.
func others(ctx context.Context, o Options, rows []row, progress io.Writer) (columns []*column, err error) {
	home, err := os.MkdirTemp("", "detectors")
	if err != nil {
		return nil, fmt.Errorf("detectors: %w", err)
	}
	defer os.RemoveAll(home)
	for _, program := range o.Programs {
		c := cage{args: fields(o.Cage, program), env: []string{"HOME=" + home, "TMPDIR=" + home, "OMP_NUM_THREADS=1", "LOCPATH=" + o.Locales}, slowest: slowest}
		names, err := c.names(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !wanted(o.Only, name) {
				continue
			}
			col := c.ask(ctx, name, rows, o.Longest)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			fmt.Fprintf(progress, "%s: %d of %d texts %s\n", name, len(col.answers), len(rows), col.stopped)
			columns = append(columns, col)
		}
	}
	return columns, nil
}

// A cage is how the detectors of one program are run.
type cage struct {
	args    []string
	env     []string
	slowest time.Duration
}

func (c cage) start(args ...string) (*child.Process, error) {
	return child.Start(child.Command{Args: append(c.args[:len(c.args):len(c.args)], args...), Env: c.env, Stderr: func(string) {}})
}
