// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// keysCmd is about the keys of the installation.
type keysCmd struct {
	New    keysNewCmd    `cmd:"" help:"Make a key for a log that replicas share."`
	Rotate keysRotateCmd `cmd:"" help:"Replace the key of this installation, or that of the log; remove a previous one."`
}

type keysNewCmd struct {
	Kind   string `arg:"" enum:"ledger" help:"What the key signs: ledger."`
	Origin string `arg:"" help:"Name of the log, such as example.com/log; that of an existing log stands in the first line of ledger checkpoint."`
}

func (keysNewCmd) Help() string {
	return `The key goes to standard output, and its public part to standard error. It is one line,
PRIVATE+KEY+…: write it into a secret, and name it at every replica: evidence: {key: "file:/run/secrets/ledger"}.
A log that has begun with another key takes it over with pellucid keys rotate --log --key.
Exit codes: 0 done, 2 wrong usage.`
}

func (c *keysNewCmd) Run(e *env) error {
	private, public, err := audit.NewKey(c.Origin)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	fmt.Fprintln(e.Stderr, public)
	_, err = fmt.Fprintln(e.Stdout, private)
	return err
}

type keysRotateCmd struct {
	ledgerDB
	Retire string `xor:"what" placeholder:"ID" help:"Remove this previous key of the installation; pellucid doctor lists them."`
	Log    bool   `xor:"what" help:"Replace the key that signs the log."`
	Key    string `placeholder:"env:NAME|file:PATH" help:"With --log: reference to the new key, PRIVATE+KEY+… (default: a new key in the state directory)."`
	Old    string `placeholder:"env:NAME|file:PATH" help:"With --log: reference to the present key, where it is not in the state directory."`
	JSON   bool   `name:"json" help:"With --log: print the result as JSON."`
}

func (c *keysRotateCmd) Validate() error {
	if !c.Log && (c.Key != "" || c.Old != "" || c.JSON) {
		return errors.New("--key, --old and --json go with --log")
	}
	return nil
}

func (keysRotateCmd) Help() string {
	return `The key of the installation writes fences and seals the ids of sessions, what servers get back from
clients, and what is stored of sessions. A gateway and a guard that run learn of the new
key within a second, and use it three seconds later. No session ends. The previous key opens what it has
sealed until --retire removes it: then sessions that began under it cannot be brought back after a restart, and
fences that it made cannot be checked. Keep it for as long as http.session_life (30 days), unless it has leaked.
Where PELLUCID_INSTALL_KEY gives the keys, as to replicas, this command
changes nothing and says which steps to take.

With --log, the log records the change, signed by the old key, so that a reader who trusts the first key
can follow. A running gateway takes up the new key by itself where both are of the
state directory; otherwise put its reference into the configuration and start it anew. Exit codes: 0 done; 1 there
are too many keys, no such key, or it is the current one; 2 the keys come
from PELLUCID_INSTALL_KEY; 3 the keys cannot be read or written; 4 the store cannot be reached.`
}

func (c *keysRotateCmd) Run(e *env) error {
	if c.Log {
		return c.rotateLog(e)
	}
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	if c.Retire != "" {
		if err := local.RetireKey(dir, c.Retire); err != nil {
			return err
		}
		fmt.Fprintf(e.Stdout, "The key %s is removed.\n", c.Retire)
		return nil
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	before, now, err := local.RotateKey(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "The key %s is in use. The key %s stays, so that what it has sealed opens.\n", now.ID(), before.ID())
	fmt.Fprintf(e.Stderr, "Later: pellucid keys rotate --retire %s\n", before.ID())
	return nil
}

func (c *keysRotateCmd) rotateLog(e *env) error {
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		r, err := audit.Rotate(ctx, l, dir, func() (old, next *ledger.Signer, err error) {
			if old, err = signerOf(e, "--old", c.Old); err == nil {
				next, err = signerOf(e, "--key", c.Key)
			}
			return old, next, err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, r)
		}
		_, err = fmt.Fprintf(e.Stdout, "Record %d says so: from the next one on this key signs.\n%s\n", r.Index, r.Key)
		return err
	})
}

// signerOf returns the private key that a reference stands for, or nil.
func signerOf(e *env, flag, ref string) (*ledger.Signer, error) {
	text, err := e.secrets().optional("ledger: "+flag, ref)
	if err != nil || text == "" {
		return nil, err
	}
	s, err := ledger.ParseSigner(strings.TrimSpace(text))
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("ledger: %s: %w", flag, err))
	}
	return s, nil
}
