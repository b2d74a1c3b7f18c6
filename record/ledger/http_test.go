// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
)

func get(t *testing.T, h http.Handler, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestHandler(t *testing.T) {
	l := testLog(t, 300)
	h := http.StripPrefix("/log", Handler(l))
	dir := l.export(t, false)
	const tile = "public, max-age=31536000, immutable"
	for path, f := range dir {
		kind, keep := "application/octet-stream", tile
		if path == "checkpoint" {
			kind, keep = "text/plain; charset=utf-8", "public, max-age=1"
		}
		for _, method := range []string{"GET", "HEAD"} {
			r := get(t, h, method, "/log/"+path)
			body, _ := io.ReadAll(r.Body)
			want := f.Data
			if method == "HEAD" {
				want = nil
			}
			if r.StatusCode != 200 || !bytes.Equal(body, want) || r.Header.Get("Content-Type") != kind || r.Header.Get("Cache-Control") != keep ||
				r.ContentLength != int64(len(f.Data)) || r.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s %s: %d, %v", method, path, r.StatusCode, r.Header)
			}
		}
	}
	// A partial tile stays what it was when the log has grown.
	r := get(t, h, "GET", "/log/tile/0/000.p/17")
	if body, _ := io.ReadAll(r.Body); !bytes.Equal(body, dir["tile/0/000"].Data[:17*32]) {
		t.Errorf("partial tile: %d bytes", len(body))
	}
	r = get(t, h, "GET", "/log/tile/entries/001.p/2", "Accept-Encoding", "br, GZIP;q=0.5")
	z, err := gzip.NewReader(r.Body)
	if err != nil || r.Header.Get("Content-Encoding") != "gzip" || r.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%v, %v", err, r.Header)
	}
	body, _ := io.ReadAll(z)
	if list, err := splitBundle(body, 2); err != nil || !bytes.Equal(list[1], l.entries[257]) {
		t.Errorf("bundle: %v", err)
	}
	if r := get(t, h, "GET", "/log/tile/entries/000", "Accept-Encoding", "gzip;q=0"); r.Header.Get("Content-Encoding") != "" {
		t.Error("compressed for who refuses it")
	}
}

func TestHandlerRefuses(t *testing.T) {
	l := testLog(t, 300)
	h := Handler(l)
	for path, status := range map[string]int{"/": 404, "/tile/0/001.p/45": 404, "/tile/0/001": 404, "/tile/0/002.p/1": 404, "/tile/1/000.p/2": 404,
		"/tile/2/000.p/1": 404, "/tile/entries/002.p/1": 404, "/openings/000": 404, "/tile/openings/000": 404, "/tile/0/../0/000": 404,
		"/tile/63/x999/x999/x999/x999/999": 404, "/checkpoint/": 404, "/tile/1/000.p/1": 200} {
		if r := get(t, h, "GET", path); r.StatusCode != status || status != 200 && r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, %v", path, r.StatusCode, r.Header)
		}
	}
	if r := get(t, h, "POST", "/checkpoint"); r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", r.StatusCode)
	}
	if r := get(t, Handler(broken{l}), "GET", "/tile/0/000"); r.StatusCode != 503 {
		t.Errorf("a store that fails: %d", r.StatusCode)
	}
	if r := get(t, Handler(Dir(noFiles{})), "GET", "/checkpoint"); r.StatusCode != 404 {
		t.Errorf("no log: %d", r.StatusCode)
	}
}

type broken struct{ *memLog }

func (broken) Tile(context.Context, int, int64, int) ([]byte, error) {
	return nil, errors.New("disk on fire")
}

type noFiles struct{}

func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
