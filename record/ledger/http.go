// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// How long what is served may be kept: a tile never changes, the checkpoint does.
const (
	keepTile       = "public, max-age=31536000, immutable"
	keepCheckpoint = "public, max-age=1"
)

// Handler serves a log as C2SP tlog-tiles: GET and HEAD of checkpoint, tile/… and
// tile/entries/…, by paths from its own root (wrap it in http.StripPrefix). Bundles
// of entries are compressed for who accepts gzip. It serves no opening, and no tile
// that the latest checkpoint does not cover.
func Handler(src Source) http.Handler { return handler{src} }

type handler struct{ src Source }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed)
		return
	}
	msg, err := h.src.Checkpoint(r.Context())
	if err != nil {
		refuseFor(w, err)
		return
	}
	c, err := readCheckpoint(msg)
	if err != nil {
		refuseFor(w, err)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if path == checkpointPath {
		answer(w, r, path, msg)
		return
	}
	level, n, wide, ok := parseTilePath(path)
	if !ok || width(c.Size, max(level, 0), n) < wide {
		refuse(w, http.StatusNotFound)
		return
	}
	data, err := exported(r.Context(), h.src, place{level, n, wide})
	if err != nil {
		refuseFor(w, err)
		return
	}
	if level == entries {
		w.Header().Set("Vary", "Accept-Encoding")
	}
	if level == entries && acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		data = compressed(data)
	}
	answer(w, r, path, data)
}

func answer(w http.ResponseWriter, r *http.Request, path string, data []byte) {
	kind, keep := "application/octet-stream", keepTile
	if path == checkpointPath {
		kind, keep = "text/plain; charset=utf-8", keepCheckpoint
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", keep)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method != http.MethodHead {
		w.Write(data)
	}
}

func refuseFor(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrNotFound) {
		refuse(w, http.StatusNotFound)
		return
	}
	refuse(w, http.StatusServiceUnavailable)
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, http.StatusText(status), status)
}

// acceptsGzip reads Accept-Encoding as far as it must: gzip named, and not with a
// weight of zero.
func acceptsGzip(r *http.Request) bool {
	for _, field := range r.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(field, ",") {
			name, weight, _ := strings.Cut(part, ";")
			q, has := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			value, err := strconv.ParseFloat(q, 64)
			if strings.EqualFold(strings.TrimSpace(name), "gzip") && (!has || err == nil && value > 0) {
				return true
			}
		}
	}
	return false
}

func compressed(data []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(data)
	z.Close()
	return out.Bytes()
}
