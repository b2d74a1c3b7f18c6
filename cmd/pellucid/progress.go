// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A bar tells a person on a terminal how far a verb has come; the nil bar, for
// where nobody looks, does nothing.
type bar struct {
	p *mpb.Progress
	b *mpb.Bar
}

// newBar draws on standard error. total is the length of the whole in whatever
// unit, 0 if it is not known; count is asked for what stands beside the bar.
func newBar(e *env, name string, total int64, count func() string) *bar {
	if !terminal.IsTerminal(e.Stderr) || e.Getenv("TERM") == "dumb" {
		return nil
	}
	p := mpb.New(mpb.WithOutput(e.Stderr), mpb.WithWidth(40))
	name += "  "
	counted := decor.Any(func(decor.Statistics) string { return "  " + count() })
	options := []mpb.BarOption{mpb.PrependDecorators(decor.Name(name)), mpb.AppendDecorators(counted), mpb.BarRemoveOnComplete()}
	if total > 0 {
		options[1] = mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), counted, decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO))
		return &bar{p: p, b: p.New(total, mpb.BarStyle().Rbound("]").Lbound("["), options...)}
	}
	return &bar{p: p, b: p.New(0, mpb.SpinnerStyle(), options...)}
}

// at moves the bar to n.
func (b *bar) at(n int64) {
	if b != nil {
		b.b.SetCurrent(n)
	}
}

// done takes the bar away.
func (b *bar) done() {
	if b != nil {
		b.b.Abort(true)
		b.p.Wait()
	}
}
