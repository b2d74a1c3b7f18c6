// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// groundCmd is the Veritas grounding adapter and what its operator needs.
type groundCmd struct {
	Serve   groundServeCmd   `cmd:"" help:"Answer queries over MCP, and accept attestations."`
	Import  groundImportCmd  `cmd:"" help:"Check attestations and store them."`
	Query   groundQueryCmd   `cmd:"" help:"Query the store, without a server."`
	Retract groundRetractCmd `cmd:"" help:"Retract a source or an attestation, and everything that depends on it; or take that back."`
	Export  groundExportCmd  `cmd:"" help:"Print what the store holds, as JSON lines."`
}

// groundDB says where the attestations are.
type groundDB struct {
	DB string `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Store: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or ground.db in the state directory)."`
}

// groundRules are how attestations are checked and made safe: the same for all that
// put them into one store.
type groundRules struct {
	Policy  string   `enum:"replace,reject,flag" default:"replace" help:"@ground.policy"`
	Scope   string   `enum:"literal,mixed" default:"literal" help:"@ground.scope"`
	Domains string   `placeholder:"FILE" help:"@ground.domains"`
	Verdict []string `placeholder:"NAME" help:"Verdict to accept in addition to the built-in ones; may be repeated."`
	DIDWeb  bool     `name:"did-web" help:"@ground.did_web"`

	DangerouslyIngestUntyped bool `help:"@ground.dangerously_ingest_untyped"`
	DangerouslyRFCSetOnly    bool `name:"dangerously-rfc-set-only" help:"@ground.dangerously_rfc_set_only"`
}

// setup is what the flags say, as a file would say it.
func (r *groundRules) setup() *rules.Ground {
	return &rules.Ground{Policy: r.Policy, Scope: r.Scope, Domains: r.Domains, Verdicts: r.Verdict, DIDWeb: r.DIDWeb,
		DangerouslyIngestUntyped: r.DangerouslyIngestUntyped, DangerouslyRFCSetOnly: r.DangerouslyRFCSetOnly}
}

// flagOf is the flag of a member of the section ground that is not called alike.
var flagOf = map[string]string{"verdicts": "verdict", "profiles": "profile", "default_profile": "default-profile", "issuers": "issuer"}

// compiled compiles what flags say.
func compiled(g *rules.Ground, o rules.Options) error {
	var all []error
	for _, f := range g.Compile(o) {
		all = append(all, fmt.Errorf("ground: --%s: %w", cmp.Or(flagOf[f.Member], f.Member), f.Cause))
	}
	if all != nil {
		return exit.With(exit.Config, errors.Join(all...))
	}
	return nil
}
