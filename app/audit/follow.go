// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Follow writes the records of a log as JSON lines, and goes on as the log grows. If File is set, it appends to this
// file; otherwise it writes to Stdout.
//
// Each record is written at least once. A file goes on behind its last whole line. The state directory
// says where an empty file and standard output go on; it is written after each batch.
type Follow struct {
	File   string
	Stdout io.Writer
	Log    *slog.Logger

	poll time.Duration
	log  *storage.Ledger
	dir  *state.Dir

	next    position
	stored  position // in the state directory
	checked bool     // whether File was seen to be of this log
}

// position is where an output goes on.
type position struct {
	Origin string `json:"origin"` // of the log
	Next   int64  `json:"next"`   // index of the next record
}

const (
	followBatch = 256         // records that are written at once
	followPoll  = time.Second // between two looks at a log that has not grown
)

// Run writes records until ctx ends. It waits while another process writes to the same output. If the store or the
// file cannot be used any more, it tries again; if they cannot be used at the beginning, it returns the error.
func (f *Follow) Run(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
	f.log, f.dir = l, dir
	if f.poll <= 0 {
		f.poll = followPoll
	}
	held, err := f.lockOutput(ctx)
	if err != nil || held == nil {
		return err
	}
	defer held.Close()
	if err := f.readPosition(); err != nil {
		return err
	}
	pause := backoff.Waits{First: f.poll, Most: time.Minute}
	for begun, failed := false, false; ; begun = true {
		more, err := f.writeBatch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if _, final := errors.AsType[*exit.Error](err); final || err != nil && !begun {
			return err
		}
		switch {
		case err != nil && !failed:
			f.Log.Warn("records cannot be exported: it is tried again", "error", err)
		case err == nil && failed:
			f.Log.Info("records are exported again")
			pause.Reset()
		}
		wait := f.poll
		if failed = err != nil; failed {
			wait = pause.Next()
		}
		if !more && backoff.Sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// writeBatch writes at most one batch. more says that the log has more records.
func (f *Follow) writeBatch(ctx context.Context) (more bool, err error) {
	if err := f.keepPosition(); err != nil {
		return false, err
	}
	head, err := f.log.Head(ctx)
	switch {
	case errors.Is(err, sequence.ErrNoLog):
		return false, nil
	case err != nil:
		return false, err
	case f.next.Origin != "" && f.next.Origin != head.Origin:
		return false, f.finalError("what was exported before is of the log %s, and this one is %s: name another file, or remove %s to begin with the first record",
			finding.Quote(f.next.Origin), finding.Quote(head.Origin), finding.Quote(f.dir.File(f.positionName())))
	case f.next.Next > head.Size:
		return false, f.finalError("the log has %d records, and %d were exported: the database has lost records; pellucid ledger restore brings them back", head.Size, f.next.Next)
	case f.next.Next == head.Size && (f.checked || f.File == ""):
		return false, nil
	}
	next := position{head.Origin, f.next.Next}
	if f.File == "" {
		next.Next, err = f.toStdout(ctx, next.Next, head.Size)
	} else {
		next.Next, err = f.toFile(ctx, next.Next, head.Size)
	}
	if err != nil {
		return false, err
	}
	f.next = next
	return next.Next < head.Size, f.keepPosition()
}

// finalError is an error after which a follower ends.
func (f *Follow) finalError(format string, args ...any) error {
	return exit.With(exit.Failed, fmt.Errorf("ledger: export: "+format, args...))
}

// readBatch returns a batch of records as JSON lines, and the index of the record behind it.
func (f *Follow) readBatch(ctx context.Context, first, size int64) (out []byte, next int64, err error) {
	if first >= size {
		return nil, first, nil
	}
	var b bytes.Buffer
	list, err := f.log.Entries(ctx, first, int(min(followBatch, size-first)))
	if errors.Is(err, ledger.ErrNotFound) {
		list, err = [][]byte{nil}, nil
	}
	for i, raw := range list {
		at := first + int64(i)
		if writeRows(&b, []sequence.Entry{{Index: at, Envelope: raw}}, false) != nil {
			f.Log.Error("a record is damaged or missing, and is left out: pellucid ledger verify says more", "index", at)
		}
	}
	return b.Bytes(), first + int64(len(list)), err
}

// toStdout writes a batch to standard output. A reader that does not read does not keep the process from ending.
func (f *Follow) toStdout(ctx context.Context, first, size int64) (next int64, err error) {
	lines, next, err := f.readBatch(ctx, first, size)
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { _, err := f.Stdout.Write(lines); done <- err }()
	select {
	case err = <-done:
		if err != nil { // a part of a line may have been written
			return 0, exit.With(exit.Failed, err)
		}
		return next, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// positionName is the name of the file that keeps the position.
func (f *Follow) positionName() string {
	if f.File == "" {
		return "export.json"
	}
	hash := sha256.Sum256([]byte(f.File))
	return "export-" + hex.EncodeToString(hash[:8]) + ".json"
}

// withoutLinks resolves the links of a path whose file need not exist: a file has one lock, whichever link names it.
func withoutLinks(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if file, err := filepath.EvalSymlinks(path); err == nil {
		path = file
	}
	return path
}

// lockOutput keeps other processes from writing to the same output. It returns nil if ctx ends first.
func (f *Follow) lockOutput(ctx context.Context) (io.Closer, error) {
	if f.File != "" {
		path, err := filepath.Abs(f.File)
		if err != nil {
			return nil, err
		}
		f.File = withoutLinks(path)
	}
	type locked struct {
		held io.Closer
		err  error
	}
	got := make(chan locked, 1)
	go func() {
		held, err := f.dir.Lock(f.positionName() + ".lock")
		got <- locked{held, err}
	}()
	for wait := time.After(time.Second); ; {
		select {
		case l := <-got:
			return l.held, l.err
		case <-wait:
			f.Log.Info("another process exports to the same output: this one waits until it ends")
		case <-ctx.Done():
			go func() {
				if l := <-got; l.err == nil {
					l.held.Close()
				}
			}()
			return nil, nil
		}
	}
}

// readPosition reads the position.
func (f *Follow) readPosition() error {
	b, err := f.dir.Read(f.positionName(), 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &f.next)
	}
	if err != nil || f.next.Next < 0 {
		return f.finalError("%s cannot be read: remove it to begin with the first record", finding.Quote(f.dir.File(f.positionName())))
	}
	f.stored = f.next
	return nil
}

// keepPosition keeps the position, unless it is stored already.
func (f *Follow) keepPosition() error {
	if f.stored == f.next {
		return nil
	}
	b, err := json.Marshal(f.next)
	if err == nil {
		err = f.dir.Write(f.positionName(), b)
	}
	if err == nil {
		f.stored = f.next
	}
	return err
}
