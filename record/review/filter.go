// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Terms are the names of the terms of a filter, in the order in which TermsOf returns them.
var Terms = []string{"server", "tool", "code", "found", "rule", "principal", "text", "without", "digest", "id", "since", "until"}

// values are the terms whose value is taken as it is.
var values = map[string]func(*hold.Filter) *string{
	"server":    func(f *hold.Filter) *string { return &f.Server },
	"tool":      func(f *hold.Filter) *string { return &f.Tool },
	"code":      func(f *hold.Filter) *string { return (*string)(&f.Code) },
	"found":     func(f *hold.Filter) *string { return (*string)(&f.Found) },
	"rule":      func(f *hold.Filter) *string { return &f.Rule },
	"principal": func(f *hold.Filter) *string { return &f.Principal },
	"text":      func(f *hold.Filter) *string { return &f.Text },
}

// Filter reads the text form of a filter of the queue. Its grammar is that of index.Parse; each term has one value,
// and the terms are Terms.
func Filter(text string, now time.Time) (f hold.Filter, err error) {
	list, err := index.Split(text)
	if err != nil {
		return f, err
	}
	for _, t := range list {
		if err := Set(&f, t.Name, t.Value, now); err != nil {
			return hold.Filter{}, fmt.Errorf("review: %s: %w", t.Label(), err)
		}
	}
	return f, nil
}

// Set adds one term to a filter. The error does not name the term: the caller names it as it was written.
func Set(f *hold.Filter, name, value string, now time.Time) error {
	if of := values[name]; of != nil {
		switch {
		case value == "":
			return errors.New("a value is missing")
		case !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0:
			return errors.New("the value is not UTF-8, or has a NUL in it")
		case (name == "code" || name == "found") && !finding.Code(value).Known():
			return fmt.Errorf("%s is not the code of a finding: docs/spec/scrub.md lists them", finding.Quote(value))
		}
		*of(f) = value
		return nil
	}
	var x index.Filter
	switch name {
	case "digest", "id", "since", "until":
		if err := x.Set(name, value, now); err != nil {
			return err
		}
	}
	switch name {
	case "digest":
		f.Digest = hold.Digest(x.Digest)
	case "id":
		f.ID = value
	case "since":
		f.Since = x.Since
	case "until": // is not part of it
		f.AsOf = x.Until.Add(-1)
	case "without":
		return without(f, value)
	case "verdict":
		return errors.New("no such term: items of the queue have states, which are chosen beside the filter; verdicts are those of records")
	default:
		return errors.New("no such term: want one of " + strings.Join(Terms, ", "))
	}
	return nil
}

func without(f *hold.Filter, value string) error {
	for name := range strings.SplitSeq(value, ",") {
		switch name {
		case "tool":
			f.NoTool = true
		case "principal":
			f.NoPrincipal = true
		default:
			return errors.New("want tool, principal, or both with a comma between them")
		}
	}
	return nil
}

// TermsOf are the terms that Set reads as the same filter. They have no state, order or page, nor AsOf: a list has its
// time beside its filter.
func TermsOf(f *hold.Filter) (out []index.Term) {
	add := func(name, value string) {
		if value != "" {
			out = append(out, index.Term{Name: name, Value: value})
		}
	}
	for _, name := range Terms {
		if of := values[name]; of != nil {
			add(name, *of(f))
		}
	}
	var bare []string
	if f.NoTool {
		bare = append(bare, "tool")
	}
	if f.NoPrincipal {
		bare = append(bare, "principal")
	}
	add("without", strings.Join(bare, ","))
	if f.Digest != (hold.Digest{}) {
		add("digest", strings.TrimPrefix(f.Digest.String(), "sha256:"))
	}
	add("id", f.ID)
	if !f.Since.IsZero() {
		add("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	return out
}

// FilterText is the text form of TermsOf, which Filter reads as the same filter.
func FilterText(f *hold.Filter) string {
	var out []string
	for _, t := range TermsOf(f) {
		if strings.ContainsAny(t.Value, ` "`) {
			t.Value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(t.Value) + `"`
		}
		out = append(out, t.Name+":"+t.Value)
	}
	return strings.Join(out, " ")
}
