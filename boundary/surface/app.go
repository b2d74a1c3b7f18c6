// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxApps bounds the apps of one surface that are read.
const maxApps = 256

// AppItem is the item of what a server answers to a read of an app: all that the answer
// says of it, with its domains and permissions, and the digest of its page in the place
// of the page. spec: surface/2.4
func AppItem(uri string, result strictjson.Value) Item {
	dst := []byte(`{"contents":[`)
	for c := range result.Get("contents").Elements() {
		dst = append(appendCanonical(dst, appContents(c), nil), ',')
	}
	return newItem(Key{App, strings.Clone(uri)}, append(closed(dst, ']'), '}'))
}

// appContents is one part of an app, without the page.
func appContents(v strictjson.Value) strictjson.Value {
	var e strictjson.Edits
	for _, name := range [...]string{"text", "blob"} {
		if page := v.Get(name); page.Kind() == '"' {
			text := page.Text()
			sum := sha256.Sum256([]byte(text))
			e.Replace(page, fmt.Appendf(nil, `{"sha256":"%s","bytes":%d}`, hex.EncodeToString(sum[:]), len(text)))
		}
	}
	if e.Len() == 0 {
		return v
	}
	var doc strictjson.Doc
	if doc.Reset(e.Apply(nil, v), strictjson.Limits{MendSurrogates: true}) != nil {
		return strictjson.Value{} // never: a part of a message within the same limits
	}
	return doc.Root()
}

// unread is the item of an app that the server does not give to a reader without a session.
func unreadApp(uri string, code int64) Item {
	return newItem(Key{App, uri}, fmt.Appendf(nil, `{"unread":%d}`, code))
}

// apps are the URIs of the apps that the items name, in order.
func (s *Surface) apps() (list []string) {
	for i := range s.items {
		var doc strictjson.Doc
		it := &s.items[i]
		if it.Kind != Tool && it.Kind != Resource || doc.Reset(it.JSON, itemLimits) != nil {
			continue
		}
		names := []string{doc.Root().Get("uri").Text()}
		if it.Kind == Tool {
			names = mcpmsg.AppsOf(doc.Root())
		}
		for _, uri := range names {
			if mcpmsg.IsApp(uri) {
				list = append(list, strings.Clone(uri))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// withApps reads the apps that the surface names, and returns the surface with them. An
// app is read once: one whose page differs each time is held whenever a client reads it.
// The error is ask's or a *RefusedError.
func (s *Surface) withApps(ctx context.Context, ask ask, lim Limits) (*Surface, error) {
	list := s.apps()
	if len(list) > maxApps {
		return nil, &RefusedError{TooManyItems, mcpmsg.ReadResource, nil}
	}
	var items []Item
	size := s.size
	for _, uri := range list {
		result, err := ask(ctx, mcpmsg.ReadResource, uri)
		var said *AnswerError
		if errors.As(err, &said) {
			items = append(items, unreadApp(uri, said.code))
			continue
		}
		if err != nil {
			return nil, err
		}
		if size += len(result); size > lim.withDefaults().size {
			return nil, &RefusedError{TooLarge, mcpmsg.ReadResource, nil}
		}
		var doc strictjson.Doc
		if err := doc.Reset(result, strictjson.Limits{Bytes: lim.withDefaults().size, MendSurrogates: true}); err != nil {
			return nil, &RefusedError{NotJSON, mcpmsg.ReadResource, err}
		}
		items = append(items, AppItem(uri, doc.Root()))
	}
	return s.with(items, size), nil
}

// with returns the surface with more items, which stand behind all others.
func (s *Surface) with(items []Item, size int) *Surface {
	if len(items) == 0 {
		return s
	}
	t := *s
	t.items, t.size = slices.Concat(s.items, items), size
	t.print = fingerprintOf(t.items)
	return &t
}

// hasApps reports whether the surface names an app, so that a client without the extension
// may be offered another one.
func (s *Surface) hasApps() bool {
	return slices.ContainsFunc(s.items, func(it Item) bool { return it.Kind == App })
}

// offeredMore returns the surface that clients without the extension Apps are offered, with
// what capable adds for those that have it. An item that both are offered, each in another
// version, is that of the clients without. spec: surface/1.7
func (s *Surface) offeredMore(capable *Surface) *Surface {
	t := *s
	t.items, t.able = slices.Clone(s.items), capable.able
	t.more, t.earlier = capable.answers, slices.Concat(s.earlier, capable.earlier)
	for _, it := range capable.items {
		if _, known := s.Item(it.Key); !known && it.Kind != List {
			t.items = append(t.items, it)
		}
	}
	slices.SortFunc(t.items, func(a, b Item) int { return a.Key.compare(b.Key) })
	t.size += capable.size
	t.print = fingerprintOf(t.items)
	return &t
}
