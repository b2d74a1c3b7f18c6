// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A Progress tells a person which server is being checked: on a terminal in one line that is
// written over, and elsewhere once.
type Progress struct {
	*terminal.Progress
	titles map[string]string // by name
}

// NewProgress begins to tell of these targets on w.
func NewProgress(w io.Writer, targets []*Target) *Progress {
	p := &Progress{terminal.NewProgress(w, "verifying "+terminal.Plural(len(targets), "server")+" …"), map[string]string{}}
	for _, t := range targets {
		p.titles[t.Name] = t.Title()
	}
	return p
}

// Begin is for Checker.Begin.
func (p *Progress) Begin(t *Target) { p.Say(verifying(t.Title(), surface.Step{})) }

// Question is told before each question to the model that reviews the server of that name.
func (p *Progress) Question(server string, s surface.Step) { p.Say(verifying(p.titles[server], s)) }

func verifying(title string, s surface.Step) string {
	text := "verifying " + title + " …"
	if s.Chunks > 1 {
		text += fmt.Sprintf(" part %d of %d", s.Chunk, s.Chunks)
	}
	return text
}
