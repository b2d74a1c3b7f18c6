// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

const (
	maxEventReply = 64 << 10    // bytes that are read of an adapter's reply
	postPatience  = time.Minute // for the whole exchange
)

// ErrURL: what is to be posted to is not a URL.
var ErrURL = errors.New("ground: post: not a URL")

// PostCascade hands a cascade event to a running adapter: to its URL of POST /ground/events.
// token is a bearer token, or "". A refusal is a receipt, not an error.
func PostCascade(ctx context.Context, url, token string, event []byte) (r CascadeReceipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, postPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(event))
	if err != nil {
		return r, ErrURL // err quotes the URL as it is
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// A redirect would carry the event, and perhaps the token, somewhere else.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return r, fmt.Errorf("ground: post: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxEventReply))
	if err == nil && json.Unmarshal(body, &r) == nil && (r.Accepted || r.Code != "") {
		return r, nil
	}
	return r, fmt.Errorf("ground: post: no receipt: status %d", res.StatusCode)
}

// WriteText tells a person what became of an event of that kind. What it says of another
// adapter's words is escaped.
func (r *CascadeReceipt) WriteText(w io.Writer, kind CascadeKind) (err error) {
	if r.Accepted {
		_, err = fmt.Fprintf(w, "%s %s\n%d retracted, %d withheld for what they depend on, %d stand again\n",
			kind, terminal.Printable(r.Hash), r.Retracted, r.Pending, r.Live)
	} else {
		_, err = fmt.Fprintf(w, "%s at %s\n", terminal.Printable(r.Code), finding.Quote(r.Pointer))
	}
	return err
}
