// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/rand"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// An openPage is a page in the state directory, which only this user can read, that sends a browser on to an address with
// a secret. The program that opens the browser gets the path of the page as its argument, and not the address: every
// user of the machine can read the arguments of a program.
type openPage struct {
	dir *state.Dir

	mu   sync.Mutex
	name string // "": there is no page
}

// Names of the pages.
const (
	pageBefore = "open-"
	pageAfter  = ".html"
)

const pageForward = `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=%[1]s">
<title>Pellucid</title><p><a href="%[1]s">Open the console</a></p></html>
`

// write makes the page and returns its path. The page is removed after the life of a link.
func (f *openPage) write(address string) (path string, err error) {
	f.sweep()
	path, err = filepath.Abs(f.dir.Path())
	if err != nil {
		return "", fmt.Errorf("console: find the state directory: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := pageBefore + strings.ToLower(rand.Text()) + pageAfter
	if err := f.dir.Write(name, fmt.Appendf(nil, pageForward, html.EscapeString(address))); err != nil {
		return "", err
	}
	f.name = name
	time.AfterFunc(signin.LinkLife, f.remove)
	return filepath.Join(path, name), nil
}

// remove removes the page, if there is one.
func (f *openPage) remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.name != "" && f.dir.Remove(f.name) == nil {
		f.name = ""
	}
}

// sweep removes the pages of processes that ended without doing so. The links of these pages are over.
func (f *openPage) sweep() {
	found, _ := filepath.Glob(filepath.Join(f.dir.Path(), pageBefore+"*"+pageAfter))
	for _, path := range found {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeType == 0 && time.Since(info.ModTime()) > signin.LinkLife {
			_ = f.dir.Remove(filepath.Base(path)) // the next start tries again
		}
	}
}
