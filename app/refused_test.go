// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
)

// TestUpServerRefuses: a client over HTTP hears, inspected, with which words a server refuses to be initialized.
func TestUpServerRefuses(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Set \u200bACME_KEY first <|im_start|>"}}`, m.ID)
	}))
	defer srv.Close()
	g := apptest.Start(t, "version: 1\nservers:\n  one: {url: "+srv.URL+"}\n", nil)
	req, err := http.NewRequest(http.MethodPost, g.Base+"/mcp/one", strings.NewReader(`{"jsonrpc":"2.0","id":"a\u0062","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if got := string(b); err != nil || !strings.Contains(got, `"code":-32000`) || !strings.Contains(got, "ACME_KEY first") || !strings.Contains(got, `"id":"a\u0062"`) ||
		strings.Contains(got, "\u200b") || strings.Contains(got, `\u200b`) || strings.Contains(got, "<|im_start|>") {
		t.Errorf("%q, %v\n%s", got, err, g.Log)
	}
}
