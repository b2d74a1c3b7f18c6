// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// An upstream is where the provider is.
type upstream struct {
	origin string // scheme and host
	v1     string // what stands in the place of /v1
	other  string // what stands before /v1beta and /openai
	google bool   // it is Google's
	amazon bool   // it is Amazon's
}

// upstreamOf reads an URL that egress has checked.
func upstreamOf(root string) (upstream, error) {
	u, err := url.Parse(root)
	if err != nil {
		return upstream{}, err
	}
	up := upstream{origin: u.Scheme + "://" + u.Host, v1: root, other: root, google: strings.HasSuffix(u.Hostname(), ".googleapis.com"),
		amazon: strings.HasSuffix(u.Hostname(), ".amazonaws.com") || strings.HasSuffix(u.Hostname(), ".api.aws")}
	if u.Path == "" {
		up.v1 += "/v1"
	}
	for _, end := range []string{"/openai/v1", "/openai", "/anthropic/v1", "/anthropic", "/v1beta1", "/v1beta", "/v1"} {
		if before, ok := strings.CutSuffix(root, end); ok {
			up.other = before
			break
		}
	}
	return up, nil
}

// url is the address of a path that a route has made.
func (u *upstream) url(r *route, path string) string {
	if r.root == rootV1 {
		return u.v1 + path
	}
	return u.other + path
}

// probe is the path, below the origin, at which a request is asked again without a stream.
func (u *upstream) probe(r *route, t target, asked *format.Asked) string {
	path := t.path
	if asked.InPath {
		before := "" // what stands before the model, which is as long as the root at least
		if i := strings.LastIndex(path, "/models/"); i >= 0 {
			before = path[:i]
		}
		path = before + r.format.Path(asked.Model, false)
	}
	return strings.TrimPrefix(u.url(r, path), u.origin)
}

// The headers in which a key may stand.
const (
	bearerHeader = "Authorization"
	anthropicKey = "X-Api-Key"
	googleKey    = "X-Goog-Api-Key"
	azureKey     = "Api-Key"
)

// credentials are the headers by which clients say who they are.
var credentials = []string{bearerHeader, anthropicKey, googleKey, azureKey, "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"}

// keyIn is the header in which the provider of a route expects a key; "": as a bearer token.
// Anthropic has one of its own in the version of 2023.
func (u *upstream) keyIn(r *route, h http.Header) string {
	gemini := r.format != nil && strings.HasPrefix(string(r.format.Name()), "google-")
	switch {
	case u.amazon:
		return ""
	case slices.Contains(r.segments, "projects"): // Vertex AI: a token of Google Cloud
		return ""
	case gemini, r.format == nil && r.segments[0] != "openai" && (r.root == rootGoogle || r.root == rootVertex || u.google):
		return googleKey
	case r.root == rootAzure:
		return azureKey
	case h.Get("Anthropic-Version") == "2023-06-01":
		return anthropicKey
	}
	return ""
}

// sign puts the guard's own key into the place of the client's, if it has one.
func (g *Guard) sign(h http.Header, in string) {
	if g.o.Key.IsZero() && g.o.AWS == nil {
		return
	}
	for _, name := range credentials {
		h.Del(name)
	}
	switch {
	case g.o.AWS != nil: // the carrier signs
	case in == "":
		h.Set(bearerHeader, "Bearer "+g.o.Key.Secret())
	default:
		h.Set(in, g.o.Key.Secret())
	}
}

// bearer lets a client that sends its key as a provider wants it say the same to auth.
func bearer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var keys []string
		for _, name := range []string{anthropicKey, googleKey, azureKey} {
			keys = append(keys, r.Header.Values(name)...)
			r.Header.Del(name)
		}
		if len(keys) == 1 && r.Header.Get(bearerHeader) == "" {
			r.Header.Set(bearerHeader, "Bearer "+keys[0])
		}
		next.ServeHTTP(w, r)
	})
}

// keyed moves a key in the query, as Google takes it, into the header for it. An URL stands in
// the logs of every program on the way: none goes to the provider with a key.
func keyed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, query, _ := strings.Cut(r.RequestURI, "?")
		if strings.HasPrefix(path, rootGoogle) || strings.HasPrefix(path, rootVertex) || strings.HasPrefix(path, "/v1/models") || strings.HasPrefix(path, "/v1/publishers") {
			var key []string
			rest := slices.DeleteFunc(strings.Split(query, "&"), func(s string) bool {
				v, is := strings.CutPrefix(s, "key=")
				if is {
					key = append(key, v)
				}
				return is
			})
			if len(key) == 1 && isSegment(key[0]) && len(r.Header.Values(googleKey)) == 0 {
				r.Header.Set(googleKey, key[0])
				r.RequestURI, r.URL.RawQuery = path, strings.Join(rest, "&")
				if len(rest) > 0 {
					r.RequestURI += "?" + r.URL.RawQuery
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// probed are the headers that probes have in common with the request, by how they begin.
var probed = []string{"Anthropic-", "Openai-", "X-Amzn-Bedrock-"}

// probedNames are others: who asks, and for which application.
var probedNames = []string{bearerHeader, anthropicKey, googleKey, azureKey, "X-Goog-User-Project", "Http-Referer", "X-Title"}

// isProbed reports whether a header of a request goes out with its probes. own are the
// operator's patterns, in small letters: a * at the end stands for any characters.
func isProbed(name string, own []string) bool {
	if slices.Contains(probedNames, name) || slices.ContainsFunc(probed, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return true
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(own, func(p string) bool {
		before, open := strings.CutSuffix(p, "*")
		return name == p || open && strings.HasPrefix(name, before)
	})
}
