// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/egress"
)

// File appends to a file, which it opens for every batch: what rotates logs may move it away. Only its
// owner may read it.
type File string

// Send implements Sink. When it returns without an error, the lines are on the disk. A line that a failed write or a
// power cut has left unfinished ends before the next one begins.
func (f File) Send(_ context.Context, body []byte) error {
	out, err := os.OpenFile(string(f), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return errors.New("outbound: the file of the export cannot be opened")
	}
	if err = errors.Join(appendLines(out, body), out.Close()); err != nil {
		return errors.New("outbound: the file of the export cannot be written")
	}
	return nil
}

// appendLines adds whole lines to a file, or nothing.
func appendLines(out *os.File, body []byte) error {
	info, err := out.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		_, err := out.Write(body)
		return err
	}
	size := info.Size()
	if last := []byte{0}; size > 0 {
		if _, err := out.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			body = append([]byte{'\n'}, body...)
		}
	}
	if _, err := out.Write(body); err != nil {
		return errors.Join(err, out.Truncate(size))
	}
	return out.Sync()
}

// A Stream writes to standard output.
type Stream struct {
	mu sync.Mutex
	W  io.Writer
}

// Send implements Sink.
func (s *Stream) Send(_ context.Context, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.W.Write(body); err != nil {
		return errors.New("outbound: standard output cannot be written")
	}
	return nil
}

// An HTTP posts batches to a URL: no proxy, no redirect.
type HTTP struct {
	url, kind, authorization string
	client                   *http.Client
}

// NewHTTP makes a sink of a URL: https, or http on this machine. authorization is the value of the header;
// "": none. Of OTLP, a URL without a path gets that of logs.
func NewHTTP(url string, f Format, authorization string) (*HTTP, error) {
	base, plain, err := egress.Base(url, false)
	if err != nil {
		return nil, fmt.Errorf("outbound: %w", err)
	}
	h := &HTTP{url: base, kind: "application/x-ndjson", authorization: authorization,
		client: &http.Client{Transport: egress.Transport(egress.Options{LoopbackOnly: plain}), Timeout: 15 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if f == FormatOTLP {
		h.kind = "application/x-protobuf"
		if req, err := http.NewRequest(http.MethodPost, base, nil); err == nil && (req.URL.Path == "" || req.URL.Path == "/") {
			h.url = base + "/v1/logs"
		}
	}
	return h, nil
}

// Send implements Sink.
func (h *HTTP) Send(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("outbound: the request cannot be made")
	}
	req.Header.Set("Content-Type", h.kind)
	if h.authorization != "" {
		req.Header.Set("Authorization", h.authorization)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return errors.New("outbound: the receiver cannot be reached") // the error of the library has the URL
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	switch c := resp.StatusCode; {
	case c >= 200 && c < 300:
		return nil
	case c == http.StatusBadRequest, c == http.StatusRequestEntityTooLarge, c == http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: status %d", ErrRefused, c)
	default:
		return fmt.Errorf("outbound: the receiver answered with status %d", c)
	}
}
