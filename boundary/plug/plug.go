// SPDX-License-Identifier: Apache-2.0

// Package plug lets other gateways and hosts call Pellucid over HTTP: text or a tool's result in, a verdict and what is safe out.
//
// The wire formats stand in docs/spec/plug.md. What a caller sends is decoded
// strictly, an answer holds nothing of what was refused, and a tool's result passes
// the same choke point as on every other route.
package plug

import (
	"cmp"
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Scope is what a principal needs to call the handler, where it is asked for one.
const Scope = "plug"

// defaultBody bounds a request, in bytes.
const defaultBody = 32 << 20

// Options say what the handler works with.
type Options struct {
	// Inspector inspects the results of the server of that name, which is the
	// caller's word; nil: no such word is known, and Default is used.
	Inspector func(server string) *gateway.Inspector
	Default   *gateway.Inspector // needed

	// Tokens are the control tokens by which /v1/scrub cleans; nil: scrub.Builtin.
	Tokens *scrub.TokenTable

	MaxBody   int64                      // bytes of a request; 0 = 32 MiB
	Memory    *intake.Budget             // of the requests under way, by Principal; default: 512 MiB
	Principal func(*http.Request) string // nil, "": nobody in particular
	patience  time.Duration              // for a body, beside a second for each 16 KiB; 0 = 30 s
}

// New returns the handler of POST /v1/scrub, /v1/result and
// /v1/interceptors/docker/after. Who may call it is the business of whoever mounts
// it.
func New(o Options) (http.Handler, error) {
	if o.Default == nil {
		return nil, errors.New("plug: no inspector")
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultBody
	}
	if o.MaxBody < 0 || o.patience < 0 {
		return nil, errors.New("plug: negative limit")
	}
	if o.Principal == nil {
		o.Principal = func(*http.Request) string { return "" }
	}
	if o.Memory == nil {
		o.Memory = intake.NewBudget(512 << 20)
	}
	bodies := &intake.Reader{Most: int(o.MaxBody), Patience: cmp.Or(o.patience, 30*time.Second), Memory: o.Memory}
	profiles, err := compile(o.Tokens)
	if err != nil {
		return nil, err
	}
	h := &handler{o, profiles, bodies}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/scrub", h.json(h.scrub))
	mux.HandleFunc("/v1/result", h.json(h.result))
	mux.HandleFunc("/v1/interceptors/docker/after", h.docker)
	return mux, nil
}

type handler struct {
	Options
	profiles profiles
	bodies   *intake.Reader
}

func (h *handler) inspector(server string) *gateway.Inspector {
	if h.Inspector != nil {
		if i := h.Inspector(server); i != nil {
			return i
		}
	}
	return h.Default
}

// A refusal is a request that cannot be answered. Its text is constant.
type refusal struct {
	status int
	code   string
	text   string
}

var (
	errMethod   = &refusal{http.StatusMethodNotAllowed, "method", "want POST"}
	errType     = &refusal{http.StatusUnsupportedMediaType, "media-type", "want application/json in UTF-8"}
	errCoding   = &refusal{http.StatusUnsupportedMediaType, "content-encoding", "want a body without content coding"}
	errTooLarge = &refusal{http.StatusRequestEntityTooLarge, "too-large", "the body exceeds the limit"}
	errBody     = &refusal{http.StatusBadRequest, "body", "the body cannot be read"}
	errJSON     = &refusal{http.StatusBadRequest, "json", "the body is not strict JSON"}
	errShape    = &refusal{http.StatusBadRequest, "shape", "a member is missing, unknown or of another type"}
	errBusy     = &refusal{http.StatusServiceUnavailable, "busy", "too much is under way"}
	errGreedy   = &refusal{http.StatusTooManyRequests, "busy", "too much of yours is under way"}
	errInternal = &refusal{http.StatusInternalServerError, "internal", "the request could not be worked on"}
)

// readBody reads a request's body, whole. The caller gives its room back.
func (h *handler) readBody(w http.ResponseWriter, r *http.Request) (body []byte, room *intake.Room, no *refusal) {
	if no := h.declared(w, r); no != nil {
		return nil, nil, no
	}
	body, room, err := h.bodies.Read(w, r, h.Principal(r))
	switch {
	case err == nil:
	case errors.Is(err, intake.ErrTooLong):
		no = errTooLarge
	case errors.Is(err, intake.ErrGreedy):
		no = errGreedy
	case errors.Is(err, intake.ErrFull):
		no = errBusy
	default:
		no = errBody
	}
	return body, room, no
}

// declared says what keeps a body from being read.
func (h *handler) declared(w http.ResponseWriter, r *http.Request) *refusal {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return errMethod
	}
	// A page in a browser can send other types to a stranger's server unasked.
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || media != "application/json" || charset != "" && charset != "utf-8" && charset != "UTF-8" {
		return errType
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return errCoding
	}
	return nil
}

