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

// Watch compiles the file at path anew whenever it, or a file that it refers to,
// has changed, until ctx ends. It calls apply with rules that differ from those in
// force, which are current at first (nil: none are), and problem with what is
// wrong with a file that is not applied, once. Neither is called concurrently.
//
// Directories are watched, so that a file may be replaced, be a link that is
// turned, or be gone for a while.
func Watch(ctx context.Context, path string, o Options, current *Rules, apply func(*Rules), problem func(error)) {
	w := &watcher{path: path, opt: o, current: current, apply: apply, problem: problem,
		seen: map[string]string{}, watched: map[string]bool{}}
	if abs, err := filepath.Abs(path); err == nil {
		w.path = abs
	}
	var events chan fsnotify.Event
	var faults chan error
	if n, err := fsnotify.NewWatcher(); err != nil {
		problem(fmt.Errorf("rules: changes are found by looking every %v: %w", lookAgain, err))
	} else {
		defer n.Close()
		w.notify, events, faults = n, n.Events, n.Errors
	}
	w.seen[w.path] = ""
	w.watch()
	w.load()
	w.run(ctx, events, faults)
}

type watcher struct {
	path    string
	opt     Options
	current *Rules
	apply   func(*Rules)
	problem func(error)
	last    string // what problem was called with

	notify  *fsnotify.Watcher // nil: there is none
	watched map[string]bool   // directories
	seen    map[string]string // the files that matter, each as it was when it was read
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
			if w.changed() {
				arm()
			}
		case <-due:
			due = nil
			if !touched && !w.changed() {
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

func (w *watcher) changed() bool {
	for name, was := range w.seen {
		if stateOf(name) != was {
			return true
		}
	}
	return false
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
	seen := map[string]string{w.path: stateOf(w.path)}
	o := w.opt
	o.opened = func(name string) {
		if _, twice := seen[name]; !twice {
			seen[name] = stateOf(name)
		}
	}
	r, err := Load(w.path, o)
	if err != nil { // which may have kept it from files that matter to the rules in force
		for name := range w.seen {
			o.opened(name)
		}
	}
	w.seen = seen
	w.watch()
	switch {
	case err == nil:
		w.last = ""
		if w.current == nil || !Equal(w.current, r) {
			w.current = r
			w.apply(r)
		}
	case err.Error() != w.last:
		w.last = err.Error()
		w.problem(err)
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
