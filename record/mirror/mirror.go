// SPDX-License-Identifier: Apache-2.0

// Package mirror copies a log as static files (C2SP tlog-tiles) to a directory or to a bucket, from which other servers serve it.
//
// The checkpoint is written last, so that a reader finds every tile that it covers. What is there is
// not sent again: a copy that was interrupted goes on where it was.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A Target is where the files go. Its paths are those of tlog-tiles.
type Target interface {
	// Get reads a file of at most limit bytes, and names its version; fs.ErrNotExist if there is none.
	Get(ctx context.Context, path string, limit int64) (data []byte, version string, err error)
	// Has reports whether there is a file of that path.
	Has(ctx context.Context, path string) (bool, error)
	// Put writes a file.
	Put(ctx context.Context, path string, data []byte, contentType, cacheControl string) error
	// Replace is Put of a file that must still have the version ("": must not exist); else it returns
	// fs.ErrExist.
	Replace(ctx context.Context, path string, data []byte, contentType, cacheControl, version string) error
	// Delete removes a file, if it is there.
	Delete(ctx context.Context, path string) error
}

// ErrForeign means that the mirror has a checkpoint that is not of this log. Nothing is written then.
var ErrForeign = errors.New("mirror: it holds a checkpoint that no key of this log has signed")

// A Seen is the error of a mirror whose checkpoint the log contradicts.
type Seen struct{ Checkpoint []byte }

func (*Seen) Error() string { return "mirror: it holds a checkpoint that the log contradicts" }

// checkpointPath is where the checkpoint stands.
const checkpointPath = "checkpoint"

// maxCheckpoint bounds the bytes of a checkpoint.
const maxCheckpoint = 64 << 10

// Options are what a Mirror is made of.
type Options struct {
	Source ledger.Source
	Target Target
	Keys   func(ctx context.Context) ([]*ledger.Key, error) // of the log, that may have signed what is there
	// Seen is told of a checkpoint of the mirror that the log contradicts. It may be nil.
	Seen  func(ctx context.Context, checkpoint []byte)
	Every time.Duration // the time between two copies; 0 = 10 s
	Log   *slog.Logger  // nil: nothing is logged
}

// A Mirror copies a log.
type Mirror struct {
	o        Options
	partial  map[string][]string // paths that this process has written of a tile that was not full: they go once it is
	caughtUp bool                // a whole copy was made: what follows is new
	size     atomic.Int64
}

// New makes a Mirror.
func New(o Options) *Mirror {
	o.Every = cmp.Or(max(o.Every, 0), 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Mirror{o: o, partial: map[string][]string{}}
}

// Size is the size of the log in the mirror, as far as this process knows.
func (m *Mirror) Size() int64 { return m.size.Load() }

// Latest reads the checkpoint of the mirror and checks its signature; nil if there is none yet.
func (m *Mirror) Latest(ctx context.Context) (msg []byte, version string, c ledger.Checkpoint, err error) {
	msg, version, err = m.o.Target.Get(ctx, checkpointPath, maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", c, nil
	} else if err != nil {
		return nil, "", c, err
	}
	keys, err := m.o.Keys(ctx)
	if err != nil {
		return nil, "", c, err
	}
	opened, err := ledger.OpenCheckpoint(msg, keys, nil)
	if err != nil {
		return nil, "", c, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return msg, version, opened.Checkpoint, nil
}

// A Copied is what a copy has done.
type Copied struct {
	Size          int64
	Written, Kept int // files
}

// Copy brings the mirror up to the log as it is now.
func (m *Mirror) Copy(ctx context.Context) (done Copied, err error) {
	was, version, there, err := m.Latest(ctx)
	if err != nil {
		return done, err
	}
	now, err := m.o.Source.Checkpoint(ctx)
	if err != nil {
		return done, err
	}
	c, err := ledger.UnverifiedCheckpoint(now)
	if err != nil {
		return done, err
	}
	if was != nil {
		if err := m.grown(ctx, was, there, c); err != nil {
			return done, err
		}
	}
	if done.Size = c.Size; was != nil && string(was) == string(now) {
		m.size.Store(c.Size)
		return done, nil
	}
	var full []string
	err = ledger.ExportFrom(ctx, at{m.o.Source, now}, there.Size, func(path string, whole bool, data func() ([]byte, error)) error {
		contentType, cacheControl := ledger.FileHeaders(path)
		if path == checkpointPath {
			done.Written++
			return m.o.Target.Replace(ctx, path, now, contentType, cacheControl, version)
		}
		if whole && !m.caughtUp {
			if has, err := m.o.Target.Has(ctx, path); err != nil || has {
				done.Kept++
				return err
			}
		}
		b, err := data()
		if err == nil {
			err = m.o.Target.Put(ctx, path, b, contentType, cacheControl)
		}
		if tile, _, isPartial := strings.Cut(path, ".p/"); isPartial {
			m.partial[tile] = append(m.partial[tile], path)
		} else {
			full = append(full, path)
		}
		done.Written++
		return err
	})
	if err != nil {
		return done, err
	}
	m.caughtUp = true
	m.size.Store(c.Size)
	return done, m.tidy(ctx, full)
}

// grown reports what keeps the mirror from being brought up to the checkpoint now.
func (m *Mirror) grown(ctx context.Context, was []byte, there, now ledger.Checkpoint) error {
	if there.Origin != now.Origin {
		return ErrForeign
	}
	if there.Size > now.Size {
		return &Seen{was}
	}
	path, err := ledger.ProveConsistency(ctx, m.o.Source, there.Size, now)
	if err != nil {
		return err
	}
	if there.Size == now.Size && there.Root != now.Root || there.Size < now.Size && ledger.VerifyConsistency(there, now, path) != nil {
		return &Seen{was}
	}
	return nil
}

// tidy removes the narrower versions of tiles that are full now.
func (m *Mirror) tidy(ctx context.Context, full []string) error {
	for _, tile := range full {
		for _, path := range m.partial[tile] {
			if err := m.o.Target.Delete(ctx, path); err != nil {
				return err
			}
		}
		delete(m.partial, tile)
	}
	return nil
}

// at is a source as it was at a checkpoint.
type at struct {
	ledger.Source
	checkpoint []byte
}

func (a at) Checkpoint(context.Context) ([]byte, error) { return a.checkpoint, nil }

// Run copies until ctx ends. What fails is tried again, later and later.
func (m *Mirror) Run(ctx context.Context) {
	pause := backoff.Waits{First: m.o.Every, Most: 16 * m.o.Every}
	said := ""
	for {
		_, err := m.Copy(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := m.o.Every
		switch seen, contradicts := errors.AsType[*Seen](err); {
		case err == nil, errors.Is(err, ledger.ErrNotFound), errors.Is(err, fs.ErrExist): // another replica was faster
			if said != "" {
				m.o.Log.Info("the log is mirrored again")
			}
			said, pause = "", backoff.Waits{First: m.o.Every, Most: 16 * m.o.Every}
		default:
			if contradicts && m.o.Seen != nil {
				m.o.Seen(ctx, seen.Checkpoint)
			}
			if said != err.Error() {
				m.o.Log.Warn("the log could not be mirrored: it is tried again", "error", err)
			}
			said, wait = err.Error(), pause.Next()
		}
		if backoff.Sleep(ctx, wait) != nil {
			return
		}
	}
}
