// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// killedReason is the reason of the record that says that a process was killed before it had written its last records.
const killedReason = "killed"

// IsKilled reports whether a record of a log says that a process was killed with records that it had not written.
func IsKilled(s *ledger.Statement) bool {
	return s.Kind == ledger.RecordsLost && s.Reason == killedReason
}

const unwrittenPrefix = "unwritten-"

// An unwrittenFile is a file of the state directory that this process holds. Its first byte says whether records wait in
// memory, and the rest names their log. The system keeps it when the process is killed, so no write waits for the disk.
type unwrittenFile struct {
	dir  *state.Dir
	log  *storage.Ledger
	name string
	file *os.File // opened for the first record that waits
}

func newUnwritten(dir *state.Dir, log *storage.Ledger) *unwrittenFile {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return &unwrittenFile{dir: dir, log: log, name: unwrittenPrefix + hex.EncodeToString(b[:])}
}

// setWaiting writes whether records wait.
func (u *unwrittenFile) setWaiting(some bool) {
	if u.file == nil {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		head, _ := u.log.Head(ctx) // one that has not begun has no name
		f, err := u.dir.TryLock(u.name)
		if err != nil {
			return // as for a process of an earlier release
		}
		_, _ = f.WriteString("-" + head.Origin)
		u.file = f
	}
	text := "-"
	if some {
		text = "+"
	}
	_, _ = u.file.WriteAt([]byte(text), 0)
}

// closeFile is called after the last setWaiting. lost says that records could not be written.
func (u *unwrittenFile) closeFile(lost bool) {
	if u.file == nil {
		return
	}
	if lost {
		u.setWaiting(true)
	}
	u.file.Close()
	if !lost {
		_ = u.dir.Remove(u.name)
	}
}

// Killed returns the times at which processes of this state directory ended with records that they had not written into
// the log, by the names of their files.
func Killed(dir *state.Dir, origin string) (map[string]time.Time, error) {
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	found := map[string]time.Time{}
	for _, name := range names {
		if !strings.HasPrefix(name, unwrittenPrefix) {
			continue
		}
		f, err := dir.TryLock(name)
		if err != nil {
			continue
		}
		text := make([]byte, 512)
		n, _ := f.ReadAt(text, 0)
		info, err := f.Stat()
		f.Close()
		some, is := strings.CutPrefix(string(text[:n]), "+")
		switch {
		case err != nil:
		case !is:
			_ = dir.Remove(name) // it had written all
		case cmp.Or(some, origin) == origin:
			found[name] = info.ModTime()
		}
	}
	return found, nil
}

// recordKilled records the processes that were killed with records that they had not written.
func (r *Records) recordKilled(ctx context.Context, dir *state.Dir) {
	head, err := r.Log.Head(ctx)
	if err != nil {
		return
	}
	recording, err := dir.TryLock("unwritten.lock")
	if err != nil {
		return // another process records them
	}
	defer recording.Close()
	killed, err := Killed(dir, head.Origin)
	if err != nil {
		r.say.Warn("the state directory cannot be read: whether processes were killed is not known", "error", err)
	}
	for name, at := range killed {
		if r.Require(&ledger.Event{Kind: ledger.RecordsLost, Reason: killedReason, Time: at}) == nil {
			_ = dir.Remove(name)
		}
	}
}
