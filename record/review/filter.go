// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// names are the terms of a filter whose value is taken as it is.
var names = []struct {
	name string
	of   func(*hold.Filter) *string
}{
	{"server", func(f *hold.Filter) *string { return &f.Server }},
	{"tool", func(f *hold.Filter) *string { return &f.Tool }},
	{"code", func(f *hold.Filter) *string { return (*string)(&f.Code) }},
	{"found", func(f *hold.Filter) *string { return (*string)(&f.Found) }},
	{"rule", func(f *hold.Filter) *string { return &f.Rule }},
	{"principal", func(f *hold.Filter) *string { return &f.Principal }},
	{"text", func(f *hold.Filter) *string { return &f.Text }},
}

// Filter reads the text form of a filter of the queue. Its grammar is that of index.Parse; each term has one value,
// and the terms are server, tool, code, found, rule, principal, text, digest, since and until.
func Filter(text string, now time.Time) (f hold.Filter, err error) {
	list, err := index.Split(text)
	if err != nil {
		return f, err
	}
	for _, t := range list {
		if err := set(&f, t, now); err != nil {
			return hold.Filter{}, err
		}
	}
	return f, nil
}

func set(f *hold.Filter, t index.Term, now time.Time) error {
	for _, n := range names {
		if t.Name != n.name {
			continue
		}
		code := finding.Code(t.Value)
		switch {
		case t.Value == "":
			return fmt.Errorf("review: the term %s has no value", n.name)
		case (n.name == "code" || n.name == "found") && !code.Known():
			return fmt.Errorf("review: %s: %s is not the code of a finding: docs/spec/scrub.md lists them", n.name, finding.Quote(t.Value))
		}
		*n.of(f) = t.Value
		return nil
	}
	var x index.Filter
	switch t.Name {
	case "digest", "since", "until":
		if err := x.Set(t.Name, t.Value, now); err != nil {
			return err
		}
	case "id":
		return errors.New("review: an item is shown by its id; a filter has none")
	default:
		return fmt.Errorf("review: there is no term %s: want one of server, tool, code, found, rule, principal, text, digest, since, until", finding.Quote(t.Name))
	}
	switch t.Name {
	case "digest":
		f.Digest = hold.Digest(x.Digest)
	case "since":
		f.Since = x.Since
	case "until": // is not part of it
		f.AsOf = x.Until.Add(-1)
	}
	return nil
}

// FilterText is the text form, which Filter reads as the same filter. It has no state, order or page, nor AsOf: a list
// has its time beside its filter.
func FilterText(f *hold.Filter) string {
	var out []string
	for _, n := range names {
		switch value := *n.of(f); {
		case value == "":
		case strings.ContainsAny(value, ` "`):
			out = append(out, n.name+`:"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)+`"`)
		default:
			out = append(out, n.name+":"+value)
		}
	}
	if f.Digest != (hold.Digest{}) {
		out = append(out, "digest:"+strings.TrimPrefix(f.Digest.String(), "sha256:"))
	}
	if !f.Since.IsZero() {
		out = append(out, "since:"+f.Since.UTC().Format(time.RFC3339Nano))
	}
	return strings.Join(out, " ")
}
