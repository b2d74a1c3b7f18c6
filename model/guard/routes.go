// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
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
// They are those of OpenAI's, Anthropic's, Azure's and Google's current interfaces,
// and of those that speak like one of them, at which the answer either is inspected or holds
// no call of a tool.
var routes = []struct {
	line   string
	format format.Name // of an answer that is inspected; "": the request goes on as it is
	stream bool        // it is the path, and not the body, that asks for a stream
}{
	{"POST /v1/chat/completions?api-version", format.Chat, false},
	{"POST /v1/responses?api-version", format.Responses, false},
	{"POST /v1/messages?beta", format.Messages, false},           // Anthropic's SDK asks for ?beta=true
	{"POST /v1beta/openai/chat/completions", format.Chat, false}, // Google's, for clients of OpenAI's
	{"POST /v1beta/openai/embeddings", "", false},
	{"GET /v1beta/openai/models", "", false},
	{"GET /v1beta/openai/models/*", "", false},
	{"POST /openai/deployments/" + anyModel + "/chat/completions?api-version", format.Chat, false},
	{"POST /openai/deployments/*/embeddings?api-version", "", false},
	{"POST /openai/deployments/*/images/generations?api-version", "", false},
	{"POST /openai/deployments/*/images/edits?api-version", "", false},
	{"POST /openai/deployments/*/audio/speech?api-version", "", false},
	{"POST /openai/deployments/*/audio/transcriptions?api-version", "", false},
	{"POST /openai/deployments/*/audio/translations?api-version", "", false},
	{"POST /anthropic/v1/messages?beta", format.Messages, false}, // Azure's and Amazon's, for Anthropic's models
	{"POST /anthropic/v1/messages/count_tokens?beta", "", false},
	{"POST /openai/responses?api-version", format.Responses, false},
	{"GET /openai/models?api-version", "", false},
	{"GET /openai/models/*?api-version", "", false},
	{"POST /openai/v1/chat/completions?api-version", format.Chat, false}, // Azure's and Amazon's
	{"POST /openai/v1/responses?api-version", format.Responses, false},
	{"POST /openai/v1/embeddings?api-version", "", false},
	{"GET /openai/v1/models?api-version", "", false},
	{"GET /openai/v1/models/*?api-version", "", false},
	{"POST /v1/messages/count_tokens?beta", "", false},
	{"POST /v1/responses/input_tokens?api-version", "", false},
	{"GET /v1/models?limit&after_id&before_id&beta&api-version&pageSize&pageToken", "", false},
	{"GET /v1/models/*?beta&api-version", "", false},
	{"POST /v1/embeddings?api-version", "", false},
	{"POST /v1/moderations?api-version", "", false},
	{"POST /v1/images/generations?api-version", "", false},
	{"POST /v1/images/edits?api-version", "", false},
	{"POST /v1/audio/speech?api-version", "", false},
	{"POST /v1/audio/transcriptions?api-version", "", false},
	{"POST /v1/audio/translations?api-version", "", false},
	{"GET /v1beta/models?pageSize&pageToken", "", false},
	{"GET /v1beta/models/*", "", false},
}

// googlePaths are where Google's models stand: in the Gemini API, and in Vertex AI with a
// project and for an API key.
var googlePaths = []string{
	rootV1 + "models/", rootGoogle + "models/",
	rootV1 + "projects/*/locations/*/publishers/google/models/", rootVertex + "projects/*/locations/*/publishers/google/models/",
	rootV1 + "publishers/google/models/", rootVertex + "publishers/google/models/",
}

// googleRoutes are those of Google's generateContent, below each of these.
var googleRoutes = []struct {
	method string
	format format.Name
	stream bool
}{
	{"generateContent", format.Gemini, false},
	{"streamGenerateContent?alt=sse", format.Gemini, true},
	{"streamGenerateContent", format.GeminiArray, true},
	{"countTokens", "", false},
	{"embedContent", "", false},
	{"batchEmbedContents", "", false},
}

// anyModel stands, in a route, for the id of a model. It is no segment of a path.
const anyModel = "{model}"

// roots are where the paths of an interface begin. What stands below /v1 is asked for below
// the path of the upstream.
const (
	rootV1      = "/v1/"
	rootGoogle  = "/v1beta/"
	rootVertex  = "/v1beta1/"
	rootAzure   = "/openai/"
	rootFoundry = "/anthropic/"
)

var roots = []string{rootV1, rootGoogle, rootVertex, rootAzure, rootFoundry}

// rootOf takes a path apart; root is "" where it begins with none.
func rootOf(path string) (root, rest string) {
	for _, root := range roots {
		if rest, below := strings.CutPrefix(path, root); below {
			return root, rest
		}
	}
	return "", path
}

// A route is one method on one path.
type route struct {
	method   string
	root     string
	segments []string // of the path behind the root; "*" is any one, and anyModel the id of any model, before a ':' perhaps
	query    []string // names of the parameters that may stand in the query, or NAME=VALUE of one that has to
	use      use
	format   format.Format // of what is inspected
	stream   bool          // it is the path, and not the body, that asks for a stream
}

var errRoute = errors.New(`want a method and a path below /v1, /v1beta or /openai, such as "GET /v1/files/*?limit&after": * stands for one segment, and not for the first`)