// json makes a handler of what answers a strict JSON object with a value.
func (h *handler) json(answer func(q *query) (any, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, room, no := h.readBody(w, r)
		defer room.Leave()
		var v any
		if no == nil {
			q := &query{ctx: r.Context(), src: b, room: room}
			if no = q.parse(h.MaxBody); no == nil {
				v, no = answer(q)
			}
		}
		if no != nil {
			v = map[string]map[string]string{"error": {"code": no.code, "message": no.text}}
		}
		out, err := json.Marshal(v)
		if err != nil {
			no, out = errInternal, []byte(`{"error":{"code":"internal","message":"the request could not be worked on"}}`)
		}
		h.write(w, r, no, out)
	}
}

func (h *handler) write(w http.ResponseWriter, r *http.Request, no *refusal, body []byte) {
	if no == errBusy || no == errGreedy || no == errTooLarge {
		if no != errTooLarge {
			w.Header().Set("Retry-After", "1")
		}
		intake.Refuse(w, r, int(h.MaxBody), func() { answer(w, no, body) })
		return
	}
	answer(w, no, body)
}

func answer(w http.ResponseWriter, no *refusal, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if no != nil {
		w.WriteHeader(no.status)
	}
	_, _ = w.Write(body) // the caller is gone; there is nobody to tell
}

// A query is a request's object.
type query struct {
	ctx  context.Context // of the request
	src  []byte
	room *intake.Room
	doc  strictjson.Doc
}

func (q *query) parse(max int64) *refusal {
	err := q.doc.Reset(q.src, strictjson.Limits{Bytes: int(min(max, 1<<30)), MendSurrogates: true})
	switch {
	case err != nil:
		return errJSON
	case q.doc.Root().Kind() != '{':
		return errShape
	}
	return nil
}

// has checks that every member is one of names.
func (q *query) has(names ...string) bool {
	for name := range q.doc.Root().Members() {
		if !slices.Contains(names, name.Text()) {
			return false
		}
	}
	return true
}

// text is the string of that name; "" if not found.
func (q *query) text(name string) (string, bool) {
	v := q.doc.Root().Get(name)
	return v.Text(), !v.Exists() || v.Kind() == '"'
}

// raw is the value of that name as it was sent, nil if not found.
func (q *query) raw(name string) []byte {
	v := q.doc.Root().Get(name)
	if !v.Exists() {
		return nil
	}
	return q.src[v.Offset() : v.Offset()+len(v.Raw())]
}

// A verdict says what was found in the words of SEP-2624.
type validation struct {
	Valid    bool      `json:"valid"`    // nothing of severity error was found
	Severity string    `json:"severity"` // the greatest: info, warn or error
	Messages []message `json:"messages"`
}

// A message is one finding. Its text is constant but for a number.
type message struct {
	Path     string `json:"path"` // JSON pointer
	Message  string `json:"message"`
	Severity string `json:"severity"`
}

// verdictOf sums up messages; worst is the greatest severity of all that was found.
func validationOf(messages []message, worst finding.Severity) validation {
	if messages == nil {
		messages = []message{}
	}
	return validation{worst != finding.Error, worst.String(), messages}
}
