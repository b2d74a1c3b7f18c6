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

// errRecord is wrapped when what was to be appended is not one line of at most
// MaxRecord bytes; nothing was written.
var errRecord = errors.New("state: not a journal record")

// MaxRecord is the longest record in bytes.
const MaxRecord = 1 << 20

// Journal is an append-only file of JSON lines. Several processes may append to the same
// one. Each takes a lock for it, so that a line that is not complete was left by a process
// that died or by a disk that was full, and never by one that is still writing. The file is
// open under that lock only: Windows renames none that another process has open.
type Journal struct {
	path     string
	maxBytes int64       // of one file
	keep     int         // files put aside as NAME.1 (the newest) to NAME.N
	grows    func(error) // is told once why a file of maxBytes cannot be put aside

	mu             sync.Mutex
	closed, isTold bool
}

// Journal opens the journal called name, of five files of 64 MiB at most. Where its file cannot be
// put aside, it grows until that succeeds, and grows is told why.
func (d *Dir) Journal(name string, grows func(error)) (*Journal, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, maxBytes: 64 << 20, keep: 4, grows: grows}
	f, err := j.open()
	if err != nil {
		return nil, fmt.Errorf("state: journal: %w", err)
	}
	return j, f.Close()
}

func (j *Journal) open() (*os.File, error) {
	f, err := openShared(j.path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if _, err := private(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Append writes one record: a JSON text without its line feed. An error means that the
// record is not there.
func (j *Journal) Append(record []byte) error {
	if len(record) == 0 || len(record) > MaxRecord || bytes.ContainsAny(record, "\r\n") {
		return errRecord
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err := fs.ErrClosed
	if !j.closed {
		err = j.append(append(append(make([]byte, 0, len(record)+1), record...), '\n'))
	}
	if err != nil {
		return fmt.Errorf("state: journal: %w", err)
	}
	return nil
}

// append writes a line while no other process writes.
func (j *Journal) append(line []byte) error {
	held, err := lock(j.path+".lock", true)
	if err != nil {
		return err
	}
	defer held.Close()
	f, err := j.open()
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	end, err := lineEnd(f)
	if err != nil {
		return err
	}
	if end > 0 && end+int64(len(line)) > j.maxBytes {
		f.Close()
		j.putAside()
		if f, err = j.open(); err != nil {
			return err
		}
		if end, err = f.Seek(0, io.SeekEnd); err != nil {
			return err
		}
	}
	if _, err = f.WriteAt(line, end); err != nil {
		_ = f.Truncate(end) // where this fails, too, the next call mends it
	}
	return err
}

// lineEnd removes half a line from the end of a journal, whose lock is held, and returns its size.
func lineEnd(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if size == 0 || err != nil {
		return 0, err
	}
	tail := make([]byte, 1)
	if _, err := f.ReadAt(tail, size-1); err != nil || tail[0] == '\n' {
		return size, err
	}
	// What follows the last line feed was never acknowledged.
	tail = make([]byte, min(size, MaxRecord+1))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, err
	}
	end := size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')) + 1
	return end, f.Truncate(end)
}

// putAside renames the file of a journal, whose lock is held, and those that were put aside before.
func (j *Journal) putAside() {
	err := shift(j.path, j.keep)
	if err != nil && !j.isTold && j.grows != nil {
		j.grows(fmt.Errorf("state: journal not put aside: %w", err))
	}
	j.isTold = err != nil
}

// shift begins at the first name that is free, so that to fail again and again drops no file.
func shift(path string, keep int) error {
	free := 1
	for ; free <= keep; free++ {
		if _, err := os.Lstat(aside(path, free)); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if free > keep {
		if err := Vacate(aside(path, keep)); err != nil {
			return err
		}
		free = keep
	}
	for i := free; i > 0; i-- {
		if err := os.Rename(aside(path, i-1), aside(path, i)); err != nil {
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

// files yields the files of the journal at path, the newest first, until two names in a row are
// free: one is while another process puts the file aside, and where it could not.
func files(path string, flag int) iter.Seq2[*os.File, error] {
	return func(yield func(*os.File, error) bool) {
		for i, free := 0, 0; free < 2; i++ {
			f, err := openShared(aside(path, i), flag)
			if errors.Is(err, fs.ErrNotExist) {
				free++
				continue
			}
			free = 0
			if !yield(f, err) {
				return
			}
		}
	}
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
		for f, err := range files(path, os.O_RDONLY) {
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
	if j.closed {
		return nil
	}
	j.closed = true
	f, err := j.open()
	if err != nil {
		return fmt.Errorf("state: journal: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}
