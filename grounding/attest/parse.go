// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/rfc3339"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The bounds of one envelope. A rationale of 50,000 bytes is well within: it is
// cut when it is projected (RFC 4.1), not refused.
const (
	MaxBytes  = 1 << 20 // bytes of the body
	maxDepth  = 8
	maxValues = 8192
)

// limits are those of every envelope.
var limits = strictjson.Limits{Bytes: MaxBytes, Depth: maxDepth, Values: maxValues, FoldedNames: true}

// Options says what Parse accepts; the zero value is the strict choice.
type Options struct {
	// Verdicts are those that are registered; nil: the built-in ones.
	Verdicts *Registry

	// Domain looks a consensus domain up in the registry and returns its canonical
	// name. Without it any well-formed name is accepted, and the registry has to
	// be asked later.
	Domain func(name string) (canonical string, ok bool)

	// DangerouslyIngestUntyped lets text through that is not plain (RFC §3), for
	// records of old. What it is refused for stands in Attestation.Untyped.
	DangerouslyIngestUntyped bool
}

// Parse reads one envelope; the error is a *Refusal. It checks everything but the
// proof, for which Verify needs the time and a key. src is copied.
//
// spec: attestation/2
func Parse(src []byte, o Options) (*Attestation, error) {
	if len(src) > MaxBytes {
		return nil, &Refusal{Code: finding.TooLong, Offset: MaxBytes}
	}
	a := &Attestation{src: bytes.Clone(src)}
	if err := a.doc.Reset(a.src, limits); err != nil {
		return nil, refuseJSON(err)
	}
	root, r := expandRoot(a.doc.Root())
	if r != nil {
		return nil, r
	}
	d := decoder{options: &o}
	hash := d.attestation(a, root)
	if d.refusal != nil {
		return nil, d.refusal
	}
	a.Untyped = d.typing()
	if a.Untyped != nil && !o.DangerouslyIngestUntyped {
		return nil, a.Untyped
	}
	a.ClaimHash = a.Claim.Hash(a.Version)
	if hash.value != a.ClaimHash {
		return nil, &Refusal{Code: finding.ClaimHashMismatch, Pointer: hash.at.pointer(), Offset: hash.at.v.Offset()}
	}
	var err error
	if a.digest, err = digest(new(strictjson.Edits), a.doc.Root()); err != nil {
		return nil, refuseJSON(err)
	}
	return a, nil
}

// A decoder takes values out of nodes. The first refusal stands; what comes after
// it has no meaning.
type decoder struct {
	options *Options
	refusal *Refusal
	prose   []*nodeMember // third-party text, to be typed; see typing
}

type statedHash struct {
	value Hash
	at    *nodeMember
}

func (d *decoder) attestation(a *Attestation, n *node) (hash statedHash) {
	a.ID = d.word(n, "id", true, IDValid)
	a.Version = V02
	if n.get("canonicalisation_version") != nil {
		a.Version = Version(d.word(n, "canonicalisation_version", true, isVersion))
	}
	if claim := d.object(n, "claim"); claim != nil {
		a.Claim = d.claim(claim)
	}
	if hash.at = d.need(n, "claim_hash"); hash.at != nil {
		var ok bool
		if hash.value, ok = ParseHash(hash.at.v.Text()); !ok {
			d.refuse(finding.Misshapen, hash.at.pointer(), hash.at.v)
		}
	}
	a.Validator = d.did(n, "validator_did")
	a.Verdict = d.verdict(n)
	a.Domain = d.domain(n, d.word(n, "consensus_domain", true, isDomain))
	a.Rationale = d.text(n, "rationale")
	a.Qualifications = d.text(n, "qualifications")
	d.evidence(a, n)
	d.citedWorks(a, n)
	d.times(a, n)
	d.dependsOn(a, n)
	return hash
}

