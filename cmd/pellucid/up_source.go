package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/internal/rules"
)

// source is where rules come from.
type source struct {
	path string // absolute; "": the demonstration
	text []byte // of the demonstration
}

func fileSource(path string) (*source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, withCode(exitConfig, fmt.Errorf("up: %w", err))
	}
	return &source{path: abs}, nil
}

// demoSource puts the demonstration's server behind the boundary twice: once with
// descriptions that it is let through with, and once with one that hides an order to
// the model, for which it is rejected.
func demoSource(self string) *source {
	quoted, err := json.Marshal(self) // a JSON string is a YAML string
	if err != nil {
		panic("up: quote a path: " + err.Error()) // strings always marshal
	}
	return &source{text: fmt.Appendf(nil, "version: 1\nservers:\n  demo:\n    command: [%[1]s, demo, serve, --results]\n"+
		"  poisoned:\n    command: [%[1]s, demo, serve]\n", quoted)}
}

// load compiles the rules. The errors are those of the file, or of reading it.
func (s *source) load(e *env) (*rules.Rules, error) {
	if s.path == "" {
		return rules.Parse(s.text, rules.Options{})
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("up: read %s: %w", finding.Quote(s.path), err)
	}
	if len(text) > rules.MaxFile {
		return nil, fmt.Errorf("up: %s is longer than %d octets", finding.Quote(s.path), rules.MaxFile)
	}
	r, err := rules.Parse(text, rules.Options{Dir: filepath.Dir(s.path), Getenv: func(name string) (string, bool) {
		v := e.Getenv(name)
		return v, v != ""
	}})
	if err != nil {
		return nil, fmt.Errorf("up: %s:\n%w", finding.Quote(s.path), err)
	}
	return r, nil
}

// Pauses of watching: editors write a file in several steps, and some file systems
// tell nobody.
const (
	settleWait = 200 * time.Millisecond
	pollWait   = 10 * time.Second
)

// changes sends whenever the file's content has changed, or somebody asks by
// SIGHUP, until ctx ends.
func (s *source) changes(ctx context.Context, warn func(string, ...any)) <-chan struct{} {
	out := make(chan struct{})
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	var events chan fsnotify.Event
	var failures chan error // of the watcher, which stops at one that nobody takes
	watcher, err := fsnotify.NewWatcher()
	if err == nil && s.path != "" {
		// The directory, for a file is replaced as often as it is written.
		err = watcher.Add(filepath.Dir(s.path))
		events, failures = watcher.Events, watcher.Errors
	}
	if err != nil {
		warn("the configuration's directory cannot be watched: it is looked at now and then", "every", pollWait.String())
	}
	go func() {
		defer close(out)
		defer signal.Stop(hup)
		if watcher != nil {
			defer watcher.Close()
		}
		tick := time.NewTicker(pollWait)
		defer tick.Stop()
		last := s.digest()
		for {
			asked := false
			select {
			case <-ctx.Done():
				return
			case <-hup:
				asked = true
			case <-events:
				if !rest(ctx, events) {
					return
				}
			case <-failures: // events may have been lost: what the file holds now counts
			case <-tick.C:
			}
			now := s.digest()
			if now == last && !asked {
				continue
			}
			last = now
			select {
			case out <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// rest waits until no more events come; false if ctx ended.
func rest(ctx context.Context, events <-chan fsnotify.Event) bool {
	t := time.NewTimer(settleWait)
	defer t.Stop()
	for {
		select {
		case <-events:
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func (s *source) digest() (sum [sha256.Size]byte) {
	if s.path == "" {
		return sum
	}
	if text, err := os.ReadFile(s.path); err == nil {
		sum = sha256.Sum256(text)
	}
	return sum
}
