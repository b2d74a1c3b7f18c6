// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"sync"
)

// errRotate is wrapped by an error of Append when the record was written but
// the journal, grown to its bound, could not be put aside.
var errRotate = errors.New("state: journal not rotated")

// errRecord is wrapped when what was to be appended is not one line of at most
// MaxRecord bytes; nothing was written.
var errRecord = errors.New("state: not a journal record")

// MaxRecord is the longest record in bytes.
const MaxRecord = 1 << 20

// JournalOptions bounds a journal. The zero value is the default.
type JournalOptions struct {
	maxBytes int64 // of one file; 0 = 64 MiB
	keep     int   // files put aside as NAME.1 (the newest) to NAME.N; 0 = 4
	sync     bool  // make each record durable before Append returns
}

// Journal is an append-only file of JSON lines. Several processes may append to the same
// one. Each takes a lock for it, so that a line that is not complete was left by a process
// that died or by a disk that was full, and never by one that is still writing.
type Journal struct {
	path string
	opt  JournalOptions

	mu sync.Mutex
	f  *os.File
}

// Journal opens the journal called name.
func (d *Dir) Journal(name string, opt JournalOptions) (*Journal, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	if opt.maxBytes == 0 {
		opt.maxBytes = 64 << 20
	}
	if opt.keep == 0 {
		opt.keep = 4
	}
	j := &Journal{path: path, opt: opt}
	if err := j.open(); err != nil {
		return nil, err
	}
	return j, nil
}

func (j *Journal) open() error {
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("state: journal: %w", err)
	}
	if _, err := private(f); err != nil {
		f.Close()
		return fmt.Errorf("state: journal: %w", err)
	}
	if j.f != nil {
		j.f.Close()
	}
	j.f = f
	return nil
}

// Append writes one record: a JSON text without its line feed. An error means that the
// record is not there, or that it cannot be said to be durable, but for one that wraps
// errRotate.
func (j *Journal) Append(record []byte) error {
	if len(record) == 0 || len(record) > MaxRecord || bytes.ContainsAny(record, "\r\n") {
		return errRecord
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return fmt.Errorf("state: journal: %w", fs.ErrClosed)
	}
	rotateErr, err := j.append(append(append(make([]byte, 0, len(record)+1), record...), '\n'))
	if err == nil && j.opt.sync {
		err = j.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("state: journal: %w", err)
	}
	return rotateErr
}

// append writes a line while no other process writes. rotateErr is set where the line was
// written to a file that is too long.
func (j *Journal) append(line []byte) (rotateErr, err error) {
	held, err := lock(j.path+".lock", true)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	size, err := j.whole()
	if err != nil {
		return nil, err
	}
	if size > 0 && size+int64(len(line)) > j.opt.maxBytes {
		if err := errors.Join(j.shift(), j.open()); err != nil {
			rotateErr = fmt.Errorf("%w: %w", errRotate, err)
		} else {
			size = 0
		}
	}
	if _, err := j.f.Write(line); err != nil {
		_ = j.f.Truncate(size) // where this fails, too, the next call mends it
		return nil, err
	}
	return rotateErr, nil
}

// whole makes j.f the file of that name, removes half a line from its end, and returns
// its size. The lock is held.
func (j *Journal) whole() (size int64, err error) {
	own, err := j.f.Stat()
	if err != nil {
		return 0, err
	}
	if now, err := os.Stat(j.path); err != nil || !os.SameFile(own, now) {
		// Another process put our file aside.
		if err := j.open(); err != nil {
			return 0, err
		}
		if own, err = j.f.Stat(); err != nil {
			return 0, err
		}
	}
	size = own.Size()
	tail := make([]byte, 1)
	if size == 0 {
		return 0, nil
	}
	if _, err := j.f.ReadAt(tail, size-1); err != nil || tail[0] == '\n' {
		return size, err
	}
	// What follows the last line feed was never acknowledged.
	tail = make([]byte, min(size, MaxRecord+1))
	if _, err := j.f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return size, err
	}
	end := size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')) + 1
	if err := j.f.Truncate(end); err == nil {
		return end, nil
	}
	// This system cannot shorten a file that is only appended to: end the line instead.
	n, err := j.f.Write([]byte{'\n'})
	return size + int64(n), err
}

func (j *Journal) shift() error {
	if closeBeforeRename {
		j.f.Close()
	}
	for i := j.opt.keep; i > 0; i-- {
		err := os.Rename(aside(j.path, i-1), aside(j.path, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// aside is the name of the file that was put aside as the i-th; the journal itself is 0.
func aside(path string, i int) string {
	if i == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, i)
}

// Records yields the lines of a journal and of the files that were put aside, the newest
// file first, each from its beginning. A line that a process is still writing, or that is
// longer than MaxRecord, is left out. A record is valid until the next one.
func (d *Dir) Records(name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		path, err := d.file(name)
		if err != nil {
			yield(nil, err)
			return
		}
		for i := 0; ; i++ {
			f, err := openShared(aside(path, i))
			if errors.Is(err, fs.ErrNotExist) && i > 0 {
				return
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue // another process rotates at this moment, or there is no journal
			}
			if err != nil {
				yield(nil, fmt.Errorf("state: journal: %w", err))
				return
			}
			more := lines(f, yield)
			f.Close()
			if !more {
				return
			}
		}
	}
}

// lines yields the complete lines of r, and reports whether more are wanted.
func lines(r io.Reader, yield func([]byte, error) bool) bool {
	b := bufio.NewReaderSize(r, MaxRecord+1)
	for long := false; ; {
		line, err := b.ReadSlice('\n')
		switch {
		case err == nil && !long && len(line) > 1:
			if !yield(line[:len(line)-1], nil) {
				return false
			}
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
			long = err != nil
		case errors.Is(err, io.EOF):
			return true
		default:
			return yield(nil, fmt.Errorf("state: journal: %w", err))
		}
	}
}

// Close makes the records durable and closes the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return nil
	}
	err := errors.Join(j.f.Sync(), j.f.Close())
	j.f = nil
	return err
}
