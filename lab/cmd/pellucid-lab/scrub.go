// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/speed"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type scrubCmd struct {
	JSON   bool          `name:"json" help:"Print {\"cases\": [{\"name\", \"ns\", \"memcpy_ratio\", \"mb_per_s\", \"allocs\"}]}."`
	Rounds int           `default:"11" placeholder:"N" help:"Number of rounds; a figure is their median (default ${default})."`
	Slice  time.Duration `default:"4ms" placeholder:"TIME" help:"Time that each case runs in a round (default ${default})."`
}

func (scrubCmd) Help() string {
	return `Every text has 2,000 bytes and is cleaned under each profile. Three other operations are measured
in turns with it: a copy of the same bytes (memcpy), the normaliser of golang.org/x/text alone
(norm.NFKC), and a pipeline of that, a replacer and regular expressions, as one would build it from
libraries (naive).`
}

// Validate is called by kong; its error is one of usage.
func (c *scrubCmd) Validate() error {
	if c.Rounds < 1 || c.Rounds > 1000 || c.Slice <= 0 || c.Slice > time.Second {
		return errors.New("--rounds must be 1 to 1000, --slice at most 1s")
	}
	return nil
}

func (c *scrubCmd) Run(e *env) error {
	progress := newProgress(e, "scrub")
	got, err := speed.Measure(speed.Options{
		Rounds: c.Rounds,
		Slice:  c.Slice,
		Progress: func(done, total int) {
			progress.Say(fmt.Sprintf("round %d of %d", min(done+1, total), total))
		},
	})
	progress.Done()
	if err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, struct {
			Cases []speed.Case `json:"cases"`
		}{got})
	}
	return speed.PrintCases(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), got)
}
