// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/scripttest"
)

// pages are the documents whose commands are parsed. Of the pages under docs, blocks that are
// marked "console" are also run, and their output is compared.
var pages = []string{
	"README.md", "docs/OPERATING.md", "docs/install.md", "docs/desktop.md", "docs/gateway.md", "docs/review.md", "docs/evidence.md",
	"docs/guard.md", "docs/hosts.md",
}

// TestPagesParse parses every command of this program in the code blocks of the pages.
func TestPagesParse(t *testing.T) {
	for _, name := range pages {
		n := scripttest.ParsePage(t, "pellucid", name, func(args []string) error {
			var line cli
			k, err := newParser(&line, &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
			if err == nil {
				_, err = k.Parse(args)
			}
			return err
		})
		if n < 2 {
			t.Errorf("%s: only %d commands were found", name, n)
		}
	}
}

// TestDocsPages runs the commands of each page.
func TestDocsPages(t *testing.T) {
	for _, name := range pages[2:] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripttest.NewShell(t, "pellucid", roleVariable+"=pellucid").RunPage(t, name)
		})
	}
}
