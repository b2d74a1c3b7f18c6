// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A Seen remembers the largest checkpoint of a log that this process has seen, in memory and in the
// state directory. A database that was restored from an older copy, or a standby that took over
// without the last transactions, has a log that is smaller or other than it. It is safe for
// concurrent use.
type Seen struct {
	Dir *state.Dir // nil: in memory alone

	mu      sync.Mutex
	read    string // the origin whose file was read
	largest []byte
	parsed  ledger.Checkpoint
	written time.Time
	dirty   bool
}

// writeEvery bounds how often a checkpoint is written to the state directory.
const writeEvery = time.Second

// maxSeen bounds the bytes of a stored checkpoint.
const maxSeen = 64 << 10

// SeenFile names the file of the state directory that has the largest checkpoint of a log.
func SeenFile(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return "log-seen-" + hex.EncodeToString(sum[:8])
}

// Largest returns the largest checkpoint of that log; nil if none was seen.
func (s *Seen) Largest(origin string) ([]byte, ledger.Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(origin); err != nil {
		return nil, ledger.Checkpoint{}, err
	}
	return s.largest, s.parsed, nil
}

func (s *Seen) load(origin string) error {
	if s.read == origin {
		return nil
	}
	s.largest, s.parsed, s.dirty = nil, ledger.Checkpoint{Origin: origin}, false
	if s.Dir != nil {
		msg, err := s.Dir.Read(SeenFile(origin), maxSeen)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			c, err := ledger.UnverifiedCheckpoint(msg)
			if err != nil || c.Origin != origin {
				return fmt.Errorf("sequence: the file %s of the state directory does not hold a checkpoint of the log", SeenFile(origin))
			}
			s.largest, s.parsed = msg, c
		}
	}
	s.read = origin
	return nil
}

// note remembers a checkpoint of the log, if it is larger than the one that is remembered. The file
// is written at most once a second, unless now is zero.
func (s *Seen) note(msg []byte, now time.Time) error {
	c, err := ledger.UnverifiedCheckpoint(msg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(c.Origin); err != nil {
		return err
	}
	if c.Size > s.parsed.Size || s.largest == nil {
		s.largest, s.parsed, s.dirty = msg, c, true
	}
	if s.dirty && (now.IsZero() || now.Sub(s.written).Abs() >= writeEvery) {
		return s.save(now)
	}
	return nil
}

// flush writes what is not yet in the state directory.
func (s *Seen) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dirty {
		return nil
	}
	return s.save(time.Time{})
}

// save writes the file, unless another process of the same state directory has seen more.
func (s *Seen) save(now time.Time) error {
	s.written, s.dirty = now, false
	if s.Dir == nil {
		return nil
	}
	name := SeenFile(s.read)
	held, err := s.Dir.Lock(name + ".lock")
	if err != nil {
		return err
	}
	defer held.Close()
	if there, err := s.Dir.Read(name, maxSeen); err == nil && ledger.CheckpointSize(there) > s.parsed.Size {
		return nil
	}
	return s.Dir.Write(name, s.largest)
}

// Forget removes what is remembered of a log that another one has replaced.
func (s *Seen) Forget(origin string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = ""
	if s.Dir == nil {
		return nil
	}
	return s.Dir.Remove(SeenFile(origin))
}

// Contradicts reports whether the stored log is not the continuation of a checkpoint that was seen:
// it is smaller, or its beginning is another one. An error says that this could not be found out.
func Contradicts(ctx context.Context, src ledger.Source, head Head, seen ledger.Checkpoint) (bool, error) {
	if head.Size < seen.Size {
		return true, nil
	}
	if seen.Size == 0 {
		return false, nil
	}
	now, err := ledger.UnverifiedCheckpoint(head.Checkpoint)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrStored, err)
	}
	if now.Size == seen.Size {
		return now.Root != seen.Root, nil
	}
	path, err := ledger.ProveConsistency(ctx, src, seen.Size, now)
	if err != nil {
		return false, err
	}
	return ledger.VerifyConsistency(seen, now, path) != nil, nil
}
