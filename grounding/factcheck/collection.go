// SPDX-License-Identifier: Apache-2.0

package factcheck

import (
	"strconv"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxDomains bounds verdictsByDomain.
const maxDomains = 64

// get is a member of a claim, or else of the collection that it stands in.
func (r *review) get(v strictjson.Value, name string) strictjson.Value {
	if m := v.Get(name); m.Exists() {
		return m
	}
	return r.collection.Get(name)
}

// claim reads a claim of RFC-FACTCHECK. Its verdicts are those of attest already,
// and become one attestation for each consensus domain that is named. What the
// claim does not say of checkerIdentity, datePublished, language and url, its
// collection may.
func (r *review) claim(v strictjson.Value, pointer string) bool {
	s := attest.Statement{
		Version: attest.V03,
		Claim: attest.Claim{
			Text:     textOf(v.Get("claimText")),
			Language: language(textOf(r.get(v, "language"))),
			Topic:    textOf(v.Get("topic")),
			Type:     textOf(v.Get("claimType")),
			GroupID:  textOf(v.Get("claimGroupId")),
		},
		Verdict:        attest.Verdict(textOf(v.Get("primaryVerdict"))),
		Domain:         r.domain,
		Rationale:      firstText(v, "rationale", "method"),
		Qualifications: textOf(v.Get("qualifications")),
	}
	if s.Claim.Text == "" {
		return r.refuse(pointer+"/claimText", finding.Misshapen)
	}
	if s.Verdict == "" {
		return r.refuse(pointer+"/primaryVerdict", absentOr(v.Get("primaryVerdict"), finding.Misshapen))
	}
	if h := v.Get("claimHash"); h.Exists() {
		if _, ok := attest.ParseHash(h.Text()); !ok {
			return r.refuse(pointer+"/claimHash", finding.Misshapen)
		}
	}
	var ok bool
	if s.Issued, ok = dates(r.get(v, "datePublished"), v.Get("dateModified")); !ok {
		return r.refuse(pointer+"/datePublished", absentOr(r.get(v, "datePublished"), finding.Misshapen))
	}
	if err := r.sources(&s, v, pointer); err != nil {
		return r.yield(draft{err: err})
	}
	publisher, err := r.checker(v, pointer)
	if err != nil {
		return r.yield(draft{err: err})
	}
	return r.byDomain(draft{line: r.line, pointer: pointer, key: r.keys.of("claimreview " + publisher), statement: s}, publisher, v)
}

// sources adds what the claim rests on, the page of the claim itself first.
func (r *review) sources(s *attest.Statement, v strictjson.Value, pointer string) error {
	add := func(v strictjson.Value, role, pointer string) error {
		uri, err := href.Parse(textOf(v))
		if err != nil {
			return refusedURI(r.line, pointer, err)
		}
		s.Evidence = append(s.Evidence, attest.Evidence{URI: uri, Role: role})
		s.DependsOn = append(s.DependsOn, uri.String())
		return nil
	}
	if u := v.Get("url"); u.Exists() {
		if err := add(u, "review", pointer+"/url"); err != nil {
			return err
		}
	}
	list := v.Get("sources")
	if list.Exists() && list.Kind() != '[' {
		return &EntryError{Line: r.line, Pointer: pointer + "/sources", Code: finding.Misshapen}
	}
	if list.Len() >= maxSources {
		return &EntryError{Line: r.line, Pointer: pointer + "/sources", Code: finding.TooMany}
	}
	i := 0
	for e := range list.Elements() {
		if err := add(e.Get("uri"), textOf(e.Get("role")), pointer+"/sources/"+strconv.Itoa(i)+"/uri"); err != nil {
			return err
		}
		i++
	}
	return nil
}

// checker names who has checked the claim.
func (r *review) checker(v strictjson.Value, pointer string) (string, error) {
	if did := textOf(r.node(r.get(v, "checkerIdentity")).Get("did")); did != "" {
		if _, err := href.ParseDID(did); err != nil {
			return "", refusedURI(r.line, pointer+"/checkerIdentity/did", err)
		}
		return did, nil
	}
	uri, err := href.Parse(textOf(r.get(v, "url")))
	if err != nil || uri.Host() == "" {
		return "", &EntryError{Line: r.line, Pointer: pointer + "/checkerIdentity", Code: finding.MissingMember}
	}
	return "site " + uri.Host(), nil
}

// byDomain yields the draft, and one more for each domain that has a verdict of its
// own, in place of the first where it is that domain's.
func (r *review) byDomain(d draft, publisher string, v strictjson.Value) bool {
	list := v.Get("verdictsByDomain")
	if list.Exists() && list.Kind() != '{' {
		return r.refuse(d.pointer+"/verdictsByDomain", finding.Misshapen)
	}
	if list.Len() > maxDomains {
		return r.refuse(d.pointer+"/verdictsByDomain", finding.TooMany)
	}
	emit := func(d draft) bool {
		s := &d.statement
		s.ID = uuid("factcheck", publisher, s.Claim.GroupID, s.Claim.Text, s.Domain)
		return r.yield(d)
	}
	if !list.Get(r.domain).Exists() && !emit(d) {
		return false
	}
	i := 0
	for name, verdict := range list.Members() {
		e := d
		e.pointer += "/verdictsByDomain/#" + strconv.Itoa(i)
		e.statement.Domain, e.statement.Verdict = name.Text(), attest.Verdict(verdict.Text())
		if !emit(e) {
			return false
		}
		i++
	}
	return true
}
