// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assetBase is where the files of the pages are served.
const assetBase = Base + "assets/"

var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets are the files of the pages. The path of each has the digest of what is in it, so that a browser
// keeps it for good and never mixes two releases.
type assets struct {
	byPath map[string]asset
	byName map[string]Path
}

type asset struct {
	body []byte
	kind string
}

func newAssets() assets {
	a := assets{map[string]asset{}, map[string]Path{}}
	list, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic("console: the program has no assets: " + err.Error()) // they are compiled in
	}
	for _, f := range list {
		b, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			panic("console: an asset cannot be read: " + err.Error())
		}
		sum := sha256.Sum256(b)
		ext := path.Ext(f.Name())
		at := assetBase + strings.TrimSuffix(f.Name(), ext) + "." + hex.EncodeToString(sum[:8]) + ext
		a.byPath[at], a.byName[f.Name()] = asset{b, assetTypes[ext]}, Path(at)
	}
	return a
}

// path returns where the file is served.
func (a assets) path(name string) Path { return a.byName[name] }

func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.byPath[r.URL.Path]
	if !ok {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(f.body)
}
