// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/valueref"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A Setup says how attestations are checked and made safe, and which verdict is composed of them.
type Setup struct {
	Policy  string // of policyWords; "": the first
	Scope   string // of scopeWords; "": the first
	Domains string // path of a registry; "": the built-in one
	DIDWeb  bool   // fetch the keys of did:web identifiers

	Verdicts   []string // that are known beside the built-in ones
	Profiles   []string // paths of profiles that a query may name
	Default    string   // identifier of one of them; "": every domain alike
	Validators string   // path of a validators document; "": all are alike
	Scores     string   // path of trust scores; "": no profile may take them
	Issuers    []string // DIDs whose cascade events are believed

	DangerouslyIngestUntyped bool
	DangerouslyRFCSetOnly    bool
}

// The words of Setup.Policy and Setup.Scope.
var (
	policyWords = []string{"replace", "reject", "flag"}
	scopeWords  = []string{"literal", "mixed"}

	policies = []scrub.Confusables{scrub.Replace, scrub.Reject, scrub.Flag}
	scopes   = []scrub.Scope{scrub.Literal, scrub.Mixed}
)

// maxSetupFile bounds a file that a Setup names, in bytes.
const maxSetupFile = 16 << 20

// Deviations are the loosenings that are on, as answers name them.
func (s *Setup) Deviations() (out []string) {
	if s.DangerouslyIngestUntyped {
		out = append(out, attest.DeviationUntyped)
	}
	if s.DangerouslyRFCSetOnly {
		out = append(out, "dangerously_rfc_set_only")
	}
	return out
}

// A compiler makes the options of an adapter, and collects every fault.
type compiler struct {
	setup  *Setup
	out    ground.Options
	faults []error
}

func (c *compiler) fault(flag string, err error) {
	c.faults = append(c.faults, fmt.Errorf("ground: --%s: %w", flag, err))
}

// compile reads the files that s names, and checks everything. Store, keys, evidence and the operator's own DID are the
// caller's to add.
func (s *Setup) compile(log *slog.Logger) (ground.Options, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &compiler{setup: s, out: ground.Options{DangerouslyIngestUntyped: s.DangerouslyIngestUntyped, Issuers: slices.Clone(s.Issuers), Policy: attest.Policy{
		Confusables:           policies[max(0, slices.Index(policyWords, s.Policy))],
		Scope:                 scopes[max(0, slices.Index(scopeWords, s.Scope))],
		DangerouslyRFCSetOnly: s.DangerouslyRFCSetOnly,
	}}}
	var err error
	if c.out.Verdicts, err = attest.NewRegistry(s.Verdicts...); err != nil {
		c.fault("verdict", err)
	}
	if s.Domains != "" {
		c.out.Domains = parseFile(c, "domains", s.Domains, consensus.ParseRegistry)
	}
	c.profiles()
	if s.Validators != "" {
		c.out.Validators = parseFile(c, "validators", s.Validators, ground.ParseValidators)
	}
	if s.Scores != "" {
		file := newScoreFile(s.Scores, log)
		if _, err := file.current(); err != nil {
			c.fault("scores", err)
		}
		c.out.Scores = file.of
	}
	for _, did := range s.Issuers {
		if _, err := href.ParseDID(did); err != nil {
			c.fault("issuer", errors.New("this is not a DID"))
		}
	}
	if c.faults != nil {
		return ground.Options{}, exit.With(exit.Config, errors.Join(c.faults...))
	}
	return c.out, nil
}

func (c *compiler) profiles() {
	named := func(id string) int {
		return slices.IndexFunc(c.out.Profiles, func(p *consensus.Profile) bool { return p.ID() == id })
	}
	for _, path := range c.setup.Profiles {
		p := parseFile(c, "profile", path, func(b []byte) (*consensus.Profile, error) { return consensus.Compile(b, c.out.Domains) })
		switch {
		case p == nil:
		case named(p.ID()) >= 0:
			c.fault("profile", errors.New("another profile has the same identifier"))
		default:
			c.out.Profiles = append(c.out.Profiles, p)
		}
	}
	if c.setup.Default != "" && c.faults == nil {
		i := named(c.setup.Default)
		if i < 0 {
			c.fault("default-profile", errors.New("no --profile has that identifier"))
			return
		}
		c.out.Default = c.out.Profiles[i]
	}
}

// parseFile parses a file that a flag names.
func parseFile[T any](c *compiler, flag, path string, parse func([]byte) (T, error)) (none T) {
	b, err := valueref.Source{}.Read(path, maxSetupFile)
	if err != nil {
		c.fault(flag, err)
		return none
	}
	v, err := parse(b)
	if err != nil {
		c.fault(flag, err)
		return none
	}
	return v
}
