// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
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

	DangerouslyIngestUntyped bool
	DangerouslyRFCSetOnly    bool

	options ground.Options
	print   [sha256.Size]byte // of the files and tokens
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

// maxGroundFile bounds a file that the section names, in bytes.
const maxGroundFile = 16 << 20

// Options are those of the compiled Ground, for an adapter. Store, keys, evidence and
// the operator's own DID are the caller's to add.
func (g *Ground) Options() ground.Options {
	o := g.options
	o.Issuers = slices.Clone(o.Issuers)
	return o
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

// groundSection is the section ground, and what stands in the files that it names.
func groundSection(to **Ground) value {
	x := optional(to, (*Ground).members, (*compiler).ground)
	write := x.write
	x.write = func(d *dumper, name string) {
		write(d, name)
		if *to != nil {
			d.hidden(name, string((*to).print[:]))
		}
	}
	return x
}

func (g *Ground) members() []member {
	text := func(c *compiler, p place) string { return c.text(p, maxText) }
	same := func(s string) string { return s }
	return []member{
		{"store", live, store(&g.Store), "default: `PELLUCID_DB`, else `ground.db` in the state directory; `up --db` has precedence"},
		{"policy", live, word(&g.Policy, GroundPolicies[0], GroundPolicies, GroundPolicies), "what becomes of characters that are taken for ASCII ones: `replace` or `flag` them, or `reject` the text"},
		{"scope", live, word(&g.Scope, GroundScopes[0], GroundScopes, GroundScopes), "which of them: every one (`literal`), or where a word pretends (`mixed`) ([scrub](scrub.md))"},
		{"domains", live, groundPath(&g.Domains), "a registry of consensus domains; default: the built-in one"},
		{"did_web", live, boolean(&g.DIDWeb, false), "fetch the keys of did:web identifiers, over https"},
		{"verdicts", live, texts(&g.Verdicts, "a verdict", text, same), "names of verdicts beside the built-in ones"},
		{"profiles", live, texts(&g.Profiles, "`file:PATH`", (*compiler).groundPath, fileReference), "each consensus profile that a query may name"},
		{"default_profile", live, parsed(&g.Default, "string", text), "identifier of the profile for queries that name none; default: every domain alike"},
		{"validators", live, groundPath(&g.Validators), "reputation of validators, and trust in them; default: all alike"},
		{"issuers", live, texts(&g.Issuers, "a DID", text, same), "DIDs whose cascade events are believed, beside the operator's"},
		{"dangerously_ingest_untyped", live, boolean(&g.DangerouslyIngestUntyped, false), "accept texts with markup, links or encoded data, for records of old; what they are in says `sanitation_version` none"},
		{"dangerously_rfc_set_only", live, boolean(&g.DangerouslyRFCSetOnly, false), "remove only the 156 hidden characters that the RFC names; every answer says `sanitation_version` none"},
	}
}

// ground reads the files of the section, once the whole section has been read.
func (c *compiler) ground(p place, g *Ground, _ bool) bool {
	before := slices.Clone(c.problems)
	for _, f := range g.Compile(c.opt) {
		where := p.at(f.Member)
		// An element that was not read is not in the list of a Ground.
		unread := func(x Problem) bool { return strings.HasPrefix(x.path, where.path+"[") }
		if f.Member != "verdicts" && where.kind == isList && !slices.ContainsFunc(before, unread) {
			where = place{where.elements[f.index], where.path + "[" + strconv.Itoa(f.index) + "]"}
		}
		c.report(where, "%v", f.Cause)
	}
	return true
}

// texts is a list of strings that read makes something of.
func texts(v *[]string, kind string, read func(c *compiler, p place) string, show func(string) string) value {
	return value{
		read: func(c *compiler, p place) {
			c.list(p, maxNames, func(p place) {
				if s := read(c, p); s != "" {
					*v = append(*v, s)
				}
			})
		},
		write: func(d *dumper, name string) {
			if len(*v) > 0 {
				all := make([]string, len(*v))
				for i, s := range *v {
					all[i] = show(s)
				}
				writeList(d, name, all)
			}
		},
		kind:   "list of at most " + strconv.Itoa(maxNames) + ": " + kind,
		schema: schema{"type": "array", "maxItems": maxNames, "items": schema{"type": "string", "minLength": 1}},
	}
}

func fileReference(path string) string { return "file:" + path }

// groundPath is the path of a file that is given as file:PATH.
func groundPath(v *string) value {
	x := parsed(v, "`file:PATH`", (*compiler).groundPath).saying(schema{"pattern": "^file:."})
	x.write = func(d *dumper, name string) {
		if *v != "" {
			d.word(name, quoted(fileReference(*v)))
		}
	}
	return x
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
