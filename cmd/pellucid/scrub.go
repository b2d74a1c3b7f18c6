// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

type scrubCmd struct {
	Profile string `enum:"faithful,mcp,veritas-0.1,surface" default:"faithful" help:"Profile: ${enum}."`
	Max     int    `placeholder:"N" help:"Cut the text at N code points (mcp, faithful; default 1048576) or N bytes (veritas-0.1; default 2000)."`
	Field   string `enum:",rationale,qualifications,quote" default:"" placeholder:"F" help:"With veritas-0.1: field that the text is from, which sets its length limit: rationale, qualifications (2000 bytes) or quote (1000)."`
	JSON    bool   `name:"json" xor:"form" help:"Print the text with everything that was found, as JSON."`
	JSONL   bool   `name:"jsonl" xor:"form" help:"Read JSON lines and print them, with the member named by --key cleaned."`
	Key     string `default:"text" placeholder:"NAME" help:"Name of the member that --jsonl cleans."`
	tokenFlags
	Explain bool     `xor:"form" help:"Show what was hidden in the text, and what was removed."`
	URI     []string `name:"uri" sep:"none" placeholder:"URI" help:"Check this URI of a third party instead: print it as a reader should see it, with what it leads to in front, or why it is refused. May be repeated; - reads them from standard input, one per line."`
	File    string   `arg:"" optional:"" help:"File of the text (default, or -: standard input)."`
}

func (scrubCmd) Help() string {
	return `Reads at most 32 MiB (with --jsonl, that much per row) of any bytes and prints clean text. Exit
codes: 0 done, also where much was removed; 1 the input cannot be read, a row of --jsonl has no
text (it is printed with a member "error", and all other rows are cleaned), or the profile
surface, which changes nothing, refuses the text, or a URI is refused; 2 wrong usage.`
}

func (c *scrubCmd) Validate() error {
	_, err := c.compile(nil)
	return err
}

func (c *scrubCmd) compile(tokens *scrub.TokenTable) (*scrub.Scrubber, error) {
	profile, ok := scrub.ParseProfile(c.Profile)
	if !ok {
		return nil, errors.New("scrub: unknown profile")
	}
	p := scrub.Policy{Profile: profile, Tokens: tokens}
	switch {
	case c.Max < 0:
		return nil, errors.New("scrub: --max is negative")
	case c.Field != "" && profile != scrub.Veritas:
		return nil, errors.New("scrub: --field is for the profile veritas-0.1")
	case c.Field != "" && c.Max != 0:
		return nil, errors.New("scrub: --field and --max exclude each other")
	case c.Field == "quote":
		p.MaxBytes = scrub.QuoteMaxBytes
	case profile == scrub.Veritas:
		p.MaxBytes = c.Max
	case profile == scrub.Surface && c.Max != 0:
		return nil, errors.New("scrub: the profile surface changes nothing, so it has no --max")
	default:
		p.MaxChars = c.Max
	}
	return scrub.Compile(p)
}

func (c *scrubCmd) Run(e *env) error {
	if len(c.URI) > 0 {
		return c.uris(e)
	}
	tokens, err := c.tokenFlags.read("scrub")
	if err != nil {
		return err
	}
	s, err := c.compile(tokens)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if c.JSONL {
		return terminal.EditRows(e.Stdout, e.Stdin, terminal.RowOptions{File: c.File, Key: c.Key, Verb: "scrub", Done: "cleaned"}, terminal.CleanRows(s))
	}
	b, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	in := string(b)
	var r scrub.Result
	s.Scrub(in, &r)
	switch {
	case c.JSON:
		err = terminal.WriteJSON(e.Stdout, terminal.NewCleaned(s, in, &r))
	case c.Explain:
		err = terminal.Explain(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), s, in, &r)
	case r.Refused == 0:
		_, err = io.WriteString(e.Stdout, r.Clean.String())
	}
	switch {
	case err != nil:
		return fmt.Errorf("scrub: write: %w", err)
	case r.Refused != 0:
		return terminal.Refusal(&r)
	case r.Truncated():
		fmt.Fprintln(e.Stderr, "pellucid: scrub: the text was cut at its ceiling (--max)")
	}
	return nil
}

// tokenFlags are the operator's own control tokens.
type tokenFlags struct {
	Tokens string `placeholder:"FILE" help:"Also treat what this file lists as control tokens (see docs/spec/tokens.md)."`
}

// read returns the table of tokens, nil where the flag is not set. verb begins an
// error.
func (f *tokenFlags) read(verb string) (*scrub.TokenTable, error) {
	if f.Tokens == "" {
		return nil, nil
	}
	b, err := terminal.ReadInput(f.Tokens, strings.NewReader(""))
	if err == nil {
		var table *scrub.TokenTable
		if table, err = scrub.Builtin().With(string(b)); err == nil {
			return table, nil
		}
	}
	return nil, exit.With(exit.Config, fmt.Errorf("%s: --tokens: %w", verb, err))
}
