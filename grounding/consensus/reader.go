// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/rfc3339"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A reader collects the problems of one document while it is read. Every method
// that returns a value returns the zero value where it reports a problem.
type reader struct{ problems problems }

// A place is a value of the document and where it stands.
type place struct {
	v   strictjson.Value
	ptr string
}

// of is where the member called name stands; name is a constant of this package.
func (p place) of(name string) place { return place{p.v.Get(name), p.ptr + "/" + name} }

// at is the same place under an ordinal.
func (p place) at(i int) place { return place{p.v, p.ptr + "/" + strconv.Itoa(i)} }

// name is the n-th member's value, where the document's author chose the names.
func (p place) name(n int, v strictjson.Value) place {
	return place{v, p.ptr + "/#" + strconv.Itoa(n)}
}

func (d *reader) report(c code, p place) {
	d.problems = append(d.problems, problem{c, p.ptr, p.v.Offset()})
}

// err is nil if no problem was reported.
func (d *reader) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return d.problems.sorted()
}

// members says who reads which member of an object.
type members map[string]func(place)

// object reads an object of the members that are given and no other.
func (d *reader) object(p place, m members, required ...string) {
	if p.v.Kind() != '{' {
		d.report(wrongType, p)
		return
	}
	n := 0
	for name, v := range p.v.Members() {
		if read := m[name.Text()]; read != nil {
			read(place{v, p.ptr + "/" + name.Text()})
		} else {
			d.report(memberUnknown, p.name(n, name))
		}
		n++
	}
	for _, name := range required {
		if !p.v.Get(name).Exists() {
			d.report(memberMissing, place{p.v, p.ptr + "/" + name})
		}
	}
}

// names reads an object whose names the author chose, at most most.
func (d *reader) names(p place, most int, read func(name string, at, val place)) {
	if p.v.Kind() != '{' {
		d.report(wrongType, p)
		return
	}
	n := 0
	for name, v := range p.v.Members() {
		if n == most {
			d.report(tooMany, p.name(n, name))
			return
		}
		read(strings.Clone(name.Text()), p.name(n, name), p.name(n, v))
		n++
	}
}

// array reads an array of one element or more, at most most.
func (d *reader) array(p place, most int, read func(place)) {
	if p.v.Kind() != '[' {
		d.report(wrongType, p)
		return
	}
	n := 0
	for v := range p.v.Elements() {
		at := place{v, p.ptr}.at(n)
		if n == most {
			d.report(tooMany, at)
			return
		}
		read(at)
		n++
	}
	if n == 0 {
		d.report(empty, p)
	}
}

// text reads a string of at most most bytes.
func (d *reader) text(p place, most int) string {
	return d.checked(p, most, func(string) bool { return true })
}

// checked reads a string of at most most bytes that valid holds for.
func (d *reader) checked(p place, most int, valid func(string) bool) string {
	s := p.v.Text()
	switch {
	case p.v.Kind() != '"':
		d.report(wrongType, p)
	case len(s) > most:
		d.report(tooLong, p)
	case !valid(s):
		d.report(malformed, p)
	default:
		return strings.Clone(s)
	}
	return ""
}

// constant reads a string that can only be one of allowed.
func (d *reader) constant(p place, allowed ...string) string {
	s := p.v.Text()
	switch {
	case p.v.Kind() != '"':
		d.report(wrongType, p)
	case !slices.Contains(allowed, s):
		d.report(notAllowed, p)
	default:
		return strings.Clone(s)
	}
	return ""
}

func (d *reader) version(p place) string { return d.checked(p, 32, versionValid) }

// versionValid: 1 to 32 bytes of letters, digits, ".", "+" and "-".
func versionValid(s string) bool {
	return len(s) <= 32 && word(s, ".+-")
}

// score reads a number of at most most.
func (d *reader) score(p place, most Score) Score {
	if p.v.Kind() != '0' {
		d.report(wrongType, p)
		return 0
	}
	s, err := parseScore(string(p.v.Raw()))
	if err == nil && s > most {
		err = outOfRange
	}
	if err != nil {
		d.report(err.(code), p)
		return 0
	}
	return s
}

// count reads an integer from 1 to most.
func (d *reader) count(p place, most int) int {
	if p.v.Kind() != '0' {
		d.report(wrongType, p)
		return 0
	}
	n, ok := p.v.Int64()
	if !ok || n < 1 || n > int64(most) {
		d.report(outOfRange, p)
		return 0
	}
	return int(n)
}

// date reads a time as RFC 3339 spells it.
func (d *reader) date(p place) time.Time {
	var t time.Time
	d.checked(p, 40, func(s string) (ok bool) {
		t, ok = rfc3339.Parse(s)
		return ok
	})
	return t
}
