// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/measure/speed"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type benchScrubCmd struct {
	JSON   bool          `name:"json" help:"Print {\"cases\": [{\"name\", \"ns\", \"memcpy_ratio\", \"mb_per_s\", \"allocs\"}]}."`
	Rounds int           `default:"11" placeholder:"N" help:"Rounds; a figure is the median of them (default ${default})."`
	Slice  time.Duration `default:"4ms" placeholder:"TIME" help:"How long each case runs in a round (default ${default})."`
}

func (benchScrubCmd) Help() string {
	return `Every text has 2,000 octets and is cleaned under each profile. Beside it stand,
measured in turns with it in the same run: a copy of the same octets (memcpy),
the normaliser of golang.org/x/text alone (norm.NFKC), and a pipeline of that, a
replacer and regular expressions as one would write it from libraries (naive).`
}

// Validate is called by kong; its error is one of usage.
func (c *benchScrubCmd) Validate() error {
	if c.Rounds < 1 || c.Rounds > 1000 || c.Slice <= 0 || c.Slice > time.Second {
		return errors.New("--rounds must be 1 to 1000, --slice at most 1s")
	}
	return nil
}

func (c *benchScrubCmd) Run(e *env) error {
	progress := newProgress(e, "bench scrub")
	got, err := speed.Measure(speed.Options{
		Rounds: c.Rounds,
		Slice:  c.Slice,
		Progress: func(done, total int) {
			progress.say(fmt.Sprintf("round %d of %d", min(done+1, total), total))
		},
	})
	progress.done()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, struct {
			Cases []speed.Case `json:"cases"`
		}{got})
	}
	w := bufio.NewWriter(e.Stdout)
	fmt.Fprintf(w, "fields of %d octets, %s %s/%s\n", speed.Octets, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	p := terminal.PaletteFor(e.Stdout, e.Getenv)
	last := ""
	for _, cs := range got {
		text, way, _ := strings.Cut(cs.Name, "/")
		if text != last {
			fmt.Fprintf(w, "\n%s\n", p.Bold(fmt.Sprintf("%-18s %12s %10s %10s %8s", text, "ns", "x memcpy", "MB/s", "allocs")))
			last = text
		}
		fmt.Fprintf(w, "  %-16s %12.0f %10.1f %10.0f %8.0f\n", way, cs.NS, cs.MemcpyRatio, cs.MBPerS, cs.Allocs)
	}
	return w.Flush()
}
