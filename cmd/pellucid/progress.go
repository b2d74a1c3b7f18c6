// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A progress is one line on standard error that says how far a verb has come:
// rewritten in place on a terminal, and said once where nobody looks.
type progress struct {
	w      io.Writer
	prefix string
}

func newProgress(e *env, verb string) *progress {
	p := newProgressOf(e, verb+": measuring")
	p.prefix = verb + ": "
	return p
}

// newProgressOf says plain where there is no terminal.
func newProgressOf(e *env, plain string) *progress {
	if !terminal.IsTerminal(e.Stderr) {
		fmt.Fprintln(e.Stderr, plain)
		return &progress{}
	}
	return &progress{w: e.Stderr}
}

func (p *progress) say(what string) {
	if p.w != nil {
		fmt.Fprintf(p.w, "\r\x1b[K%s%s", p.prefix, terminal.Printable(what))
	}
}

func (p *progress) done() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

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
