// SPDX-License-Identifier: Apache-2.0

package attest

import (
	_ "embed" // the bundled contexts
	"strconv"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The bundled contexts. An envelope names one of them; nothing is ever fetched.
// They define the same properties under two spellings, and are the one place
// where names are mapped: everything behind them knows properties only.
const (
	// Context spells names as the grounding RFC does: validator_did.
	Context = "https://veritas-protocol.example/attestation/v0.3"
	// FactcheckContext spells names as RFC-FACTCHECK does: validatorDid.
	FactcheckContext = "https://veritas-protocol.example/factcheck/v0.2"
	// integrityContext defines what every envelope's proof has anyway, so it may
	// stand behind one of the two.
	integrityContext = "https://w3id.org/security/data-integrity/v2"
)

// envelopeType is the only @type there is.
const envelopeType = "veritas:Attestation"

var (
	//go:embed contexts/attestation-v0.3.jsonld
	contextDoc []byte
	//go:embed contexts/factcheck-v0.2.jsonld
	factcheckDoc []byte

	contexts = sync.OnceValue(func() map[string]*scope {
		return map[string]*scope{Context: compileContext(contextDoc), FactcheckContext: compileContext(factcheckDoc)}
	})
)

// ContextDocument returns the bundled JSON-LD context with that URL, nil if
// there is none. The bytes must not be changed.
func ContextDocument(url string) []byte {
	switch url {
	case Context:
		return contextDoc
	case FactcheckContext:
		return factcheckDoc
	}
	return nil
}

// A scope holds the terms that an object may use.
type scope struct{ terms []term }

// A term is the name of a member and what the context says of it.
type term struct {
	name string // as the envelope spells it
	prop string // the property's name without its vocabulary: the same in every context
	kind kind
	list bool
	in   *scope // of kind object
}

type kind uint8

const (
	text kind = iota
	iri
	dateTime
	object
)

func (s *scope) find(name string) *term {
	for i := range s.terms {
		if s.terms[i].name == name {
			return &s.terms[i]
		}
	}
	return nil
}

// compileContext reads the part of JSON-LD 1.1 that the bundled contexts use.
// They are part of the program, so a fault in one is a mistake in the program.
func compileContext(doc []byte) *scope {
	var d strictjson.Doc
	if err := d.Reset(doc, strictjson.Limits{}); err != nil {
		panic("attest: bundled context: " + err.Error())
	}
	return compileScope(d.Root().Get("@context"))
}

func compileScope(def strictjson.Value) *scope {
	s := new(scope)
	for name, v := range def.Members() {
		id := v.Text()
		if v.Kind() == '{' {
			id = v.Get("@id").Text()
		}
		_, local, prefixed := strings.Cut(id, ":")
		switch {
		case strings.HasPrefix(name.Text(), "@"), strings.Contains(id, "//"):
			continue // a setting, or a prefix
		case !prefixed:
			local = strings.TrimPrefix(id, "@") // an alias of a keyword
		}
		t := term{name: name.Text(), prop: local, list: v.Get("@container").Text() == "@list"}
		switch {
		case v.Get("@context").Exists():
			t.kind, t.in = object, compileScope(v.Get("@context"))
		case v.Get("@type").Text() == "@id" || id == "@id":
			t.kind = iri
		case v.Get("@type").Text() == "xsd:dateTime":
			t.kind = dateTime
		}
		s.terms = append(s.terms, t)
	}
	return s
}

// A node is an object of which every member is one that its scope defines, with a
// value of the kind that the scope gives it.
type node struct {
	pointer string
	at      int // bytes of the body
	in      *scope
	members []nodeMember
}

type nodeMember struct {
	prop     string
	in, name string // the pointer of the object, and how that calls it
	v        strictjson.Value
	nodes    []node // of kind object: one, or those of a list
}

func (m *nodeMember) pointer() string { return m.in + "/" + m.name }

// elementPointer is the pointer of an element of a list; a value that is in none has
// the index noList.
func (m *nodeMember) elementPointer(i int) string {
	if i == noList {
		return m.pointer()
	}
	return m.pointer() + "/" + strconv.Itoa(i)
}

const noList = -1

// missing refuses the object for lack of a member, called as its context spells it.
func (n *node) missing(prop string) *Refusal {
	return &Refusal{Code: finding.MissingMember, Pointer: n.pointer + "/" + n.in.spelling(prop), Offset: n.at}
}

func (n *node) get(prop string) *nodeMember {
	for i := range n.members {
		if n.members[i].prop == prop {
			return &n.members[i]
		}
	}
	return nil
}

// The bounds of what one envelope lists. Of evidence, five quotes are shown
// (RFC 4.1); what is over is dropped when it is projected, not refused here.
const (
	maxEvidence = 64
	maxListed   = 256 // cited works, dependencies
)

// expandRoot picks the context and expands the envelope in JSON-LD's safe mode:
// what the context does not define is refused, never dropped.
func expandRoot(root strictjson.Value) (*node, *Refusal) {
	if root.Kind() != '{' {
		return nil, &Refusal{Code: finding.Misshapen, Offset: root.Offset()}
	}
	ctx := root.Get("@context")
	if !ctx.Exists() {
		return nil, &Refusal{Code: finding.MissingMember, Pointer: "/@context", Offset: root.Offset()}
	}
	s := contextOf(ctx)
	if s == nil {
		return nil, &Refusal{Code: finding.UnknownContext, Pointer: "/@context", Offset: ctx.Offset()}
	}
	typ := root.Get("@type")
	switch {
	case !typ.Exists():
		return nil, &Refusal{Code: finding.MissingMember, Pointer: "/@type", Offset: root.Offset()}
	case typ.Text() != envelopeType:
		return nil, &Refusal{Code: finding.Misshapen, Pointer: "/@type", Offset: typ.Offset()}
	}
	n := &node{at: root.Offset()}
	if r := n.expand(root, s, "@context", "@type"); r != nil {
		return nil, r
	}
	return n, nil
}

// contextOf is the scope of exactly a bundled URL, alone, in an array, or before
// the context of Data Integrity.
func contextOf(v strictjson.Value) *scope {
	if v.Kind() == '"' {
		return contexts()[v.Text()]
	}
	var s *scope
	i := 0
	for e := range v.Elements() {
		switch {
		case i == 0:
			s = contexts()[e.Text()]
		case i > 1 || e.Text() != integrityContext:
			return nil
		}
		i++
	}
	return s
}

// expand checks every member of obj but those that are called as in known.
func (n *node) expand(obj strictjson.Value, s *scope, known ...string) *Refusal {
	n.in, n.members = s, make([]nodeMember, 0, len(s.terms))
next:
	for name, v := range obj.Members() {
		spelled := name.Text()
		for _, k := range known {
			if spelled == k {
				continue next
			}
		}
		t := s.find(spelled)
		if t == nil {
			return &Refusal{Code: finding.UndefinedTerm, Pointer: n.pointer, Offset: name.Offset()}
		}
		m := nodeMember{prop: t.prop, in: n.pointer, name: t.name, v: v}
		if r := m.expand(t); r != nil {
			return r
		}
		n.members = append(n.members, m)
	}
	return nil
}

func (m *nodeMember) expand(t *term) *Refusal {
	if !t.list {
		return m.element(t, m.v, noList)
	}
	if m.v.Kind() != '[' {
		return &Refusal{Code: finding.Misshapen, Pointer: m.pointer(), Offset: m.v.Offset()}
	}
	most := maxListed
	if t.prop == "evidence" {
		most = maxEvidence
	}
	i := 0
	for e := range m.v.Elements() {
		if i == most {
			return &Refusal{Code: finding.TooMany, Pointer: m.pointer(), Offset: e.Offset()}
		}
		if r := m.element(t, e, i); r != nil {
			return r
		}
		i++
	}
	return nil
}

// element checks one value. JSON-LD drops a null, so here it is refused.
func (m *nodeMember) element(t *term, v strictjson.Value, i int) *Refusal {
	want := strictjson.Kind('"')
	if t.kind == object {
		want = '{'
	}
	if v.Kind() != want {
		return &Refusal{Code: finding.Misshapen, Pointer: m.elementPointer(i), Offset: v.Offset()}
	}
	if t.kind != object {
		return nil
	}
	n := node{pointer: m.elementPointer(i), at: v.Offset()}
	var known []string
	if t.prop == "proof" {
		known = []string{"@context"} // a copy of the envelope's: see the proof's own check
	}
	if r := n.expand(v, t.in, known...); r != nil {
		return r
	}
	m.nodes = append(m.nodes, n)
	return nil
}