func (d *decoder) claim(n *node) Claim {
	c := Claim{Text: d.text(n, "text")}
	if m := d.need(n, "text"); m != nil && c.Text == "" {
		d.refuse(finding.Misshapen, m.pointer(), m.v)
	}
	c.Language = d.word(n, "language", false, isLanguage)
	c.Topic = d.word(n, "topic", false, TopicValid)
	c.Type = d.word(n, "type", false, isClaimType)
	c.GroupID = d.word(n, "group_id", false, isURN)
	return c
}

func (d *decoder) verdict(n *node) Verdict {
	v := Verdict(d.word(n, "verdict", true, nil))
	if m := n.get("verdict"); m != nil && !d.options.Verdicts.Has(v) {
		d.refuse(finding.UnknownVerdict, m.pointer(), m.v)
	}
	return v
}

func (d *decoder) domain(n *node, name string) string {
	if d.options.Domain == nil || d.refusal != nil {
		return name
	}
	canonical, ok := d.options.Domain(name)
	if !ok {
		m := n.get("consensus_domain")
		d.refuse(finding.UnknownDomain, m.pointer(), m.v)
	}
	return canonical
}

func (d *decoder) evidence(a *Attestation, n *node) {
	list := n.get("evidence")
	if list == nil {
		return
	}
	for i := range list.nodes {
		e := &list.nodes[i]
		ev := Evidence{Quote: d.text(e, "quote"), URI: d.uri(e, "uri", false), Role: d.word(e, "role", false, isRole)}
		if e.get("quote") == nil && e.get("uri") == nil {
			d.fail(e.missing("quote"))
		}
		a.Evidence = append(a.Evidence, ev)
	}
}

func (d *decoder) citedWorks(a *Attestation, n *node) {
	list := n.get("cited_works")
	if list == nil {
		return
	}
	for i := range list.nodes {
		w := &list.nodes[i]
		a.CitedWorks = append(a.CitedWorks, CitedWork{URI: d.uri(w, "uri", true), Title: d.text(w, "title")})
	}
}

func (d *decoder) times(a *Attestation, n *node) {
	a.Issued = d.time(n, "issued", true)
	a.Expires = d.time(n, "expires", false)
	if m := n.get("expires"); m != nil && !a.Expires.After(a.Issued) {
		d.refuse(finding.Misshapen, m.pointer(), m.v)
	}
}

func (d *decoder) dependsOn(a *Attestation, n *node) {
	list := n.get("depends_on")
	if list == nil {
		return
	}
	i := 0
	for v := range list.v.Elements() {
		id := v.Text()
		if !DependencyValid(id) {
			d.refuse(finding.Misshapen, list.elementPointer(i), v)
		}
		a.DependsOn = append(a.DependsOn, id)
		i++
	}
}

// typing applies RFC §3 to every text that a validator wrote. It comes after
// everything else was found to be in shape.
func (d *decoder) typing() *Refusal {
	for _, m := range d.prose {
		if code, at := notPlain(m.v.Text()); code != "" {
			return &Refusal{Code: code, Pointer: m.pointer(), Offset: at, Text: true}
		}
	}
	return nil
}

func (d *decoder) fail(r *Refusal) {
	if d.refusal == nil {
		d.refusal = r
	}
}

func (d *decoder) refuse(code finding.Code, pointer string, v strictjson.Value) {
	d.fail(&Refusal{Code: code, Pointer: pointer, Offset: v.Offset()})
}

// need returns the member, or refuses the object that lacks it.
func (d *decoder) need(n *node, prop string) *nodeMember {
	m := n.get(prop)
	if m == nil {
		d.fail(n.missing(prop))
	}
	return m
}

func (d *decoder) member(n *node, prop string, required bool) *nodeMember {
	if required {
		return d.need(n, prop)
	}
	return n.get(prop)
}

func (d *decoder) object(n *node, prop string) *node {
	if m := d.need(n, prop); m != nil {
		return &m.nodes[0]
	}
	return nil
}

