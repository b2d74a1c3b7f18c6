// SPDX-License-Identifier: Apache-2.0

package mcpshape

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
)

//go:embed types.txt
var source string

type kind uint8

const (
	anyKind kind = iota
	stringKind
	numberKind
	integerKind
	booleanKind
	objectKind
	nullKind
	literalKind
	listKind
	mapKind
	typeKind
	unionKind
)

var plain = map[string]kind{
	"any": anyKind, "string": stringKind, "number": numberKind, "integer": integerKind,
	"boolean": booleanKind, "object": objectKind, "null": nullKind,
}

// A form is what a value has to be. It is not changed once its table is made.
type form struct {
	kind         kind
	literals     []string
	min, max     *float64 // of numbers
	of           *form    // of lists and maps
	most         int      // elements of a list; 0: any number
	alone        bool     // elements of a list stand or fall alone
	members      []member // of a type
	required     uint64   // bits of members
	alternatives []*form  // of a union

	// Of a union whose alternatives are told apart by a member with one literal each.
	by       string
	named    map[string]*form
	untagged *form            // the alternative in which the member need not be there
	later    map[string]*form // blocks that a later revision brought
	revision string
}

type member struct {
	name     string
	form     *form
	required bool
	lenient  []*leniency
}

// table holds the types of one revision.
type table struct{ types map[string]*form }

// revisions are those that the table knows, the oldest first.
var revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", newestLegacy, mcpmsg.Modern}

// tables are made when they are first used.
var tables = func() map[string]func() *table {
	m := map[string]func() *table{}
	for _, r := range revisions {
		m[r] = sync.OnceValue(func() *table {
			t, err := parse(source, r)
			if err != nil {
				panic(err) // the tests parse every revision
			}
			return t
		})
	}
	return m
}()

// parser reads the table for one revision.
type parser struct {
	revision string
	types    map[string]*form
	defined  map[string]bool
}

func parse(src, revision string) (*table, error) {
	p := &parser{revision: revision, types: map[string]*form{}, defined: map[string]bool{}}
	var typ *form
	name := ""
	for i, line := range strings.Split(src, "\n") {
		fail := func(err error) (*table, error) { return nil, fmt.Errorf("mcpshape: types.txt:%d: %w", i+1, err) }
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		var holds bool
		var err error
		if words, holds, err = p.within(words); err != nil {
			return fail(err)
		}
		switch {
		case line[0] != '\t' && len(words) == 3 && words[1] == "=":
			if holds {
				f, err := p.form(words[2])
				if err != nil {
					return fail(err)
				}
				if f.kind != unionKind { // a name for another type, which may come later
					f = &form{kind: unionKind, alternatives: []*form{f}}
				}
				*p.named(words[0]) = *f
				p.defined[words[0]] = true
			}
			typ = nil
		case line[0] != '\t' && len(words) == 1:
			name = words[0]
			typ = p.named(name)
			typ.kind = typeKind
			p.defined[name] = true
		case line[0] == '\t' && len(words) == 2 && typ != nil:
			if holds {
				if err := p.member(name, typ, words[0], words[1]); err != nil {
					return fail(err)
				}
			}
		default:
			return fail(fmt.Errorf("neither a type nor a member"))
		}
	}
	for name := range p.types {
		if !p.defined[name] {
			// It is of another revision, and every line that names it must be too.
			return nil, fmt.Errorf("mcpshape: %s: type %s is not defined", revision, name)
		}
	}
	for _, f := range p.types {
		f.discriminate()
	}
	if f := p.types["Content"]; f != nil && laterBlock(revision) != nil {
		f.revision, f.later = revision, map[string]*form{"audio": p.types["AudioContent"], "resource_link": p.types["ResourceLink"]}
	}
	return &table{p.types}, nil
}

// within cuts the range off a line and reports whether the revision is in it.
func (p *parser) within(words []string) (rest []string, holds bool, err error) {
	last := words[len(words)-1]
	if !strings.HasPrefix(last, "@") {
		return words, true, nil
	}
	from, to, bounded := strings.Cut(last[1:], "..")
	for _, r := range []string{from, to} {
		if r != "" && !slices.Contains(revisions, r) {
			return nil, false, fmt.Errorf("no such revision")
		}
	}
	return words[:len(words)-1], p.revision >= from && (!bounded || to == "" || p.revision <= to), nil
}

