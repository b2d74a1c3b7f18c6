// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

const (
	maxIngests = 16 // POSTs under way
	// One batch of a stream is one transaction of the store.
	batchLines = 512
	batchBytes = 8 << 20
)

// tooLong is the Receipt for what was not read to its end.
var tooLong = Receipt{Code: string(finding.TooLong)}

// mediaType is the type of r's body, "" where it is encoded or not UTF-8.
func mediaType(r *http.Request) string {
	t, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || r.Header.Get("Content-Encoding") != "" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return ""
	}
	return t
}

// statusOf is the status of the answer to one document.
func statusOf(r Receipt) (status int, retryAfter string) {
	switch {
	case r.Accepted:
		return http.StatusCreated, ""
	case r.Code == CodeDuplicate:
		return http.StatusConflict, ""
	case r.Code == string(finding.TooLong) && r.Pointer == "":
		return http.StatusRequestEntityTooLarge, ""
	case r.Code == CodeBusy:
		return http.StatusServiceUnavailable, "1"
	case r.Code == CodeUnavailable:
		return http.StatusServiceUnavailable, "5"
	case r.Code == CodeFull:
		return http.StatusServiceUnavailable, "60"
	}
	return http.StatusUnprocessableEntity, ""
}

// receipt answers with r.
func (h *endpoint) receipt(w http.ResponseWriter, r Receipt) { h.answer(w, r, r) }

// answer answers with body, the status being that of r.
func (h *endpoint) answer(w http.ResponseWriter, r Receipt, body any) {
	status, retry := statusOf(r)
	if retry != "" {
		w.Header().Set("Retry-After", retry)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings, numbers and booleans
	}
	sendBody(w, status, append(raw, '\n'), h.patience)
}

// A lineReceipt is the Receipt of one line of a stream.
type lineReceipt struct {
	Line int `json:"line"` // from 1
	Receipt
}

// receipts is the answer to a stream.
type receipts struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	buf      bytes.Buffer
	n        int // receipts sent
	pending  int
}

func (rs *receipts) add(line int, r Receipt) {
	raw, err := json.Marshal(lineReceipt{line, r})
	if err != nil {
		panic(err) // strings, numbers and booleans
	}
	rs.buf.Write(append(raw, '\n'))
	rs.pending++
}

// flush sends what was added.
func (rs *receipts) flush() error {
	_ = rs.rc.SetWriteDeadline(time.Now().Add(rs.patience))
	defer rs.buf.Reset()
	if _, err := rs.w.Write(rs.buf.Bytes()); err != nil {
		return err
	}
	rs.n, rs.pending = rs.n+rs.pending, 0
	if err := rs.rc.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
