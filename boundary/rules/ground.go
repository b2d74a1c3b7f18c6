// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// A Ground says how the grounding adapter is set up: what the section ground says, or the
// flags of `pellucid ground`, which are compiled alike.
type Ground struct {
	Store   Store  // both empty: ground.db of the state directory
	Policy  string // of GroundPolicies; "": the first
	Scope   string // of GroundScopes; "": the first
	Domains string // path of a registry; "": the built-in one
	DIDWeb  bool   // fetch the keys of did:web identifiers

	Verdicts   []string // that are known beside the built-in ones
	Profiles   []string // paths of profiles that a query may name
	Default    string   // identifier of one of them; "": every domain alike
	Validators string   // path of a validators document; "": all are alike
	Issuers    []string // DIDs whose cascade events are believed
	Peers      []GroundPeer

	DangerouslyIngestUntyped bool
	DangerouslyRFCSetOnly    bool

	options ground.Options
	print   [sha256.Size]byte // of the files and tokens
}

// A GroundPeer is another aggregator whose feed is taken over.
type GroundPeer struct {
	URL   string
	Token Value // ""; none
}

// The words of Ground.Policy and Ground.Scope.
var (
	GroundPolicies = []string{"replace", "reject", "flag"}
	GroundScopes   = []string{"literal", "mixed"}

	groundPolicies = []scrub.Confusables{scrub.Replace, scrub.Reject, scrub.Flag}
	groundScopes   = []scrub.Scope{scrub.Literal, scrub.Mixed}
)

// A GroundFault is a mistake in one member of a Ground.
type GroundFault struct {
	Member string // as in a file
	index  int    // of the element, where the member is a list
	Cause  error  // holds nothing of what a file or a reference holds
}

const (
	maxGroundFile = 16 << 20 // bytes of a file that the section names
	maxPeers      = 64
)

// Options are those of the compiled Ground, for an adapter. Store, keys, evidence and
// the operator's own DID are the caller's to add.
func (g *Ground) Options() ground.Options {
	o := g.options
	o.Issuers = slices.Clone(o.Issuers)
	return o
}

// Following are the peers of the compiled Ground.
func (g *Ground) Following() []ground.Peer {
	out := make([]ground.Peer, len(g.Peers))
	for i, p := range g.Peers {
		out[i] = ground.Peer{URL: p.URL, Token: p.Token.Reveal()}
	}
	return out
}

// Deviations are the loosenings that are on, as answers name them.
func (g *Ground) Deviations() (out []string) {
	if g.DangerouslyIngestUntyped {
		out = append(out, attest.DeviationUntyped)
	}
	if g.DangerouslyRFCSetOnly {
		out = append(out, "dangerously_rfc_set_only")
	}
	return out
}

// Compile reads the files that g names, and checks everything. It returns every mistake.
func (g *Ground) Compile(o Options) (faults []GroundFault) {
	o = o.orSystem()
	c := groundCompiler{g: g, opt: &o, secret: fingerprint{sha256.New()}}
	c.compile()
	g.print = c.secret.sum()
	return c.faults
}

type groundCompiler struct {
	g      *Ground
	opt    *Options
	secret fingerprint
	faults []GroundFault
}

func (c *groundCompiler) fault(member string, i int, err error) {
	c.faults = append(c.faults, GroundFault{member, i, err})
}

func (c *groundCompiler) compile() {
	g, out := c.g, &c.g.options
	*out = ground.Options{DangerouslyIngestUntyped: g.DangerouslyIngestUntyped, Policy: attest.Policy{
		Confusables:           groundPolicies[max(0, slices.Index(GroundPolicies, g.Policy))],
		Scope:                 groundScopes[max(0, slices.Index(GroundScopes, g.Scope))],
		DangerouslyRFCSetOnly: g.DangerouslyRFCSetOnly,
	}}
	var err error
	if out.Verdicts, err = attest.NewRegistry(g.Verdicts...); err != nil {
		c.fault("verdicts", 0, err)
	}
	if g.Domains != "" {
		out.Domains = groundFile(c, "domains", 0, g.Domains, consensus.ParseRegistry)
	}
	for i, path := range g.Profiles {
		p := groundFile(c, "profiles", i, path, func(b []byte) (*consensus.Profile, error) { return consensus.Compile(b, out.Domains) })
		switch {
		case p == nil:
		case slices.ContainsFunc(out.Profiles, func(q *consensus.Profile) bool { return q.ID() == p.ID() }):
			c.fault("profiles", i, errors.New("another profile has the same identifier"))
		default:
			out.Profiles = append(out.Profiles, p)
		}
	}
	if g.Default != "" && len(c.faults) == 0 {
		i := slices.IndexFunc(out.Profiles, func(p *consensus.Profile) bool { return p.ID() == g.Default })
		if i < 0 {
			c.fault("default_profile", 0, errors.New("no profile of this configuration has that identifier"))
		} else {
			out.Default = out.Profiles[i]
		}
	}
	if g.Validators != "" {
		out.Validators = groundFile(c, "validators", 0, g.Validators, ground.ParseValidators)
	}
	for i, did := range g.Issuers {
		if _, err := href.ParseDID(did); err != nil {
			c.fault("issuers", i, errors.New("this is not a DID"))
		}
	}
	out.Issuers = g.Issuers
	for i, p := range g.Following() {
		c.secret.add(p.Token)
		if err := p.Check(); err != nil {
			c.fault("peers", i, err)
		}
	}
}

