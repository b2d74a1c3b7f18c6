// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// appendOpening writes {"digests":{role:hex,…},"id":hex,"salt":hex}, canonical if
// the subjects are in the order of their roles.
func appendOpening(dst []byte, id ID, salt Salt, subjects []Subject) []byte {
	o := object{dst: append(dst, `{"digests":{`...)}
	for _, s := range subjects {
		o.name(string(s.Role))
		o.dst = append(hex.AppendEncode(append(o.dst, '"'), s.Digest[:]), '"')
	}
	o = object{dst: append(o.dst, '}'), some: true}
	o.hex("id", id[:])
	o.hex("salt", salt[:])
	return append(o.dst, '}')
}

// An Opening shows what the salted digests of one record stand for.
type Opening struct {
	ID       ID
	Salt     Salt
	Subjects []Subject // plain digests, in the order of their roles
}

// The errors of openings, to be compared with errors.Is.
var (
	ErrOpening     = errors.New("ledger: opening: it is not that of the record")
	errOpeningForm = errors.New("ledger: opening: it is not spelled as this format has it")
)

const maxOpening = 4 << 10 // bytes

// ParseOpening reads the opening of a record, strictly: it must be spelled as Seal
// spells it.
func ParseOpening(b []byte) (*Opening, error) {
	var p parser
	return p.opening(b)
}

func (p *parser) opening(b []byte) (*Opening, error) {
	d := &p.doc
	if len(b) > maxOpening || d.Reset(b, strictjson.Limits{Depth: 4}) != nil {
		return nil, errOpeningForm
	}
	o := new(Opening)
	decodeHex(o.ID[:], d.Root().Get("id").Text())
	decodeHex(o.Salt[:], d.Root().Get("salt").Text())
	for name, v := range d.Root().Get("digests").Members() {
		i := slices.Index(roles, Role(name.Text()))
		if i < 0 {
			return nil, errOpeningForm
		}
		s := Subject{Role: roles[i]}
		decodeHex(s.Digest[:], v.Text())
		o.Subjects = append(o.Subjects, s)
	}
	p.buf = appendOpening(p.buf[:0], o.ID, o.Salt, o.Subjects)
	if !inOrder(o.Subjects) || !bytes.Equal(p.buf, b) {
		return nil, errOpeningForm
	}
	return o, nil
}

// Check compares an opening with the statement of its record: every subject of the
// one is a subject of the other. The error is ErrOpening.
func (o *Opening) Check(s *Statement) error {
	if o.ID != s.ID || len(o.Subjects) != len(s.Subjects) {
		return ErrOpening
	}
	for i, sub := range o.Subjects {
		if sub.Role != s.Subjects[i].Role || commit(o.Salt, sub.Role, sub.Digest) != s.Subjects[i].Digest {
			return ErrOpening
		}
	}
	return nil
}
