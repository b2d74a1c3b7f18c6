// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
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

// An OpenPage is a page in the state directory, which only this user can read, that sends a browser on to an address with
// a secret. The program that opens the browser gets the path of the page as its argument, and not the address: every
// user of the machine can read the arguments of a program.
type OpenPage struct {
	Dir  *state.Dir
	Life time.Duration // then it is removed; 0: signin.LinkLife

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
<title>Pellucid</title><p><a href="%[1]s">Go on</a></p></html>
`

// Write makes the page and returns its path.
func (f *OpenPage) Write(address string) (path string, err error) {
	f.sweep()
	path, err = filepath.Abs(f.Dir.Path())
	if err != nil {
		return "", fmt.Errorf("console: find the state directory: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := pageBefore + strings.ToLower(rand.Text()) + pageAfter
	if err := f.Dir.Write(name, fmt.Appendf(nil, pageForward, html.EscapeString(address))); err != nil {
		return "", err
	}
	f.name = name
	time.AfterFunc(cmp.Or(f.Life, signin.LinkLife), f.Remove)
	return filepath.Join(path, name), nil
}

// Remove removes the page, if there is one.
func (f *OpenPage) Remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.name != "" && f.Dir.Remove(f.name) == nil {
		f.name = ""
	}
}

// maxOpen is longer than any page is needed.
const maxOpen = time.Hour

// sweep removes the pages of processes that ended without doing so.
func (f *OpenPage) sweep() {
	found, _ := filepath.Glob(filepath.Join(f.Dir.Path(), pageBefore+"*"+pageAfter))
	for _, path := range found {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeType == 0 && time.Since(info.ModTime()) > maxOpen {
			_ = f.Dir.Remove(filepath.Base(path)) // the next start tries again
		}
	}
}
