// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/sigv4"
)

// TestHeaders: a request is signed with the digest of its body, carries the headers of the object and
// its condition, and each status of the service is an error without its words.
func TestHeaders(t *testing.T) {
	status := 200
	var got *http.Request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(status)
		w.Write([]byte("<Error>hostile</Error>"))
	}))
	defer srv.Close()
	is := func(s string) sigv4.Secret { return func() (string, error) { return s, nil } }
	b, err := New(srv.URL+"/logs/a/", &sigv4.Signer{Region: "r", Service: "other", Access: is("AKID"), Secret: is("s")})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Replace(t.Context(), "tile/0/x001/234.p/7", []byte("abc"), "text/plain", "max-age=1", `"v1"`); err != nil {
		t.Fatal(err)
	}
	h := got.Header
	if got.Method != "PUT" || got.URL.Path != "/logs/a/tile/0/x001/234.p/7" || h.Get("Content-Type") != "text/plain" || h.Get("Cache-Control") != "max-age=1" || h.Get("If-Match") != `"v1"` ||
		h.Get("X-Amz-Content-Sha256") != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" || !strings.Contains(h.Get("Authorization"), "/r/s3/aws4_request") ||
		!strings.Contains(h.Get("Authorization"), "x-amz-content-sha256") {
		t.Errorf("%s %s %v", got.Method, got.URL, h)
	}
	for code, want := range map[int]error{404: fs.ErrNotExist, 412: ErrChanged, 409: ErrChanged, 403: ErrDenied, 500: nil, 301: nil} {
		status = code
		_, _, err := b.Get(t.Context(), "checkpoint", 10)
		if err == nil || want != nil && !errors.Is(err, want) || strings.Contains(err.Error(), "hostile") {
			t.Errorf("%d: %v", code, err)
		}
	}
	status = 501
	if err := b.Replace(t.Context(), "checkpoint", nil, "", "", ""); err == nil || got.Header.Get("If-None-Match") != "" {
		t.Errorf("a service without conditions is asked once more without one: %v, %v", err, got.Header)
	}
	status = 200
	if _, _, err := b.Get(t.Context(), "checkpoint", 10); err == nil {
		t.Error("an object that is too long is read")
	}
	if _, err := New("http://example.com/logs", &sigv4.Signer{}); err == nil {
		t.Error("plain HTTP to another machine")
	}
}
