// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/auth"
)

// A use says what happens to a request.
type use uint8

const (
	inspected use = iota + 1 // its answer is held against the policy
	passed                   // it goes on as it is: no call of a tool is in the answer
)

// routes are all that the guard forwards of its own accord; everything else is refused.
// They are those of OpenAI's, Anthropic's, Azure's and Amazon's current interfaces at which
// the answer either is inspected or holds no call of a tool.
var routes = []struct {
	line string
	use  use
}{
	{"POST /v1/chat/completions?api-version", inspected},
	{"POST /v1/responses?api-version", inspected},
	{"POST /v1/messages?beta", inspected}, // Anthropic's SDK asks for ?beta=true
	{"POST /model/" + anyModel + "/converse", inspected},
	{"POST /model/" + anyModel + "/converse-stream", inspected},
	{"POST /model/" + anyModel + "/invoke", inspected},
	{"POST /model/" + anyModel + "/invoke-with-response-stream", inspected},
	{"POST /model/" + anyModel + "/count-tokens", passed},
	{"POST /v1/messages/count_tokens?beta", passed},
	{"POST /v1/responses/input_tokens?api-version", passed},
	{"GET /v1/models?limit&after_id&before_id&beta&api-version", passed},
	{"GET /v1/models/*?beta&api-version", passed},
	{"POST /v1/embeddings?api-version", passed},
	{"POST /v1/moderations?api-version", passed},
	{"POST /v1/images/generations?api-version", passed},
	{"POST /v1/images/edits?api-version", passed},
	{"POST /v1/audio/speech?api-version", passed},
	{"POST /v1/audio/transcriptions?api-version", passed},
	{"POST /v1/audio/translations?api-version", passed},
}

// A route is one method on one path.
type route struct {
	method   string
	bedrock  bool     // it stands below /model, and not below /v1
	segments []string // of the path, behind /v1 or /model; "*" is any one, and anyModel the id of any model
	query    []string // names of the parameters that may stand in the query
	use      use
	format   format.Format // of what is inspected
	stream   bool          // it is the path, and not the body, that asks for a stream
}

var errRoute = errors.New(`want a method and a path below /v1, such as "GET /v1/files/*?limit&after": * stands for one segment, and not for the first`)

// parseRoute reads METHOD /v1/PATH?NAME&NAME, or METHOD /model/PATH.
func parseRoute(line string) (route, error) {
	method, target, _ := strings.Cut(line, " ")
	path, query, asked := strings.Cut(target, "?")
	r := route{method: method, use: passed}
	path, below := strings.CutPrefix(path, "/v1/")
	if !below {
		path, r.bedrock = strings.CutPrefix(path, "/model/")
	}
	r.segments = strings.Split(path, "/")
	if asked {
		r.query = strings.Split(query, "&")
	}
	plain := func(s string) bool { return s == "*" || s == anyModel || isSegment(s) }
	if !below && !r.bedrock || !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, method) || r.segments[0] == "*" ||
		!all(r.segments, plain) || !all(r.query, isSegment) {
		return route{}, errRoute
	}
	return r, nil
}

func all(list []string, is func(string) bool) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !is(s) })
}

// isSegment reports whether s, as a segment of a path or a value of a query, means the
// same to everything that reads URLs: no escape, no separator, no dot at its beginning.
func isSegment(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', strings.IndexByte("-_~:@", c) >= 0, c == '.' && i > 0:
		default:
			return false
		}
	}
	return s != "" && len(s) <= 256
}

// compileRoutes puts those that the operator names behind those that are known.
func compileRoutes(pass []string) (out []route, err error) {
	for _, known := range routes {
		r, err := parseRoute(known.line)
		if err != nil {
			return nil, err
		}
		if r.use = known.use; r.use == inspected {
			r.format, r.stream = formatAt(r.path())
		}
		out = append(out, r)
	}
	for _, line := range pass {
		r, err := parseRoute(line)
		if err == nil && r.bedrock {
			err = errRoute
		}
		if err != nil {
			return nil, fmt.Errorf("guard: route %+.64q: %w", line, err)
		}
		if inspectedPath(r.path()) {
			return nil, fmt.Errorf("guard: route %+.64q: the answers of this path are inspected", line)
		}
		out = append(out, r)
	}
	return out, nil
}

// usualFormat is that of errors on paths that no format has.
var usualFormat = format.Of(format.Chat)