// word returns a value that has a syntax of its own, so that no prose fits in.
func (d *decoder) word(n *node, prop string, required bool, ok func(string) bool) string {
	m := d.member(n, prop, required)
	if m == nil {
		return ""
	}
	s := m.v.Text()
	if ok != nil && !ok(s) {
		d.refuse(finding.Misshapen, m.pointer(), m.v)
	}
	return s
}

func (d *decoder) text(n *node, prop string) string {
	m := n.get(prop)
	if m == nil {
		return ""
	}
	d.prose = append(d.prose, m)
	return m.v.Text()
}

func (d *decoder) uri(n *node, prop string, required bool) href.URI {
	m := d.member(n, prop, required)
	if m == nil {
		return href.URI{}
	}
	u, err := href.Parse(m.v.Text())
	if err != nil {
		d.fail(refuseURI(err, m.pointer()))
	}
	return u
}

func (d *decoder) did(n *node, prop string) string {
	m := d.need(n, prop)
	if m == nil {
		return ""
	}
	u, err := href.ParseDID(m.v.Text())
	if err != nil {
		d.fail(refuseURI(err, m.pointer()))
	}
	return u.String()
}

func (d *decoder) time(n *node, prop string, required bool) time.Time {
	m := d.member(n, prop, required)
	if m == nil {
		return time.Time{}
	}
	t, ok := rfc3339.Parse(m.v.Text())
	if !ok {
		d.refuse(finding.Misshapen, m.pointer(), m.v)
	}
	return t
}

func isVersion(s string) bool { return s == string(V02) || s == string(V03) }

func isClaimType(s string) bool { return s == "FACT" || s == "OPINION" || s == "PROJECTION" }

// isRole: a word of at most 64 letters, digits, "-" and "_".
func isRole(s string) bool { return len(s) <= 64 && made(s, "-_") }

// isLanguage: the shape of a BCP 47 tag.
func isLanguage(s string) bool {
	return len(s) <= 35 && parted(s, '-', func(p string) bool { return len(p) <= 8 && made(p, "") })
}

// TopicValid reports whether s is a topic, as a claim may carry it: parts of ASCII
// letters, digits, "-", "_" and ".", parted by ":", as in
// technology:software:security, at most 256 bytes.
func TopicValid(s string) bool {
	return len(s) <= 256 && parted(s, ':', func(p string) bool { return made(p, "-_.") })
}

// isDomain: a hyphen-lowercase name or an alias like cpml:Name/Name.
func isDomain(s string) bool { return len(s) <= 128 && made(s, "-_.:/") }

// isURN: RFC 8141 without percent-encoding, components and other doors.
func isURN(s string) bool {
	rest, ok := strings.CutPrefix(s, "urn:")
	nid, nss, _ := strings.Cut(rest, ":")
	return ok && len(s) <= 256 && len(nid) >= 2 && len(nid) <= 32 && made(nid, "-") && made(nss, "-_.:/~")
}

// IDValid reports whether s may name an attestation, or an event: a URN or a URI
// that href allows.
func IDValid(s string) bool {
	if isURN(s) {
		return true
	}
	_, err := href.Parse(s)
	return err == nil
}

// DependencyValid reports whether s may be what an attestation depends on: an
// attestation by id or hash, or a source by URI.
func DependencyValid(s string) bool {
	if strings.HasPrefix(s, hashPrefix) {
		_, ok := ParseHash(s)
		return ok
	}
	return IDValid(s)
}

// parted reports whether s is one or more parts that are ok.
func parted(s string, sep byte, ok func(string) bool) bool {
	for {
		i := strings.IndexByte(s, sep)
		if i < 0 {
			return ok(s)
		}
		if !ok(s[:i]) {
			return false
		}
		s = s[i+1:]
	}
}

// made reports whether s is not empty and made of ASCII letters, digits and the
// characters of also.
func made(s, also string) bool {
	for i := range len(s) {
		c := s[i]
		if !letter(c) && !digit(c) && strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return s != ""
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
