package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// ErrRotate is wrapped by an error of Append when the record was written but
// the journal, grown to its bound, could not be put aside.
var ErrRotate = errors.New("state: journal not rotated")

// ErrRecord is wrapped when what was to be appended is not one line of at most
// MaxRecord octets; nothing was written.
var ErrRecord = errors.New("state: not a journal record")

// MaxRecord is the longest record in octets.
const MaxRecord = 1 << 20

// JournalOptions bounds a journal. The zero value is the default.
type JournalOptions struct {
	MaxBytes int64 // of one file; 0 = 64 MiB
	Keep     int   // files put aside as NAME.1 (the newest) to NAME.N; 0 = 4
	Sync     bool  // make each record durable before Append returns
}

// Journal is an append-only file of JSON lines, one write a record. Several
// processes may append to the same one: records never mix, and whichever finds
// the file full puts it aside under a lock.
type Journal struct {
	path string
	opt  JournalOptions

	mu   sync.Mutex
	f    *os.File
	torn bool // the last write may have left half a line
}

// Journal opens the journal called name.
func (d *Dir) Journal(name string, opt JournalOptions) (*Journal, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	if opt.MaxBytes == 0 {
		opt.MaxBytes = 64 << 20
	}
	if opt.Keep == 0 {
		opt.Keep = 4
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
	torn := false
	fi, err := private(f)
	if err == nil && fi.Size() > 0 {
		// A process that died in its write, or a full disk, may have left half a line.
		var last [1]byte
		_, err = f.ReadAt(last[:], fi.Size()-1)
		torn = last[0] != '\n'
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("state: journal: %w", err)
	}
	if j.f != nil {
		j.f.Close()
	}
	j.f, j.torn = f, torn
	return nil
}

// Append writes one record: a JSON text without its line feed. An error means
// that the record may not be there, but for one that wraps [ErrRotate].
func (j *Journal) Append(record []byte) error {
	if len(record) == 0 || len(record) > MaxRecord || bytes.ContainsAny(record, "\r\n") {
		return ErrRecord
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return fmt.Errorf("state: journal: %w", fs.ErrClosed)
	}
	rotateErr := j.turn(int64(len(record)) + 1)
	line := make([]byte, 0, len(record)+2)
	if j.torn {
		line = append(line, '\n')
	}
	line = append(append(line, record...), '\n')
	n, err := j.f.Write(line)
	if err == nil && j.opt.Sync {
		err = j.f.Sync()
	}
	if err != nil {
		j.torn = j.torn || n > 0 && n < len(line)
		return fmt.Errorf("state: journal: %w", err)
	}
	j.torn = false
	return rotateErr
}

// turn makes j.f the file that the next n octets belong into.
func (j *Journal) turn(n int64) error {
	own, err := j.f.Stat()
	if err != nil {
		return fmt.Errorf("state: journal: %w", err)
	}
	if now, err := os.Stat(j.path); err != nil || !os.SameFile(own, now) {
		// Another process put our file aside.
		if err := j.open(); err != nil {
			return err
		}
		if own, err = j.f.Stat(); err != nil {
			return fmt.Errorf("state: journal: %w", err)
		}
	}
	if own.Size() == 0 || own.Size()+n <= j.opt.MaxBytes {
		return nil
	}
	if err := j.rotate(own); err != nil {
		return fmt.Errorf("%w: %w", ErrRotate, err)
	}
	return nil
}

// rotate puts aside the file that own describes, unless another process has.
func (j *Journal) rotate(own fs.FileInfo) error {
	held, err := lock(j.path + ".lock")
	if err != nil {
		return err
	}
	defer held.Close()
	if now, statErr := os.Stat(j.path); statErr == nil && os.SameFile(own, now) {
		err = j.shift()
	}
	return errors.Join(err, j.open())
}

func (j *Journal) shift() error {
	if closeBeforeRename {
		j.f.Close()
	}
	for i := j.opt.Keep; i > 0; i-- {
		err := os.Rename(j.aside(i-1), j.aside(i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (j *Journal) aside(i int) string {
	if i == 0 {
		return j.path
	}
	return fmt.Sprintf("%s.%d", j.path, i)
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
