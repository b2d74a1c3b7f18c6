// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/scripttest"
)

const page = "docs/attestations.md"

// TestPagesParse parses every command of this program in the code blocks of the pages.
func TestPagesParse(t *testing.T) {
	for _, name := range []string{"README.md", "docs/OPERATING.md", "docs/gateway.md", page} {
		n := scripttest.ParsePage(t, "pellucid-ground", name, func(args []string) error {
			var line cli
			k, err := newParser(&line, &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
			if err == nil {
				_, err = k.Parse(args)
			}
			return err
		})
		if name == page && n < 2 {
			t.Errorf("%s: only %d commands were found", name, n)
		}
	}
}

// TestDocsPages runs the commands of the page.
func TestDocsPages(t *testing.T) {
	scripttest.NewShell(t, "pellucid-ground", asProgram+"=1").RunPage(t, page)
}