// formatAt is the format that has that path, however its letters are spelled; nil if none
// has. stream: it is the path that asks for a stream.
func formatAt(path string) (f format.Format, stream bool) {
	for _, f := range format.All {
		for _, stream := range []bool{false, true} {
			at := f.Path(anyModel, stream)
			if strings.EqualFold(path, at) || strings.EqualFold(path, "/v1"+at) {
				return f, stream
			}
		}
	}
	return nil, false
}

// inspectedPath reports whether a format has that path.
func inspectedPath(path string) bool {
	f, _ := formatAt(path)
	return f != nil
}

func (r *route) path() string {
	if r.bedrock {
		return "/model/" + strings.Join(r.segments, "/")
	}
	return "/v1/" + strings.Join(r.segments, "/")
}

// A target is what is asked of the provider: a path with its query, below the base of the
// upstream, and the model that the path names, if it names one.
type target struct{ path, model string }

// match returns the target that r makes of path and query; path reports whether it is r's
// path, whatever the method and the query.
func (r *route) match(segments, query []string) (t target, path bool) {
	if len(segments) != len(r.segments) {
		return target{}, false
	}
	if r.bedrock {
		t.path = "/model"
	}
	for i, s := range segments {
		switch want := r.segments[i]; {
		case want == anyModel:
			var ok bool
			if t.model, s, ok = modelID(s); !ok {
				return target{}, false
			}
		case want != s && (want != "*" || !isSegment(s)):
			return target{}, false
		}
		t.path += "/" + s
	}
	seen := map[string]bool{}
	for _, parameter := range query {
		name, value, _ := strings.Cut(parameter, "=")
		if !slices.Contains(r.query, name) || seen[name] || !isSegment(value) {
			return target{}, true
		}
		seen[name] = true
	}
	if len(query) > 0 {
		t.path += "?" + strings.Join(query, "&")
	}
	return t, true
}

// route finds what is to happen to a request target, which has to be spelled as the table
// spells it, byte for byte: no two programs read another spelling alike. known is the route
// that has the path, for another method or query.
func (g *Guard) route(method, uri string) (r *route, t target, known *route) {
	path, query, asked := strings.Cut(uri, "?")
	spelled := path
	path, below := strings.CutPrefix(path, "/v1/")
	bedrock := false
	if !below {
		path, bedrock = strings.CutPrefix(path, "/model/")
	}
	if !below && !bedrock || len(uri) > 4096 {
		return nil, target{}, nil
	}
	segments := strings.Split(path, "/")
	var parameters []string
	if asked {
		parameters = strings.Split(query, "&")
	}
	for i := range g.routes {
		r := &g.routes[i]
		if r.bedrock != bedrock {
			continue
		}
		t, ours := r.match(segments, parameters)
		// A pattern of the operator's does not open an inspected path to a provider that does
		// not tell capitals from small letters.
		if r.format == nil && ours && inspectedPath(spelled) {
			continue
		}
		if ours && t.path != "" && r.method == method {
			return r, t, nil
		}
		if ours && known == nil {
			known = r
		}
	}
	return nil, target{}, known
}

// serve is the handler of all requests.
func (g *Guard) serve() http.Handler {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.RequestURI == "/metrics" {
			g.counters.text.ServeHTTP(w, r)
			return
		}
		found, t, known := g.route(r.Method, r.RequestURI)
		switch {
		case found == nil:
			g.refuse(w, r, known)
		case found.bedrock && g.unsigned(r.Header):
			g.counters.exchanged("refused-request")
			g.fault(w, format.Of(format.Converse), http.StatusBadRequest, wordsUnsigned)
		case found.use == inspected:
			g.inspect(found, t, w, r)
		default:
			g.pass(found, t, w, r)
		}
	})
	if g.o.Auth != nil {
		h = bearer(auth.Require(g.o.Auth, g.o.Scope, h))
	}
	return h
}

// refuse answers a request that is not forwarded. known is the route that has its path.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, known *route) {
	g.counters.exchanged("refused-route")
	f := usualFormat
	if known != nil && known.format != nil {
		f = known.format
	}
	if known != nil && known.method != r.Method {
		w.Header().Set("Allow", known.method)
		g.fault(w, f, http.StatusMethodNotAllowed, "the guard does not forward this method on this path")
		return
	}
	g.fault(w, f, http.StatusNotFound, "the guard does not forward this path or query; guard.pass of its configuration can name it")
}
