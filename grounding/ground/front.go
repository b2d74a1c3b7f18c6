// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/intake"
)

const (
	maxQueries = 256 // MCP requests under way over HTTP
	// bodyPatience is how long one message may take to arrive, or an answer to leave.
	bodyPatience = 30 * time.Second
)

// mcpHandler serves MCP over streamable HTTP, both protocol eras. There are no
// sessions in either: this server never speaks first, so every request stands for
// itself and any replica may answer it. GET and DELETE are not allowed, as all
// revisions permit.
func (a *Adapter) mcpHandler(o MCPOptions, memory *intake.Budget, patience time.Duration) http.Handler {
	srv := a.server(o)
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{
		Stateless:    true, // what 2026-07-28 needs, and the older ones allow
		JSONResponse: true, // there is only ever one message to send
		// Its answer to a foreign Host echoes it, and the Host of a proxy on the same
		// machine is as good as the operator says: auth.Local knows.
		DisableLocalhostProtection:   true,
		MaxRequestBodyBytes:          maxMessage,
		PropagateRequestCancellation: true,
	})
	return &front{next: sdk, places: intake.NewBudget(maxQueries), bodies: intake.Reader{Memory: memory, Most: maxMessage, Patience: patience}}
}

// A front holds the bytes of a request to strict JSON-RPC before go-sdk reads
// them, whose decoder takes the last of two members of one name and ignores what
// follows the message; and it keeps what a client wrote out of go-sdk's errors.
type front struct {
	next   http.Handler
	places *intake.Budget // of queries under way, by principal
	bodies intake.Reader
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	by := who(r)
	if f.places.Take(by, 1) != nil {
		f.rejectBusy(w)
		return
	}
	defer f.places.Give(by, 1)
	body, room, err := f.bodies.Read(w, r, by)
	defer room.Leave()
	switch {
	case errors.Is(err, intake.ErrFull):
		f.rejectBusy(w)
		return
	case errors.Is(err, intake.ErrTooLong):
		f.reject(w, http.StatusRequestEntityTooLarge, wire.ID{}, errTooLong)
		return
	case err != nil:
		f.reject(w, http.StatusRequestTimeout, wire.ID{}, errTooSlow)
		return
	}
	m, err := wire.Decode(body, messageLimits)
	switch what, id, e := dispose(m, err); {
	case what == drop:
		w.WriteHeader(http.StatusAccepted)
	case what == pass:
		f.pass(w, r, m, body)
	case e == errMethod:
		status := http.StatusOK
		if modern(m.Params.Get("_meta").Get(mcpmsg.KeyVersion).Text()) {
			status = http.StatusNotFound
		}
		f.reject(w, status, id, e)
	default:
		f.reject(w, http.StatusBadRequest, id, e)
	}
}

// rejectBusy answers that too many requests are under way.
func (f *front) rejectBusy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	f.reject(w, http.StatusServiceUnavailable, wire.ID{}, errTooMany)
}

// pass lets go-sdk answer m.
func (f *front) pass(w http.ResponseWriter, r *http.Request, m *wire.Message, body []byte) {
	inner := r.Clone(r.Context())
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	got := captured{header: http.Header{}, status: http.StatusOK}
	f.next.ServeHTTP(&got, inner)
	for _, name := range []string{"Content-Type", "Cache-Control", "Allow"} {
		if v := got.header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	switch answer := got.body.Bytes(); {
	case got.status < 300 && (len(answer) == 0 || isResult(answer, m.ID)):
		f.send(w, got.status, answer)
	default:
		if response, ok := plainError(answer); ok {
			f.send(w, got.status, response)
		} else if got.status < 300 {
			f.send(w, got.status, answer) // a result whose id is spelled in another way
		} else {
			f.reject(w, got.status, m.ID, errRefused)
		}
	}
}

func (f *front) reject(w http.ResponseWriter, status int, id wire.ID, e rpcError) {
	w.Header().Set("Content-Type", "application/json")
	f.send(w, status, wire.NewError(id, e.object(nil)).Append(nil))
}

// send writes an answer, which its reader must take in time.
func (f *front) send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	sendBody(w, status, body, f.bodies.Patience)
}

// captured is an answer of go-sdk.
type captured struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

func (c *captured) Header() http.Header { return c.header }

func (c *captured) WriteHeader(status int) {
	if !c.wrote {
		c.status, c.wrote = status, true
	}
}

func (c *captured) Write(p []byte) (int, error) {
	c.wrote = true
	return c.body.Write(p)
}

// sendBody writes a whole answer, which must be taken within patience.
func sendBody(w http.ResponseWriter, status int, body []byte, patience time.Duration) {
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(patience))
	// The deadline is the connection's: the next request on it must not inherit it.
	defer rc.SetWriteDeadline(time.Time{})
	w.WriteHeader(status)
	if _, err := w.Write(body); err == nil {
		_ = rc.Flush()
	}
}
