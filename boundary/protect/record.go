// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A record says what the entries of one file were, so that each can be restored. It
// holds what the file held, secrets included, and so does the back-up beside it:
// both are for their owner alone.
type record struct {
	Version int       `json:"version"` // 1
	Path    string    `json:"path"`    // the file itself, links followed
	Time    time.Time `json:"time"`
	Syntax  Syntax    `json:"syntax,omitempty"`
	Flags   Flags     `json:"flags,omitzero"` // of wrap, in each entry
	Entries []saved   `json:"entries"`

	backup []byte // of the whole file, kept in a file of its own
}

// A saved entry: what stood there, and what was put in its place. Bytes, not
// strings, since a file may hold what a JSON string cannot.
type saved struct {
	At     []string `json:"at"`
	Name   string   `json:"name"`
	Before []byte   `json:"before"`
	After  []byte   `json:"after"`
	// Was and Is are their values, of a file in TOML or YAML.
	Was json.RawMessage `json:"was,omitempty"`
	Is  json.RawMessage `json:"is,omitempty"`
}

func newRecord(path string, syntax Syntax, original []byte, servers []Server) *record {
	r := &record{Version: 1, Path: path, Time: time.Now().UTC().Truncate(time.Second), Syntax: syntax, backup: original}
	for _, s := range servers {
		if s.Action == Wrapped {
			r.Entries = append(r.Entries, saved{s.At, s.Name, s.before, s.after, s.was, s.is})
		}
	}
	return r
}

// keep takes over what old knows of entries that were edited since.
func (r *record) keep(old *record, restored []Server) {
	for _, s := range restored {
		if s.Action != Edited {
			continue
		}
		for _, e := range old.Entries {
			if e.Name == s.Name && slices.Equal(e.At, s.At) {
				r.Entries = append(r.Entries, e)
			}
		}
	}
}

// has reports whether the record has an entry of that name.
func (r *record) has(at []string, name string) bool {
	return slices.ContainsFunc(r.Entries, func(e saved) bool { return e.Name == name && slices.Equal(e.At, at) })
}

// holds reports whether the record has that very change.
func (r *record) holds(s Server) bool {
	return slices.ContainsFunc(r.Entries, func(e saved) bool {
		return e.Name == s.Name && slices.Equal(e.At, s.At) && bytes.Equal(e.After, s.after)
	})
}

// former reports whether the record has the server with flags that wrap no longer has.
func (r *record) former(s Server) bool {
	for _, e := range r.Entries {
		if e.Name == s.Name && slices.Equal(e.At, s.At) {
			d := dialectOf(r.Syntax, e.At)
			u := &undoing{saved: e, t: &text{syntax: r.Syntax}, dialect: d}
			_, said := WithoutFormer(d.wrapFlags(u.written(), u.program()))
			return len(said) > 0
		}
	}
	return false
}

// recordBase returns the name of the records of the file at path, without an extension.
func (o Options) recordBase(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(o.Records, hex.EncodeToString(sum[:16]))
}

// names returns where the record of the file at path, and its back-up, are.
func (o Options) names(path string) (rec, backup string) {
	base := o.recordBase(path)
	return base + ".json", base + ".backup"
}

// backup returns where the back-up of the file at path is, or would be.
func (o Options) backup(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	_, backup := o.names(path)
	return backup
}

func (o Options) readRecord(path string) (*record, error) {
	name, _ := o.names(path)
	r := &record{}
	switch err := loadRecord(name, r); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("protect: %q: %w", path, errNoRecord)
	case err != nil:
		return nil, err
	}
	if r.Version != 1 || r.Path != path {
		return nil, fmt.Errorf("protect: record %q is of another version, or of another file", name)
	}
	return r, nil
}

// loadRecord reads a record of either kind. The error wraps fs.ErrNotExist if there is no such file.
func loadRecord(name string, to any) error {
	b, err := os.ReadFile(name)
	if err == nil {
		err = strictjson.Unmarshal(b, to, strictjson.Limits{Bytes: 8 * maxFile})
	}
	if err != nil {
		return fmt.Errorf("protect: record %q: %w", name, err)
	}
	return nil
}

// saveRecord writes a record of either kind.
func saveRecord(name string, r any) error {
	b, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = state.Replace(name, b, nil)
	}
	if err != nil {
		return fmt.Errorf("protect: record: %w", err)
	}
	return nil
}

func (o Options) readBackup(path string) ([]byte, error) {
	_, name := o.names(path)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("protect: back-up: %w", err)
	}
	return b, nil
}

// writeRecord writes a record and its back-up. back puts those before in their place
// again, for a change that did not come about.
func (o Options) writeRecord(r *record) (back func(), err error) {
	if err := os.MkdirAll(o.Records, 0o700); err != nil {
		return nil, fmt.Errorf("protect: records: %w", err)
	}
	rec, backup := o.names(r.Path)
	oldRecord, errRecord := os.ReadFile(rec)
	oldBackup, errBackup := os.ReadFile(backup)
	if err := state.Replace(backup, r.backup, nil); err != nil {
		return nil, fmt.Errorf("protect: back-up: %w", err)
	}
	if err := saveRecord(rec, r); err != nil {
		return nil, err
	}
	return func() {
		if errRecord != nil || errBackup != nil {
			_ = o.removeRecord(r.Path)
			return
		}
		_ = state.Replace(backup, oldBackup, nil)
		_ = state.Replace(rec, oldRecord, nil)
	}, nil
}

func (o Options) removeRecord(path string) error {
	rec, backup := o.names(path)
	for _, name := range []string{rec, backup} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("protect: record: %w", err)
		}
	}
	return nil
}
