// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/grounding"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

type retractCmd struct{ eventFlags }

func (retractCmd) Help() string {
	return `Signs a cascade event and hands it in: the attestation, or whatever depends on the
source, is withheld from then on, and so is all that depends on it in turn. The key is
the operator's own, which an adapter on the same state directory believes whatever it
is about. A validator's key withdraws that validator's own attestations. With --url
the event is posted to a running adapter instead of being written to the store. Exit
codes: 0 done, 1 refused, 2 wrong usage, 3 bad configuration, 4 the store or the
adapter cannot be reached.`
}

func (c *retractCmd) Run(e *env) error { return c.send(e, ground.Retract) }

type reverseCmd struct{ eventFlags }

func (reverseCmd) Help() string {
	return `Signs a cascade event that takes a retraction back, and hands it in as retract does. Of the events
on one target the latest decides. A validator's key cannot take back what another validator may have
retracted. Exit codes are those of retract.`
}

func (c *reverseCmd) Run(e *env) error { return c.send(e, ground.Reverse) }

// eventFlags are those of a cascade event.
type eventFlags struct {
	storeFlags
	Reason string    `placeholder:"TEXT" help:"Reason, for people. Readers get it as third-party text."`
	Key    string    `placeholder:"FILE" help:"File of the key, as attest new wrote it (default: the operator's key)."`
	Method string    `placeholder:"DID-URL" help:"Identifier under which the key is published, if not its did:key."`
	At     time.Time `placeholder:"TIME" help:"Time of the event (RFC 3339; default: now)."`
	Issuer []string  `sep:"none" placeholder:"DID" help:"Issuer whose events this store accepts, as for serve; may be repeated."`
	URL    string    `name:"url" help:"Post the event to this URL, such as https://host/ground/events, instead of writing to the store."`
	Token  string    `placeholder:"REF" help:"Bearer token for --url: env:NAME or file:PATH."`
	JSON   bool      `name:"json" help:"Print the receipt as JSON."`
	Target string    `arg:"" help:"IRI of a source, or the id or hash (sha256:…) of an attestation."`
}

func (c *eventFlags) Validate() error {
	switch {
	case c.Token != "" && c.URL == "":
		return errors.New("--token is for --url")
	case c.URL != "" && (c.DB != "" && os.Getenv("PELLUCID_DB") == "" || len(c.Issuer) > 0):
		return errors.New("--db and --issuer are not for --url")
	case c.Method != "" && c.Key == "":
		return errors.New("--method is for --key")
	}
	return nil
}

func (c *eventFlags) send(e *env, kind ground.CascadeKind) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	event := grounding.Cascade{
		Kind: kind, Target: c.Target, Reason: c.Reason, Key: c.Key, Method: c.Method, At: c.At, DB: c.DB, Issuers: c.Issuer,
		URL: c.URL, Token: func() (string, error) { return e.secret("ground: --token", c.Token) },
	}
	r, err := event.Send(ctx, dir)
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(e.Stdout).Encode(r)
	} else {
		err = r.WriteText(e.Stdout, kind)
	}
	if err == nil && !r.Accepted {
		return exit.With(exit.Failed, nil)
	}
	return err
}
