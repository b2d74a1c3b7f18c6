// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
)

// keysCmd is about the keys of the installation.
type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"List the ids of the keys of this installation."`
	Rotate keysRotateCmd `cmd:"" help:"Make a new key, which takes over from the current one."`
	Retire keysRetireCmd `cmd:"" help:"Remove a previous key."`
}

type keysListCmd struct {
	JSON bool `name:"json" help:"Print one JSON object for each key, as JSON lines."`
}

func (keysListCmd) Help() string {
	return `The current key writes fences and seals the ids of sessions, what servers get back from clients,
and what is stored of sessions and conversations. A previous key only opens what it has sealed. The
id of a key is derived from it and is no secret. The key that signs the log of decisions is another
one: pellucid ledger rotate replaces it. Exit codes: 0 done; 3 the keys cannot be read.`
}

func (c *keysListCmd) Run(e *env) error {
	dir, err := install.Open()
	if err != nil {
		return err
	}
	keys, err := install.Keys(dir)
	if err != nil {
		return err
	}
	for i, k := range keys {
		state := "previous"
		if i == 0 {
			state = "current"
		}
		if c.JSON {
			b, err := json.Marshal(map[string]string{"id": k.ID(), "state": state})
			if err != nil {
				return err
			}
			fmt.Fprintf(e.Stdout, "%s\n", b)
			continue
		}
		fmt.Fprintf(e.Stdout, "%s  %s\n", k.ID(), state)
	}
	return nil
}

type keysRotateCmd struct{}

func (keysRotateCmd) Help() string {
	return `A gateway and a guard that run learn of the new key within a second, and use it three seconds
later. No session ends. Where PELLUCID_INSTALL_KEY gives the keys, as to replicas, this command
changes nothing and says which steps to take. The key that signs the log of decisions is another one:
pellucid ledger rotate replaces it. Exit codes: 0 done; 1 there are too many keys; 2 the keys come
from PELLUCID_INSTALL_KEY; 3 the keys cannot be read or written.`
}

func (keysRotateCmd) Run(e *env) error {
	dir, err := install.Open()
	if err != nil {
		return err
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	before, now, err := install.RotateKey(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "The key %s is in use. The key %s stays, so that what it has sealed opens.\n", now.ID(), before.ID())
	fmt.Fprintf(e.Stderr, "Later: pellucid keys retire %s\n", before.ID())
	return nil
}

type keysRetireCmd struct {
	ID string `arg:"" help:"Id of the key, as pellucid keys list shows it."`
}

func (keysRetireCmd) Help() string {
	return `What the key has sealed does not open any more: sessions that began under it cannot be brought
back after a restart, and fences that it made cannot be checked. Keep it for as long as
http.session_life (30 days), unless it has leaked. Exit codes: 0 done; 1 no such key, or the current
one; 2 the keys come from PELLUCID_INSTALL_KEY; 3 the keys cannot be read or written.`
}

func (c *keysRetireCmd) Run(e *env) error {
	dir, err := install.Open()
	if err != nil {
		return err
	}
	if err := install.RetireKey(dir, c.ID); err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "The key %s is removed.\n", c.ID)
	return nil
}
