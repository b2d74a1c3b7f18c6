// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/pellucid-mcp/pellucid/app/grounding"

// storeFlags says where the attestations are.
type storeFlags struct {
	DB string `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Store: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or ground.db in the state directory)."`
}

// ruleFlags are how attestations are checked and made safe: the same for all that
// put them into one store.
type ruleFlags struct {
	Policy  string   `enum:"replace,reject,flag" default:"replace" help:"What becomes of characters that are taken for ASCII ones: replace or flag them, or reject the text."`
	Scope   string   `enum:"literal,mixed" default:"literal" help:"Which of them: every one (literal), or only in a word of mixed scripts (mixed)."`
	Domains string   `placeholder:"FILE" help:"Registry of consensus domains (default: the built-in one)."`
	Verdict []string `placeholder:"NAME" help:"Verdict to accept in addition to the built-in ones; may be repeated."`
	DIDWeb  bool     `name:"did-web" help:"Fetch the keys of did:web identifiers, over https."`

	DangerouslyIngestUntyped bool `help:"Accept texts with markup, links or encoded data, for old records; answers with them say sanitation_version none."`
	DangerouslyRFCSetOnly    bool `name:"dangerously-rfc-set-only" help:"Remove only the 156 hidden characters that the RFC names; every answer says sanitation_version none."`
}

func (r *ruleFlags) setup() grounding.Setup {
	return grounding.Setup{Policy: r.Policy, Scope: r.Scope, Domains: r.Domains, Verdicts: r.Verdict, DIDWeb: r.DIDWeb,
		DangerouslyIngestUntyped: r.DangerouslyIngestUntyped, DangerouslyRFCSetOnly: r.DangerouslyRFCSetOnly}
}
