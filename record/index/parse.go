// SPDX-License-Identifier: Apache-2.0

package index

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Bounds of the text form.
const (
	maxText   = 4 << 10 // bytes
	maxValues = 32      // of a list
)

// Terms are the names of the terms, in the order in which String writes them.
var Terms = []string{"server", "tool", "kind", "verdict", "code", "principal", "by", "digest", "id", "of", "since", "until"}

var errNoValue = errors.New("a value is missing")

// sha is what a digest begins with where a name may stand in its place.
const sha = "sha256:"

// Parse reads the text form of a filter: terms NAME:VALUE, with spaces between them, each name once.
//
//	server, tool, kind, verdict   one label, or several with commas between them
//	code                          a code of a finding
//	principal, by                 a name, in double quotes where it has a space; or sha256: and the
//	                              64 hexadecimal digits of its SHA-256
//	digest                        64 hexadecimal digits
//	id, of                        an evidence id
//	since, until                  a time as RFC 3339 writes it, or how long before now it is: 90m, 7d
//
// A term without a name is an evidence id if it has 32 hexadecimal digits, and a digest if it has 64.
func Parse(text string, now time.Time) (Filter, error) {
	list, err := Split(text)
	var f Filter
	for _, t := range list {
		if err = f.Set(t.Name, t.Value, now); err != nil {
			return Filter{}, fmt.Errorf("index: %s: %w", t.Label(), err)
		}
	}
	return f, err
}

// A Term is one NAME:VALUE of the text form.
type Term struct{ Name, Value string }

// Label is the name of the term for an error.
func (t *Term) Label() string {
	if frame.IsLabel(t.Name) {
		return t.Name
	}
	return finding.Quote(t.Name)
}

// Split reads the terms of the text form, whatever their names. Lists that have other members than records use it,
// so that each filter is written by the same grammar.
func Split(text string) (out []Term, err error) {
	if len(text) > maxText {
		return nil, errors.New("index: the filter is too long")
	}
	seen := map[string]bool{}
	for rest := strings.TrimLeft(text, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		var t Term
		if t.Name, t.Value, rest, err = term(rest); err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("index: the term %s stands twice", finding.Quote(t.Name))
		}
		seen[t.Name] = true
		out = append(out, t)
	}
	return out, nil
}

