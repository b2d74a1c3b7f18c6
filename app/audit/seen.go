// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// seenFaults are those of an older checkpoint, in the words for the one that was
// remembered.
var seenFaults = map[ledger.Fault]ledger.Fault{
	ledger.FaultFork:  "that was remembered is not the beginning of this log: records were changed since it was last verified",
	ledger.FaultNewer: "that was remembered is of a longer log: records were removed since it was last verified, or the database was restored from a backup (--restored)",
}

// A seenLog remembers in the state directory the checkpoint of a log that was last verified.
type seenLog struct {
	dir  *state.Dir
	name string
	was  []byte // nil: nothing is remembered
}

// A keepingLog keeps the checkpoint that it gives to a verification.
type keepingLog struct {
	*storage.Ledger
	checkpoint []byte
}

// Checkpoint returns the checkpoint of the log, and keeps it.
func (l *keepingLog) Checkpoint(ctx context.Context) (b []byte, err error) {
	l.checkpoint, err = l.Ledger.Checkpoint(ctx)
	return l.checkpoint, err
}

// maxCheckpoint bounds what is read of one, in bytes.
const maxCheckpoint = 64 << 10

// seenOf returns what is remembered of the log of that name.
func seenOf(dir *state.Dir, origin string) (*seenLog, error) {
	sum := sha256.Sum256([]byte(origin))
	s := &seenLog{dir: dir, name: "checkpoint-" + hex.EncodeToString(sum[:8])}
	var err error
	if s.was, err = dir.Read(s.name, maxCheckpoint); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	return s, err
}

// keep remembers a checkpoint that was verified, unless a longer log was meanwhile.
func (s *seenLog) keep(checkpoint []byte, size int64) error {
	held, err := s.dir.Lock(s.name + ".lock")
	if err != nil {
		return err
	}
	defer held.Close()
	now, err := s.dir.Read(s.name, maxCheckpoint)
	if err == nil && !bytes.Equal(now, s.was) && ledger.CheckpointSize(now) > size {
		return nil // another process has verified more
	}
	return s.dir.Write(s.name, checkpoint)
}

// others reports whether another log is remembered.
func (s *seenLog) others(dir *state.Dir) bool {
	names, err := dir.Names()
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "checkpoint-") && !strings.HasPrefix(name, s.name)
	})
}
