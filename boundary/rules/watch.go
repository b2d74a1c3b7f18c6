// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Times of a watcher.
const (
	settle    = 100 * time.Millisecond // for which a file must not change, so that it is read whole
	unsettle  = 2 * time.Second        // after which a file is read although it changes on
	lookAgain = 2 * time.Second        // for what no event tells: other file systems, directories that come back
)

// A Watcher compiles a file anew whenever it, or a file that it refers to, has changed.
//
// Directories are watched, so that a file may be replaced, be a link that is
// turned, or be gone for a while.
type Watcher struct {
	Path    string
	Options Options
	Current *Rules // in force when Run begins; nil: none are
	// Asked reads the file at once, and what comes of it is told whether it is new or
	// not; nil: nobody asks.
	Asked <-chan os.Signal
	// Apply takes rules that differ from those in force.
	Apply func(*Rules)
	// Problem is told, once, what is wrong with a file that is not applied, or wraps
	// ErrUnwatched. It is not called at the same time as Apply.
	Problem func(error)
}

// ErrUnwatched means that the system does not tell of changes: they are found later.
var ErrUnwatched = fmt.Errorf("rules: changes are found by looking every %v", lookAgain)

// Run watches until ctx ends.
func (o Watcher) Run(ctx context.Context) {
	w := &watcher{Watcher: o, seen: map[string]string{}, watched: map[string]bool{}}
	if abs, err := filepath.Abs(w.Path); err == nil {
		w.Path = abs
	}
	var events chan fsnotify.Event
	var faults chan error
	if n, err := fsnotify.NewWatcher(); err != nil {
		w.Problem(fmt.Errorf("%w: %w", ErrUnwatched, err))
	} else {
		defer n.Close()
		w.notify, events, faults = n, n.Events, n.Errors
	}
	w.seen[w.Path] = ""
	w.watch()
	w.load()
	w.run(ctx, events, faults)
}

type watcher struct {
	Watcher
	last string // what Problem was called with

	notify  *fsnotify.Watcher // nil: absent
	watched map[string]bool   // directories
	seen    Files
}

func (w *watcher) run(ctx context.Context, events chan fsnotify.Event, faults chan error) {
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	var due <-chan time.Time // set: something has changed
	var since time.Time
	touched, before := false, ""
	arm := func() {
		if due == nil {
			since, before = time.Now(), ""
			due = time.After(settle)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.Asked:
			due, touched = nil, false
			w.Current, w.last = nil, ""
			w.load()
		case e, open := <-events:
			if !open {
				events = nil
			} else if e.Op != fsnotify.Chmod {
				touched = touched || w.concerns(e.Name)
				arm()
			}
		case _, open := <-faults: // events were lost
			if !open {
				faults = nil
			}
			touched = touched || open
			arm()
		case <-look.C:
			w.watch()
			if w.seen.Changed() {
				arm()
			}
		case <-due:
			due = nil
			if !touched && !w.seen.Changed() {
				continue
			}
			if now := w.state(); now != before && time.Since(since) < unsettle {
				before, due = now, time.After(settle)
				continue
			}
			touched = false
			w.load()
		}
	}
}

// concerns reports whether a change of name may be one of a file that matters; of
// others it is told by a look.
func (w *watcher) concerns(name string) bool {
	_, ok := w.seen[name]
	return ok || filepath.Base(name) == "..data" // by which Kubernetes turns links
}

// state is how the files that matter are now.
func (w *watcher) state() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.seen)) {
		b.WriteString(stateOf(name) + "\n")
	}
	return b.String()
}

// Files are files that matter, each as it was when it was read.
type Files map[string]string

// Add adds a file as it is now, unless it is there already.
func (f Files) Add(name string) {
	if _, twice := f[name]; !twice {
		f[name] = stateOf(name)
	}
}

// Changed reports whether one of the files is not as it was.
func (f Files) Changed() bool {
	for name, was := range f {
		if stateOf(name) != was {
			return true
		}
	}
	return false
}

// Into returns the options that add every file that is read to f.
func (o Options) Into(f Files) Options {
	o.opened = f.Add
	return o
}

// stateOf is how a file is now: where it leads, when it was written, how long it is,
// who may read it.
func stateOf(name string) string {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "none"
	}
	fi, err := os.Stat(real)
	if err != nil {
		return "none"
	}
	return fmt.Sprint(real, " ", fi.ModTime().UnixNano(), " ", fi.Size(), " ", fi.Mode())
}

// load compiles the file, and applies it if that changes anything.
func (w *watcher) load() {
	seen := Files{w.Path: stateOf(w.Path)}
	r, err := Load(w.Path, w.Options.Into(seen))
	if err != nil { // which may have kept it from files that matter to the rules in force
		for name := range w.seen {
			seen.Add(name)
		}
	}
	w.seen = seen
	w.watch()
	switch {
	case err == nil:
		w.last = ""
		if w.Current == nil || !Equal(w.Current, r) {
			w.Current = r
			w.Apply(r)
		}
	case err.Error() != w.last:
		w.last = err.Error()
		w.Problem(err)
	}
}

// watch watches the directories of all files that matter, and no other. One that
// is not there now is tried again.
func (w *watcher) watch() {
	if w.notify == nil {
		return
	}
	want := map[string]bool{}
	for name := range w.seen {
		want[filepath.Dir(name)] = true
		if real, err := filepath.EvalSymlinks(name); err == nil {
			want[filepath.Dir(real)] = true
		}
	}
	for dir := range w.watched {
		if !want[dir] {
			w.notify.Remove(dir)
			delete(w.watched, dir)
		}
	}
	for dir := range want {
		w.watched[dir] = w.notify.Add(dir) == nil
	}
}
