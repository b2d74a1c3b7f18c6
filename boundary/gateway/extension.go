// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/url"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/text/finding"
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
	if !mayOpen(v.Text()) {
		return finding.URIScheme
	}
	return ok
}

// mayOpen reports whether a person may be asked to open a URL: it is encrypted, or goes to
// this machine, and its host is where it seems to be.
func mayOpen(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Hostname() == "" || strings.ContainsAny(s, "\\ \t\r\n") {
		return false
	}
	switch u.Scheme {
	case "https":
		return true
	case "http":
		return loopback.Host(u.Hostname())
	}
	return false
}

// isApprovedPage reports whether the walker stands on the page of an app, whose digest is
// the approved one. The scrubber would break a program in it.
func (w *walker) isApprovedPage(f *mcpmsg.Field) bool {
	return w.approvedPage && (f.Name == "text" || f.Name == "blob") && len(w.path) == 3 && w.path[0].name == "contents"
}
