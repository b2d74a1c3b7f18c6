// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/hex"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Statement is a record as it was read: an Event whose digests are salted.
type Statement struct {
	Event        // Subjects hold salted digests, in the order of their roles
	Bytes []byte // as they were signed
}

var errStatement = errors.New("ledger: statement: it is not spelled as this format has it")

// ParseStatement reads a statement, strictly: it must be spelled as Seal spells
// it, byte for byte, so that two texts never stand for one event.
func ParseStatement(b []byte) (*Statement, error) {
	var p parser
	return p.statement(bytes.Clone(b))
}

// A parser keeps the memory of one parse for the next.
type parser struct {
	doc strictjson.Doc
	buf []byte
}

// statement reads a statement, which must not change afterwards. It takes what it
// knows and writes that down again: whatever it did not know, or knows under
// another spelling, makes a difference.
func (p *parser) statement(b []byte) (*Statement, error) {
	if len(b) > maxStatement || p.doc.Reset(b, strictjson.Limits{Bytes: maxStatement, Depth: 8}) != nil {
		return nil, errStatement
	}
	root := p.doc.Root()
	s := &Statement{Bytes: b}
	s.read(root.Get("predicate"))
	for v := range root.Get("subject").Elements() {
		sub := Subject{Role: Role(v.Get("name").Text())}
		decodeHex(sub.Digest[:], v.Get("digest").Get(digestName).Text())
		s.Subjects = append(s.Subjects, sub)
	}
	again := s.normal()
	p.buf = again.appendStatement(p.buf[:0])
	if !bytes.Equal(p.buf, b) || !s.Kind.Known() || !inOrder(s.Subjects) || (s.Kind == KeyInstalled) != (s.Key != "") {
		return nil, errStatement
	}
	if s.Key != "" {
		if _, err := ParseKey(s.Key); err != nil {
			return nil, errStatement
		}
	}
	return s, nil
}

// read takes over the members of a predicate, in the order in which they stand.
func (e *Event) read(predicate strictjson.Value) {
	for name, v := range predicate.Members() {
		switch name.Text() {
		case "actor":
			e.Actor = v.Text()
		case "findings":
			e.Findings = readCounts(v)
		case "id":
			decodeHex(e.ID[:], v.Text())
		case "inspected":
			e.Inspected, _ = v.Int64()
		case "key":
			e.Key = v.Text()
		case "kind":
			e.Kind = Kind(v.Text())
		case "method":
			e.Method = v.Text()
		case "notInspected":
			e.NotInspected = readCounts(v)
		case "numbers":
			e.Numbers = readNumbers(v)
		case "of":
			decodeHex(e.Of[:], v.Text())
		case "profile":
			e.Profile = v.Text()
		case "reason":
			e.Reason = v.Text()
		case "rule":
			e.Rule = v.Text()
		case "server":
			e.Server = v.Text()
		case "shape":
			e.Shape = v.Text()
		case "time":
			e.Time, _ = time.Parse(timeFormat, v.Text())
		case "tool":
			e.Tool = v.Text()
		case "verdict":
			e.Verdict = v.Text()
		case "versions":
			for of, version := range v.Members() {
				e.Versions = append(e.Versions, Version{of.Text(), version.Text()})
			}
		case "withheld":
			e.Withheld = readCounts(v)
		}
	}
}

func readNumbers(v strictjson.Value) []Number {
	var out []Number
	for name, v := range v.Members() {
		n, _ := v.Int64()
		out = append(out, Number{name.Text(), n})
	}
	return out
}

func readCounts(v strictjson.Value) []Count {
	var out []Count
	for name, v := range v.Members() {
		n, _ := v.Int64()
		out = append(out, Count{finding.Code(name.Text()), n})
	}
	return out
}

// decodeHex fills dst, if s is just as long and in lower case. Otherwise dst stays
// zero, which its reader spells differently.
func decodeHex(dst []byte, s string) bool {
	if len(s) != 2*len(dst) || !lowerHex(s) {
		return false
	}
	_, err := hex.Decode(dst, []byte(s))
	return err == nil
}

// ReadSealed reads Sealed.Bytes. The Sealed keeps b: the caller must not change it afterwards.
func ReadSealed(b []byte) (Sealed, error) {
	h := parsers.Get()
	defer h.Release()
	p := h.Value()
	statement, opening, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return Sealed{}, errStatement
	}
	s, err := p.statement(statement)
	if err != nil {
		return Sealed{}, err
	}
	o, err := p.opening(opening)
	if err != nil {
		return Sealed{}, err
	}
	if err := o.Check(s); err != nil {
		return Sealed{}, err
	}
	return Sealed{s.ID, s.Bytes, opening, s}, nil
}

var parsers reuse.Pool[parser]
