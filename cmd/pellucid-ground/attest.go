// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/validator"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type attestCmd struct {
	New   attestNewCmd   `cmd:"" help:"Make a key for attestations."`
	Sign  attestSignCmd  `cmd:"" help:"Sign an attestation."`
	Check attestCheckCmd `cmd:"" help:"Check an attestation: print whether it is accepted, or why not."`
}

type attestNewCmd struct {
	Out string `placeholder:"FILE" help:"Write the key to a new file, which only its owner can read."`
}

func (attestNewCmd) Help() string {
	return `The key is JSON and goes to standard output, and its DID, under which attestations are made, to
standard error. Exit codes: 0 done, 1 the file cannot be written, 2 wrong usage.`
}

func (c *attestNewCmd) Run(e *env) error {
	k, err := attest.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	told := e.Stderr
	if c.Out != "" {
		told, err = e.Stdout, validator.CreateKey(c.Out, k)
	} else {
		err = validator.WriteKey(e.Stdout, k)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(told, k.DID())
	return err
}

type attestSignCmd struct {
	Key     string    `required:"" placeholder:"FILE" help:"File of the key, as attest new wrote it."`
	Method  string    `placeholder:"DID-URL" help:"Identifier under which the key is published, if not its did:key."`
	Created time.Time `placeholder:"TIME" help:"Time of the signature (RFC 3339; default: now)."`
	Expires time.Time `placeholder:"TIME" help:"Time at which the proof expires (default: never)."`
	File    string    `arg:"" optional:"" help:"File of the attestation (default, or -: standard input)."`
}

func (attestSignCmd) Help() string {
	return `Prints the attestation with a proof (Data Integrity, eddsa-jcs-2022). The
validator_did and claim_hash are added if absent; everything else keeps its
bytes. What "attest check" would refuse is not signed. Exit codes: 0 signed, 1
refused or the input cannot be read, 2 wrong usage.`
}

func (c *attestSignCmd) Run(e *env) error {
	key, err := validator.ReadKey(c.Key)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	doc, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	o := validator.SignOptions(key, c.Method, c.Created)
	o.Expires = c.Expires
	signed, err := validator.Sign(doc, key, o)
	if err != nil {
		return err
	}
	_, err = e.Stdout.Write(append(signed, '\n'))
	return err
}

type attestCheckCmd struct {
	At                       time.Time `placeholder:"TIME" help:"Time at which the attestation must be valid (RFC 3339; default: now)."`
	JSON                     bool      `name:"json" help:"Print the result as JSON."`
	DangerouslyIngestUntyped bool      `help:"Accept text that is not plain."`
	Hash                     bool      `xor:"what" help:"Print the canonical hash instead, of any JSON object without its member proof."`
	Dedup                    bool      `xor:"what" help:"Print the two keys that find duplicates instead: of the text, and of its skeleton. Of the attestation only the proof is not checked."`
	Canonical                string    `enum:",0.2,0.3" default:"" placeholder:"V" help:"With --hash: canonicalisation 0.2 or 0.3 (default: the one that the document names, else 0.2)."`
	File                     string    `arg:"" optional:"" help:"File of the attestation (default, or -: standard input)."`
}

func (c *attestCheckCmd) Validate() error {
	if c.Canonical != "" && !c.Hash {
		return errors.New("attest: --canonical goes with --hash")
	}
	return nil
}

func (attestCheckCmd) Help() string {
	return `Checks envelope, typing, hashes and proof, as ingestion does, except the registry of domains
and duplicates. Only keys of did:key are resolved, since no network is used. A refusal names a
code, a member and a byte offset. Exit codes: 0 accepted, 1 refused or the input cannot be read,
2 wrong usage.`
}

func (c *attestCheckCmd) Run(e *env) error {
	if c.Hash || c.Dedup {
		return c.hash(e)
	}
	doc, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	rep, err := validator.Check(doc, c.At, attest.Options{DangerouslyIngestUntyped: c.DangerouslyIngestUntyped})
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, rep)
	} else {
		err = rep.WriteText(e.Stdout)
	}
	if err == nil && !rep.Accepted {
		return exit.With(exit.Failed, nil)
	}
	return err
}

// hash prints what names the attestation.
func (c *attestCheckCmd) hash(e *env) error {
	doc, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	var said string
	if c.Dedup {
		said, err = validator.DedupKeys(doc)
	} else {
		said, err = validator.Hash(doc, attest.Version(c.Canonical))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Stdout, said)
	return err
}
