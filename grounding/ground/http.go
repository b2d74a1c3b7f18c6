// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/intake"
)

// The scopes that a principal needs.
const (
	ScopeQuery  = "ground:query"  // MCP
	ScopeIngest = "ground:ingest" // POST /ground/attestations
	ScopeEvents = "ground:events" // POST /ground/events
)

// HTTPOptions are how an Adapter is offered over HTTP.
type HTTPOptions struct {
	MCP MCPOptions
	// Auth says who asks. nil: nobody is known, so everything but queries is refused.
	Auth auth.Authenticator
	// RequireQueryScope closes queries to those without ScopeQuery too.
	RequireQueryScope bool
	Log               *slog.Logger // nil: none
	// Patience is how long a client may take to send one document, one line of a
	// stream or one MCP message, and to take an answer. 0: 30 s.
	Patience time.Duration
	Memory   *intake.Budget // of documents and messages under way; the default has DefaultMemory
}

// DefaultMemory is the memory for documents and messages under way that nothing else configures, in bytes.
const DefaultMemory = 256 << 20

// Handler serves
//
//	POST /ground/mcp            MCP over streamable HTTP, without sessions
//	POST /ground/attestations   one attestation (application/json), or lines of them
//	                            (application/jsonl, application/x-ndjson)
//	POST /ground/events         one cascade event (application/json)
//	GET  /healthz, /readyz      whether the process lives, and whether its store answers
//
// One document is answered with its Receipt as JSON and 201, or 409 for a duplicate,
// 413 or 422 where it is refused, and 503 where the store cannot take it now. A stream
// of lines may be of any length. It is answered with one JSON line {"line":n,
// "accepted":…} for each line that is not blank, in their order, as soon as they are
// durable: a client reads while it sends. An answer that was broken off ends without
// its last chunk; lines without a receipt may or may not have been accepted.
//
// Everything may be sent again: what is there already is a duplicate, whose member
// "repeats" is then its own hash.
//
// Whoever serves it on loopback puts auth.Local in front.
func (a *Adapter) Handler(o HTTPOptions) http.Handler {
	h := &endpoint{
		a: a, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), patience: cmp.Or(o.Patience, bodyPatience),
		memory: cmp.Or(o.Memory, intake.NewBudget(DefaultMemory)), places: intake.NewBudget(maxIngests),
	}
	query := a.mcpHandler(o.MCP, h.memory, h.patience)
	switch {
	case o.RequireQueryScope:
		query = require(o.Auth, ScopeQuery, query)
	case o.Auth != nil:
		query = auth.Identify(o.Auth, query) // bad credentials are refused all the same
	}
	mux := http.NewServeMux()
	mux.Handle("/ground/mcp", query)
	mux.Handle("POST /ground/attestations", require(o.Auth, ScopeIngest, h.bounded(h.attestations)))
	mux.Handle("POST /ground/events", require(o.Auth, ScopeEvents, h.bounded(h.events)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { h.text(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			// Also for a body that nobody asks for: the server reads it before it answers.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.patience))
		}
		mux.ServeHTTP(w, r)
	})
}

// require is auth.Require, and a refusal where nobody can be known.
func require(a auth.Authenticator, scope string, next http.Handler) http.Handler {
	if a != nil {
		return auth.Require(a, scope, next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this server was started without credentials, so it takes and gives nothing but queries", http.StatusForbidden)
	})
}

// An endpoint is the HTTP side of an Adapter, but for MCP.
type endpoint struct {
	a        *Adapter
	log      *slog.Logger
	patience time.Duration
	memory   *intake.Budget
	places   *intake.Budget // of ingestions under way, by principal

	mu      sync.Mutex
	checked time.Time // when the store was last asked
	lives   bool      // what it said
}

// bounded lets only so many ingestions run at once: each holds a batch in memory.
func (h *endpoint) bounded(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by := who(r)
		if h.places.Take(by, 1) != nil {
			h.receipt(w, Receipt{Code: CodeBusy, Retry: true})
			return
		}
		defer h.places.Give(by, 1)
		next(w, r)
	})
}

func (h *endpoint) text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	sendBody(w, status, []byte(s+"\n"), h.patience)
}

const (
	readyWait  = 2 * time.Second // for the store
	readyTrust = time.Second     // how long its answer is taken for true
)

func (h *endpoint) ready(w http.ResponseWriter, r *http.Request) {
	if !h.alive(r.Context()) {
		h.text(w, http.StatusServiceUnavailable, "the store does not answer")
		return
	}
	h.text(w, http.StatusOK, "ready")
}