// groundFile parses a file that member names.
func groundFile[T any](c *groundCompiler, member string, i int, path string, parse func([]byte) (T, error)) (none T) {
	b, err := c.opt.read(path, maxGroundFile)
	if err != nil {
		c.fault(member, i, err)
		return none
	}
	c.secret.add(string(b))
	v, err := parse(b)
	if err != nil {
		c.fault(member, i, err)
		return none
	}
	return v
}

// ground reads the section ground.
func (c *compiler) ground(p place) {
	g := &Ground{}
	at := map[string]place{}
	lists := map[string][]place{}
	path := func(to *string, member string) func(place) {
		return func(p place) { at[member], *to = p, c.groundPath(p) }
	}
	list := func(to *[]string, member string, read func(place) string) func(place) {
		return func(p place) {
			at[member] = p
			c.list(p, maxNames, func(p place) {
				if s := read(p); s != "" {
					*to, lists[member] = append(*to, s), append(lists[member], p)
				}
			})
		}
	}
	text := func(p place) string { return c.text(p, maxText) }
	c.object(p, members{
		"store":           func(p place) { g.Store = c.storeOf(p) },
		"policy":          func(p place) { g.Policy = choice(&c.reader, p, GroundPolicies, GroundPolicies) },
		"scope":           func(p place) { g.Scope = choice(&c.reader, p, GroundScopes, GroundScopes) },
		"domains":         path(&g.Domains, "domains"),
		"did_web":         func(p place) { g.DIDWeb = c.boolean(p) },
		"verdicts":        list(&g.Verdicts, "verdicts", text),
		"profiles":        list(&g.Profiles, "profiles", c.groundPath),
		"default_profile": func(p place) { at["default_profile"], g.Default = p, text(p) },
		"validators":      path(&g.Validators, "validators"),
		"issuers":         list(&g.Issuers, "issuers", text),
		"peers": func(p place) {
			c.list(p, maxPeers, func(p place) {
				g.Peers, lists["peers"] = append(g.Peers, c.groundPeer(p)), append(lists["peers"], p)
			})
		},
		"dangerously_ingest_untyped": func(p place) { g.DangerouslyIngestUntyped = c.boolean(p) },
		"dangerously_rfc_set_only":   func(p place) { g.DangerouslyRFCSetOnly = c.boolean(p) },
	})
	c.out.Ground = g
	for _, f := range g.Compile(c.opt) {
		where := at[f.Member]
		if all := lists[f.Member]; f.index < len(all) && f.Member != "verdicts" {
			where = all[f.index]
		}
		c.report(where, "%v", f.Cause)
	}
	c.last = append(c.last, func() { c.secret.add(string(g.print[:])) }) // wherever the section stands
}

// groundPath reads file:PATH.
func (c *compiler) groundPath(p place) string {
	ref := c.text(p, maxText)
	path, isFile := strings.CutPrefix(ref, "file:")
	switch {
	case ref == "":
		return ""
	case !isFile || path == "":
		c.report(p, "want file:PATH")
		return ""
	}
	return c.opt.locate(path)
}

func (c *compiler) groundPeer(p place) (out GroundPeer) {
	c.object(p, members{
		"url":   func(p place) { out.URL = c.text(p, 2048) },
		"token": func(p place) { out.Token = c.reference(p) },
	}, "url")
	return out
}

func (d *dumper) ground(g *Ground) {
	if g == nil {
		return
	}
	files := func(paths []string) []string {
		out := make([]string, len(paths))
		for i, p := range paths {
			out[i] = "file:" + p
		}
		return out
	}
	d.object("ground", func() {
		d.store(&g.Store)
		d.word("policy", orFirst(g.Policy, GroundPolicies))
		d.word("scope", orFirst(g.Scope, GroundScopes))
		if g.Domains != "" {
			d.quote("domains", "file:"+g.Domains)
		}
		d.boolean("did_web", g.DIDWeb)
		d.list("verdicts", g.Verdicts)
		d.list("profiles", files(g.Profiles))
		if g.Default != "" {
			d.quote("default_profile", g.Default)
		}
		if g.Validators != "" {
			d.quote("validators", "file:"+g.Validators)
		}
		d.list("issuers", g.Issuers)
		if len(g.Peers) > 0 {
			d.object("peers", func() {
				for _, p := range g.Peers {
					token := ""
					if p.Token.isSecret() {
						token = ", token: " + quoted(p.Token.String())
					}
					d.line("- {url: ", quoted(p.URL), token, "}")
				}
			})
		}
		d.boolean("dangerously_ingest_untyped", g.DangerouslyIngestUntyped)
		d.boolean("dangerously_rfc_set_only", g.DangerouslyRFCSetOnly)
	})
}

func orFirst(word string, words []string) string {
	if word == "" {
		return words[0]
	}
	return word
}

func sameGround(a, b *Rules) bool {
	if a.Ground == nil || b.Ground == nil {
		return a.Ground == b.Ground
	}
	return a.Ground.print == b.Ground.print && same(func(d *dumper) { d.ground(a.Ground) }, func(d *dumper) { d.ground(b.Ground) })
}
