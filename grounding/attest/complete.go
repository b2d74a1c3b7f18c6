// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Complete adds to an envelope what a signer need not write by hand: validator_did
// and claim_hash, where they are absent. Everything else keeps its bytes. The
// error is a *Refusal.
func Complete(doc []byte, validator string) ([]byte, error) {
	var d strictjson.Doc
	if err := d.Reset(doc, limits); err != nil {
		return nil, refuseJSON(err)
	}
	root, r := expandRoot(d.Root())
	if r != nil {
		return nil, r
	}
	dec := decoder{options: new(Options)}
	version := V02
	if root.get("canonicalisation_version") != nil {
		version = Version(dec.word(root, "canonicalisation_version", true, isVersion))
	}
	var claim Claim
	if n := dec.object(root, "claim"); n != nil {
		claim = dec.claim(n)
	}
	if dec.refusal != nil {
		return nil, dec.refusal
	}
	var e strictjson.Edits
	add := func(prop, value string) {
		if root.get(prop) == nil {
			e.Append(d.Root(), root.in.spelling(prop), strictjson.AppendQuote(nil, value))
		}
	}
	add("claim_hash", claim.Hash(version).String())
	add("validator_did", validator)
	return e.Apply(nil, d.Root()), nil
}

// spelling is the name of the member for a property that the scope has.
func (s *scope) spelling(prop string) string {
	for i := range s.terms {
		if s.terms[i].prop == prop {
			return s.terms[i].name
		}
	}
	return ""
}
