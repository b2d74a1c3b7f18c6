// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// DumpFormat is the value of the member "format" of a dump. spec: surface/4
const DumpFormat = "pellucid-surface/" + version

// errorSuffix makes of a list's member the member that says why there is no list.
const errorSuffix = "_error"

// AppendDump appends the surface's answers as they came, in the format that
// ParseDump reads. It ends with a line feed.
func (s *Surface) AppendDump(dst []byte) []byte {
	dst = append(strictjson.AppendQuote(append(dst, "{\n\"format\": "...), DumpFormat), ",\n"...)
	var open string
	for _, a := range s.answers {
		raw := a.doc.Root().Raw()
		switch {
		case listOf(a.method) == nil:
			dst = fmt.Appendf(dst, "%q: %s,\n", a.method, raw)
		case a.method == open:
			dst = append(append(dst[:len(dst)-len("],\n")], ",\n"...), raw...)
			dst = append(dst, "],\n"...)
		default:
			open = a.method
			dst = fmt.Appendf(dst, "%q: [%s],\n", a.method, raw)
		}
	}
	if i := slices.IndexFunc(s.items, func(it Item) bool { return it.Kind == App }); i >= 0 {
		dst = append(dst, `"apps": {`...)
		for _, it := range s.items[i:] {
			dst = append(append(strictjson.AppendQuote(dst, it.Name), ':'), it.JSON...)
			dst = append(dst, ',')
		}
		dst = append(closed(dst, '}'), ",\n"...)
	}
	for _, u := range s.unlisted {
		dst = fmt.Appendf(dst, "%q: {\"code\":%d},\n", u.Method+errorSuffix, u.Code)
	}
	return append(dst[:len(dst)-len(",\n")], "\n}\n"...)
}

// ParseDump reads a saved surface: one that AppendDump wrote, or another
// program's of the same members, which may have others beside them. Pages stand in
// order, up to the one behind which there is no other: what was not saved cannot
// be judged. The error is a *RefusedError.
func ParseDump(b []byte, lim Limits) (*Surface, error) {
	lim = lim.withDefaults()
	fail := func(method string, err error) (*Surface, error) { return nil, &RefusedError{NotADump, method, err} }
	var d strictjson.Doc
	if len(b) > 2*lim.size { // white space is free, up to a point
		return nil, &RefusedError{TooLarge, "", nil}
	}
	if err := d.Reset(b, strictjson.Limits{Bytes: 2 * lim.size, MendSurrogates: true}); err != nil {
		return fail("", err)
	}
	root := d.Root()
	if format := root.Get("format"); root.Kind() != '{' || format.Exists() && format.Text() != DumpFormat {
		return fail("", nil)
	}
	build := newBuilder(lim)
	for _, method := range []string{mcpmsg.Initialize, mcpmsg.Discover} {
		if v := root.Get(method); v.Exists() && v.Kind() != 'n' {
			if _, err := build.add(method, "", v.Raw()); err != nil {
				return nil, err
			}
		}
	}
	for i := range lists {
		if err := addPages(build, root, lists[i].method); err != nil {
			return nil, err
		}
	}
	s, err := build.surface()
	if err != nil {
		return nil, err
	}
	var apps []Item
	for uri, app := range root.Get("apps").Members() {
		apps = append(apps, newItem(Key{App, strings.Clone(uri.Text())}, Canonical(app)))
	}
	if len(apps) > maxApps {
		return nil, &RefusedError{TooManyItems, mcpmsg.ReadResource, nil}
	}
	slices.SortFunc(apps, func(a, b Item) int { return a.Key.compare(b.Key) })
	return s.with(apps, s.size), nil
}

func addPages(build *builder, root strictjson.Value, method string) error {
	pages, failed := root.Get(method), root.Get(method+errorSuffix)
	switch {
	case failed.Exists() && failed.Kind() != 'n':
		if pages.Len() > 0 {
			return &RefusedError{NotADump, method, nil}
		}
		// Another program may have saved the message, which says nothing here.
		code, _ := failed.Get("code").Int64()
		return build.refuse(method, code)
	case pages.Kind() == '[':
		next, first := "", true
		for page := range pages.Elements() {
			if !first && next == "" {
				return &RefusedError{OutOfOrder, method, nil}
			}
			first = false
			var err error
			if next, err = build.add(method, next, page.Raw()); err != nil {
				return err
			}
		}
	case pages.Exists() && pages.Kind() != 'n':
		return &RefusedError{NotADump, method, nil}
	}
	return nil
}

// Dumped reports whether b may be a dump: it is an object with one of its members, and
// says of no other format that it is one.
// It is for telling a dump from another file, not for trusting it.
func Dumped(b []byte) bool {
	var d strictjson.Doc
	if d.Reset(b, strictjson.Limits{MendSurrogates: true}) != nil {
		return false
	}
	if format := d.Root().Get("format"); format.Exists() && format.Text() != DumpFormat {
		return false
	}
	return slices.ContainsFunc([]string{mcpmsg.Initialize, mcpmsg.Discover}, func(m string) bool { return d.Root().Get(m).Kind() == '{' })
}