// alive asks the store for what it cannot have. It asks once a second, however
// many want to know.
func (h *endpoint) alive(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked) < readyTrust {
		return h.lives
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWait)
	defer cancel()
	_, err := h.a.o.Store.ByHash(ctx, attest.Hash{})
	h.lives, h.checked = err == nil || errors.Is(err, ErrNotFound), time.Now()
	return h.lives
}

// who is the principal that auth.Require has found.
func who(r *http.Request) string {
	p, _ := auth.FromContext(r.Context())
	return p.ID
}

// readDocument reads a document of at most limit bytes, or answers. The caller leaves its room.
func (h *endpoint) readDocument(w http.ResponseWriter, r *http.Request, limit int) ([]byte, *intake.Room, bool) {
	rd := intake.Reader{Memory: h.memory, Most: limit, Patience: h.patience}
	body, room, err := rd.Read(w, r, who(r))
	switch {
	case err == nil:
		return body, room, true
	case errors.Is(err, intake.ErrFull):
		h.receipt(w, Receipt{Code: CodeBusy, Retry: true})
	case errors.Is(err, intake.ErrTooLong):
		h.receipt(w, tooLong)
	case errors.Is(err, os.ErrDeadlineExceeded):
		h.text(w, http.StatusRequestTimeout, "the document did not arrive in time")
	default:
		h.text(w, http.StatusBadRequest, "the document ended early")
	}
	return nil, nil, false
}

func (h *endpoint) events(w http.ResponseWriter, r *http.Request) {
	if mediaType(r) != "application/json" {
		h.text(w, http.StatusUnsupportedMediaType, "want application/json")
		return
	}
	body, room, ok := h.readDocument(w, r, MaxEvent)
	if !ok {
		return
	}
	defer room.Leave()
	receipt, change, err := h.a.IngestEvent(r.Context(), who(r), body)
	if err != nil {
		h.receipt(w, Receipt{Code: CodeUnavailable, Retry: true})
		return
	}
	h.answer(w, receipt, CascadeReceipt{receipt, change.Live, change.Pending, change.Retracted})
}

// A CascadeReceipt says also how many attestations an event has changed.
type CascadeReceipt struct {
	Receipt
	Live      int `json:"live"`
	Pending   int `json:"cascade_pending"`
	Retracted int `json:"retracted"`
}

func (h *endpoint) attestations(w http.ResponseWriter, r *http.Request) {
	switch mediaType(r) {
	case "application/json":
		body, room, ok := h.readDocument(w, r, attest.MaxBytes)
		if !ok {
			return
		}
		defer room.Leave()
		receipts, err := h.a.Ingest(r.Context(), who(r), [][]byte{body})
		if err != nil {
			receipts = []Receipt{{Code: CodeUnavailable, Retry: true}}
		}
		h.receipt(w, receipts[0])
	case "application/jsonl", "application/x-ndjson":
		h.stream(w, r)
	default:
		h.text(w, http.StatusUnsupportedMediaType, "want application/json, application/jsonl or application/x-ndjson")
	}
}

// stream ingests lines, and answers while they come.
func (h *endpoint) stream(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	// HTTP/1 would otherwise end the body with the first receipt.
	_ = rc.EnableFullDuplex()
	// A server that stops does not wait for the next line.
	defer context.AfterFunc(r.Context(), func() { _ = rc.SetReadDeadline(time.Unix(1, 0)) })()
	in := newLineReader(r.Body, attest.MaxBytes, func() {
		if r.Context().Err() == nil {
			_ = rc.SetReadDeadline(time.Now().Add(h.patience))
		}
	})
	out := receipts{w: w, rc: rc, patience: h.patience}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	for {
		lines, err := in.batch(batchLines, batchBytes)
		if err == nil {
			err = h.settle(r, lines, &out)
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = rc.SetWriteDeadline(time.Time{})
			return
		case err != nil:
			h.log.Info("an ingestion ended before its last line", "principal", who(r), "lines", in.number, "receipts", out.n)
			panic(http.ErrAbortHandler) // so that the client cannot take it for the whole answer
		}
	}
}

// settle ingests lines and sends their receipts.
func (h *endpoint) settle(r *http.Request, lines []jsonLine, out *receipts) error {
	bodies := make([][]byte, 0, len(lines))
	for _, l := range lines {
		if l.text != nil {
			bodies = append(bodies, l.text)
		}
	}
	got, err := h.a.Ingest(r.Context(), who(r), bodies)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.text == nil {
			out.add(l.number, tooLong)
			continue
		}
		out.add(l.number, got[0])
		got = got[1:]
	}
	return out.flush()
}