// term cuts the first term from the text.
func term(s string) (name, value, rest string, err error) {
	end := strings.IndexAny(s, `: "`)
	if end < 0 || s[end] == ' ' {
		if end < 0 {
			end = len(s)
		}
		switch value, rest = s[:end], s[end:]; len(value) {
		case 32:
			return "id", value, rest, nil
		case 64:
			return "digest", value, rest, nil
		}
		return "", "", "", fmt.Errorf("index: %s is not a term: want NAME:VALUE, as in server:mail, or an id or a digest", finding.Quote(s[:end]))
	}
	if s[end] == '"' {
		return "", "", "", errors.New("index: a quote stands before a value only, as in principal:\"Ann Lee\"")
	}
	name, rest = s[:end], s[end+1:]
	if !strings.HasPrefix(rest, `"`) {
		value, rest, _ = strings.Cut(rest, " ")
		return name, value, rest, nil
	}
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			if after := rest[i+1:]; after == "" || after[0] == ' ' {
				return name, b.String(), after, nil
			}
			return "", "", "", errors.New("index: a space is missing after a quoted value")
		case c == '\\' && i+1 < len(rest):
			i++
			b.WriteByte(rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", "", errors.New("index: a quote has no end")
}

// Set adds one term; an empty value is an error. The error does not name the term: the caller names it as it was written.
func (f *Filter) Set(name, value string, now time.Time) (err error) {
	if value == "" {
		return errNoValue
	}
	switch name {
	case "server":
		f.Servers, err = labels(value)
	case "tool":
		f.Tools, err = labels(value)
	case "verdict":
		if f.Verdicts, err = labels(value); slices.Contains(f.Verdicts, "held") {
			err = errors.New("held is no verdict: kind:result-held selects what was held, and its message has the verdict withheld or dropped")
		}
	case "kind":
		f.Kinds, err = kinds(value)
	case "code":
		if f.Code = finding.Code(value); !frame.IsLabel(value) {
			err = errors.New("want one code of a finding, as in hidden-tag")
		}
	case "principal":
		f.Principal, err = person(value)
	case "by":
		f.By, err = person(value)
	case "digest":
		f.Digest, err = digest(strings.TrimPrefix(value, sha))
	case "id":
		f.ID, err = id(value)
	case "of":
		f.Of, err = id(value)
	case "since":
		f.Since, err = moment(value, now)
	case "until":
		f.Until, err = moment(value, now)
	default:
		err = errors.New("no such term: want one of " + strings.Join(Terms, ", "))
	}
	return err
}

func labels(value string) ([]string, error) {
	list := strings.Split(value, ",")
	if len(list) > maxValues {
		return nil, fmt.Errorf("more than %d values", maxValues)
	}
	for _, s := range list {
		if !frame.IsLabel(s) {
			return nil, fmt.Errorf("%s is not a name that a record can have", finding.Quote(s))
		}
	}
	return list, nil
}

func kinds(value string) ([]ledger.Kind, error) {
	list, err := labels(value)
	out := make([]ledger.Kind, len(list))
	for i, s := range list {
		if out[i] = ledger.Kind(s); err == nil && !out[i].Known() {
			err = fmt.Errorf("there is no kind %s: docs/spec/evidence.md has them", finding.Quote(s))
		}
	}
	return out, err
}

func person(value string) (ledger.Digest, error) {
	if hexadecimal, ok := strings.CutPrefix(value, sha); ok {
		return digest(hexadecimal)
	}
	return sha256.Sum256([]byte(value)), nil
}

func digest(value string) (d ledger.Digest, err error) {
	b, err := hex.DecodeString(value)
	if err != nil || len(b) != len(d) || strings.ToLower(value) != value {
		return d, errors.New("a digest has 64 hexadecimal digits in lower case")
	}
	copy(d[:], b)
	if d == (ledger.Digest{}) {
		return d, errors.New("no content has the digest zero")
	}
	return d, nil
}

func id(value string) (ledger.ID, error) {
	out, err := ledger.ParseID(value)
	if err != nil || out == (ledger.ID{}) {
		return out, errors.New("an evidence id has 32 hexadecimal digits in lower case")
	}
	return out, nil
}

func moment(value string, now time.Time) (time.Time, error) {
	t, err := terminal.ParseMoment(value, now)
	if err != nil {
		return t, err
	}
	t = t.UTC()
	if y := t.Year(); y < 1 || y > 9999 {
		return time.Time{}, errors.New("the year is not one of 1 to 9999")
	}
	if t.IsZero() { // stands for no time
		t = t.Add(time.Nanosecond)
	}
	return t, nil
}

// String is the text form, which Parse reads as the same filter.
func (f *Filter) String() string {
	var out []string
	text := func(name, value string) {
		if value != "" {
			out = append(out, name+":"+value)
		}
	}
	var of []string
	for _, k := range f.Kinds {
		of = append(of, string(k))
	}
	text("server", strings.Join(f.Servers, ","))
	text("tool", strings.Join(f.Tools, ","))
	text("kind", strings.Join(of, ","))
	text("verdict", strings.Join(f.Verdicts, ","))
	text("code", string(f.Code))
	hexOf := func(name, prefix string, b []byte, set bool) {
		if set {
			text(name, prefix+hex.EncodeToString(b))
		}
	}
	hexOf("principal", sha, f.Principal[:], f.Principal != ledger.Digest{})
	hexOf("by", sha, f.By[:], f.By != ledger.Digest{})
	hexOf("digest", "", f.Digest[:], f.Digest != ledger.Digest{})
	hexOf("id", "", f.ID[:], f.ID != ledger.ID{})
	hexOf("of", "", f.Of[:], f.Of != ledger.ID{})
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"since", f.Since}, {"until", f.Until}} {
		if !t.at.IsZero() {
			text(t.name, t.at.UTC().Format(time.RFC3339Nano))
		}
	}
	return strings.Join(out, " ")
}