func (p *parser) named(name string) *form {
	f := p.types[name]
	if f == nil {
		f = &form{}
		p.types[name] = f
	}
	return f
}

func (p *parser) member(of string, typ *form, name, src string) error {
	src, required := strings.CutSuffix(src, "!")
	f, err := p.form(src)
	if err != nil {
		return err
	}
	if len(typ.members) == 64 {
		return fmt.Errorf("more than 64 members")
	}
	if required {
		typ.required |= 1 << len(typ.members)
	}
	m := member{name: name, form: f, required: required}
	for i := range leniencies {
		if l := &leniencies[i]; l.of(of, name, required, p.revision) {
			m.lenient = append(m.lenient, l)
		}
	}
	typ.members = append(typ.members, m)
	return nil
}

// form reads one form.
func (p *parser) form(src string) (*form, error) {
	parts := split(src, '|')
	if strings.HasPrefix(parts[0], `"`) {
		f := &form{kind: literalKind}
		for _, part := range parts {
			s, err := strconv.Unquote(part)
			if err != nil {
				return nil, err
			}
			f.literals = append(f.literals, s)
		}
		return f, nil
	}
	if len(parts) > 1 {
		f := &form{kind: unionKind}
		for _, part := range parts {
			alt, err := p.form(part)
			if err != nil {
				return nil, err
			}
			f.alternatives = append(f.alternatives, alt)
		}
		return f, nil
	}
	head, inside, has := strings.Cut(src, "<")
	if !has {
		if k, is := plain[src]; is {
			return &form{kind: k}, nil
		}
		return p.named(src), nil
	}
	inside, closed := strings.CutSuffix(inside, ">")
	if !closed {
		return nil, fmt.Errorf("form without an end")
	}
	return p.applied(head, inside)
}

// applied reads a form with something in angle brackets.
func (p *parser) applied(head, inside string) (*form, error) {
	args := split(inside, ',')
	if head == "number" || head == "integer" {
		f := &form{kind: plain[head]}
		for i, bound := range [...]**float64{&f.min, &f.max} {
			if i < len(args) && args[i] != "" {
				x, err := strconv.ParseFloat(args[i], 64)
				if err != nil {
					return nil, err
				}
				*bound = &x
			}
		}
		return f, nil
	}
	of, err := p.form(args[0])
	if err != nil {
		return nil, err
	}
	f := &form{kind: listKind, of: of}
	switch head {
	case "list":
	case "entries":
		f.alone = true
	case "map":
		f.kind = mapKind
	default:
		return nil, fmt.Errorf("no such form")
	}
	if len(args) > 1 {
		f.most, err = strconv.Atoi(args[1])
	}
	return f, err
}

// split cuts at a separator that stands outside angle brackets and quotes.
func split(src string, sep byte) (parts []string) {
	depth, start := 0, 0
	for i := range len(src) {
		switch src[i] {
		case '<':
			depth++
		case '>':
			depth--
		case sep:
			if depth == 0 {
				parts, start = append(parts, src[start:i]), i+1
			}
		}
	}
	return append(parts, src[start:])
}

// discriminate finds the member that tells the alternatives of a union apart.
func (f *form) discriminate() {
	if f.kind != unionKind {
		return
	}
	for _, by := range []string{"type", "method", "mode"} {
		named, untagged := map[string]*form{}, (*form)(nil)
		for _, alt := range f.alternatives {
			i := slices.IndexFunc(alt.members, func(m member) bool { return m.name == by && len(m.form.literals) == 1 })
			if i < 0 {
				break
			}
			named[alt.members[i].form.literals[0]] = alt
			if !alt.members[i].required {
				untagged = alt
			}
		}
		if len(named) == len(f.alternatives) {
			f.by, f.named, f.untagged = by, named, untagged
			return
		}
	}
}
