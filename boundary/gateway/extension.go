// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The table of extensions (mcpmsg.Extensions) says which capabilities, methods, members of
// _meta and URIs pass. What is withheld is refused here in both directions; members of _meta
// and URIs of withheld extensions are refused by the walker.

// unextended answers a request for what a withheld extension brings; nil: it goes on.
func (r *relay) unextended(m *wire.Message) *answer {
	p := r.cfg.passages
	if !p.Method(m.Method) {
		return &errNoMethod
	}
	switch m.Method {
	case mcpmsg.ReadResource, mcpmsg.Subscribe, mcpmsg.Unsubscribe:
		if !p.URI(m.Params.Get("uri").Text()) {
			return &errNoResource
		}
	}
	return nil
}

// refuseExtension answers what the server asks by a method that is withheld, and drops what
// it tells by one.
func (r *relay) refuseExtension(m *wire.Message) {
	kind := "notification"
	if m.Kind == wire.Request {
		kind = "request"
		r.enqueue(errNoMethod.message(m.ID, nil))
	}
	r.refused(kind, Dropped, finding.Denied, "method", finding.Quote(m.Method))
}

// refuseExtended answers the client's request.
func (r *relay) refuseExtended(ctx context.Context, m *wire.Message, k *call, refused *answer) error {
	defer m.Release()
	return r.toClient(ctx, refused.to(k, r.refusedRequest(k, finding.Denied)))
}

// withholdCapabilities leaves out of a greeting the capabilities that are withheld.
func (in *inspection) withholdCapabilities(root strictjson.Value) {
	if !in.row.Instructions || in.p.msg.Kind != wire.Response {
		return
	}
	in.cfg.passages.Announced(root.Get("capabilities"), func(v strictjson.Value) {
		in.w.edits.Remove(v)
		in.w.leftOut(finding.Denied, 1)
	})
}

// isURI reports whether a field that is never rewritten holds a URI of the server's own.
func isURI(field string) bool { return field == "uri" || field == "uriTemplate" }

// link checks a URL that a person is asked to open.
func (w *walker) link(v strictjson.Value) finding.Code {
	if code := w.name(v); code != ok || v.Kind() != '"' {
		return code
	}
	return checkLink(v.Text())
}

// escapedDelimiter is a delimiter of URIs behind percent escapes, of however many levels.
var escapedDelimiter = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%(25)*(2[Ff]|3[Ff]|23|40|3[Aa]|5[Cc])`)
})

// publicHost stands for this machine, which href does not allow, and for the host of a query.
const publicHost = "https://host.example"

// checkLink returns why a person may not be asked to open a URL, or ok. It must be one that
// package href allows, or go to this machine. In the query and the fragment escaped delimiters
// are allowed, since every request for authorization holds the URL to return to, and href's
// limit of the length is that of each value.
func checkLink(s string) finding.Code {
	before, values := s, ""
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		before, values = s[:i], s[i:]
	}
	if u, err := url.Parse(before); err == nil && (u.Scheme == "http" || u.Scheme == "https") && loopback.Host(u.Hostname()) {
		host := u.Hostname()
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		rest, plain := strings.CutPrefix(before[len(u.Scheme):], "://"+host)
		if !plain {
			return finding.URIHost
		}
		before = publicHost + rest
	}
	code := refusalOf(before)
	for value := range strings.FieldsFuncSeq(values, func(r rune) bool { return r == '?' || r == '#' || r == '&' }) {
		if code == ok {
			code = refusalOf(publicHost + "/?" + escapedDelimiter().ReplaceAllString(value, "x"))
		}
	}
	return code
}

// refusalOf returns why href refuses a URI, or ok.
func refusalOf(s string) finding.Code {
	var refusal *href.Refusal
	_, err := href.Parse(s)
	switch {
	case errors.As(err, &refusal):
		return refusal.Code
	case !strings.HasPrefix(strings.ToLower(s), "https:"):
		return finding.URIScheme
	}
	return ok
}

// isApprovedPage reports whether the walker stands on the page of an app, whose digest is
// the approved one. The scrubber would break a program in it.
func (w *walker) isApprovedPage(f *mcpmsg.Field) bool {
	return w.approvedPage && (f.Name == "text" || f.Name == "blob") && len(w.path) == 3 && w.path[0].name == "contents"
}