// parseRoute reads METHOD ROOT/PATH?NAME&NAME.
func parseRoute(line string) (route, error) {
	method, target, _ := strings.Cut(line, " ")
	path, query, asked := strings.Cut(target, "?")
	r := route{method: method, use: passed}
	r.root, path = rootOf(path)
	r.segments = strings.Split(path, "/")
	if asked {
		r.query = strings.Split(query, "&")
	}
	plain := func(s string) bool { return s == "*" || isSegment(strings.Replace(s, anyModel, "m", 1)) }
	parameter := func(s string) bool { return isSegment(strings.Replace(s, "=", "-", 1)) }
	if r.root == "" || !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, method) || r.segments[0] == "*" ||
		!all(r.segments, plain) || !all(r.query, parameter) {
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

// known are the routes of the tables.
func known() (out []route, err error) {
	add := func(line string, name format.Name, stream bool) {
		r, bad := parseRoute(line)
		if bad != nil {
			err = bad
		}
		if name != "" {
			r.use, r.format, r.stream = inspected, format.Of(name), stream
		}
		out = append(out, r)
	}
	for _, path := range googlePaths {
		for _, r := range googleRoutes {
			add("POST "+path+anyModel+":"+r.method, r.format, r.stream)
		}
	}
	for _, r := range routes {
		add(r.line, r.format, r.stream)
	}
	return out, err
}

// compileRoutes puts those that the operator names behind those that are known.
func compileRoutes(pass []string) ([]route, error) {
	out, err := known()
	if err != nil {
		return nil, err
	}
	own := out
	for _, line := range pass {
		r, err := parseRoute(line)
		if err == nil && strings.ContainsAny(line, "{=") {
			err = errRoute
		}
		if err != nil {
			return nil, fmt.Errorf("guard: route %+.64q: %w", line, err)
		}
		if inspectedPath(own, r.root, r.segments) {
			return nil, fmt.Errorf("guard: route %+.64q: the answers of this path are inspected", line)
		}
		out = append(out, r)
	}
	return out, nil
}

// usualFormat is that of errors on paths that no format has.
var usualFormat = format.Of(format.Chat)

// inspectedPath reports whether one of the routes that are inspected has that path, however
// its letters are spelled.
func inspectedPath(list []route, root string, segments []string) bool {
	lower := func(list []string) []string { return strings.Split(strings.ToLower(strings.Join(list, "/")), "/") }
	segments = lower(segments)
	// Whatever stands before it, Google's servers may take the method for the last one.
	for _, method := range []string{"generatecontent", "rawpredict"} {
		if strings.HasSuffix(segments[len(segments)-1], method) {
			return true
		}
	}
	return slices.ContainsFunc(list, func(r route) bool {
		if r.format == nil || r.root != root {
			return false
		}
		r.segments = lower(r.segments)
		_, ours := r.match(segments, nil)
		return ours
	})
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
	if r.root != rootV1 {
		t.path = strings.TrimSuffix(r.root, "/")
	}
	for i, s := range segments {
		want := r.segments[i]
		method, named := strings.CutPrefix(want, anyModel)
		switch {
		case named:
			id, ok := strings.CutSuffix(s, method)
			if !ok || !isSegment(id) || strings.Contains(id, ":") {
				return target{}, false
			}
			t.model = id
		case want != s && (want != "*" || !isSegment(s)):
			return target{}, false
		}
		t.path += "/" + s
	}
	seen := map[string]bool{}
	for _, parameter := range query {
		name, value, _ := strings.Cut(parameter, "=")
		if !slices.Contains(r.query, name) && !slices.Contains(r.query, parameter) || seen[name] || !isSegment(value) {
			return target{}, true
		}
		seen[name] = true
	}
	for _, q := range r.query {
		if name, _, needed := strings.Cut(q, "="); needed && !seen[name] {
			return target{}, true
		}
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
	root, path := rootOf(path)
	if root == "" || len(uri) > 4096 {
		return nil, target{}, nil
	}
	segments := strings.Split(path, "/")
	var parameters []string
	if asked {
		parameters = strings.Split(query, "&")
	}
	for i := range g.routes {
		r := &g.routes[i]
		if r.root != root {
			continue
		}
		t, ours := r.match(segments, parameters)
		// A pattern does not open an inspected path to a provider that does not tell capitals
		// from small letters.
		if r.format == nil && ours && inspectedPath(g.routes, root, segments) {
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
		case g.unsigned(r.Header):
			g.counters.exchanged("refused-request")
			g.fault(w, cmp.Or(found.format, usualFormat), http.StatusBadRequest, wordsUnsigned)
		case found.use == inspected:
			g.inspect(found, t, w, r)
		default:
			g.pass(found, t, w, r)
		}
	})
	if g.o.Auth != nil {
		h = bearer(auth.Require(g.o.Auth, g.o.Scope, h))
	}
	return keyed(h)
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
	if isLive(r.RequestURI) {
		g.fault(w, f, http.StatusNotFound, "the guard does not forward realtime sessions: it could not hold a call in one")
		return
	}
	if strings.HasPrefix(r.RequestURI, "/model/") {
		refuseConverse(w)
		return
	}
	if path, _, _ := strings.Cut(strings.ToLower(r.RequestURI), "?"); strings.HasSuffix(path, "rawpredict") {
		g.fault(w, f, http.StatusNotFound, "the guard does not read rawPredict of Vertex AI: use generateContent, or another interface for Anthropic's models")
		return
	}
	g.fault(w, f, http.StatusNotFound, "the guard does not forward this path or query; guard.pass of its configuration can name it")
}

// isLive reports whether a path is that of a session in which both sides speak at any time:
// OpenAI's and Azure's realtime, and Google's BidiGenerateContent.
func isLive(uri string) bool {
	path, _, _ := strings.Cut(strings.ToLower(uri), "?")
	return slices.Contains(strings.Split(path, "/"), "realtime") || strings.Contains(path, "bidigeneratecontent")
}
