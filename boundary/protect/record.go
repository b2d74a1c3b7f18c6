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
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/jsonc"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A record says what the entries of one file were, so that each can be restored. It
// holds what the file held, secrets included, and so does the back-up beside it:
// both are for their owner alone.
type record struct {
	Version int       `json:"version"` // 1
	Path    string    `json:"path"`    // the file itself, links followed
	Time    time.Time `json:"time"`
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
}

func newRecord(path string, original, after []byte, servers []Server) *record {
	r := &record{Version: 1, Path: path, Time: time.Now().UTC().Truncate(time.Second), backup: original}
	for _, s := range servers {
		if s.Action == Wrapped {
			r.Entries = append(r.Entries, saved{s.At, s.Name, s.before, s.after})
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

// holds reports whether the record has that very change.
func (r *record) holds(s Server) bool {
	return slices.ContainsFunc(r.Entries, func(e saved) bool {
		return e.Name == s.Name && slices.Equal(e.At, s.At) && bytes.Equal(e.After, s.after)
	})
}

// restore puts back what every entry was. One that was edited since is left as it
// is, unless force is set; one that is gone, or has been put back by hand, too.
func (r *record) restore(src []byte, force bool) ([]byte, []Server, error) {
	t, err := parse(src, true)
	if err != nil {
		return nil, nil, err
	}
	var edits []splice
	var servers []Server
	for _, e := range r.Entries {
		v := t.doc.Root()
		for _, name := range append(slices.Clip(e.At), e.Name) {
			v = v.Get(name)
		}
		if !v.Exists() {
			continue
		}
		now := t.raw(v)
		s := Server{At: e.At, Name: e.Name, Action: Restored, Disabled: Disabled(v), before: bytes.Clone(now), after: e.Before}
		own, wrapped := unwrap(t, v, e)
		switch {
		case bytes.Equal(now, e.After), sameValue(now, e.After), force && !sameValue(now, e.Before):
			edits = append(edits, splice{v.Offset(), end(v), e.Before})
		case wrapped: // something else of it was edited, and stays
			edits = append(edits, own...)
			s.after = splices(s.before, shift(own, v.Offset()))
		case stillWrapped(t, v, e, &own):
			edits = append(edits, own...)
			s.after = splices(s.before, shift(own, v.Offset()))
		case sameValue(now, e.Before):
			s.Action, s.Why, s.after = Already, "is as it was", s.before
		default:
			s.Action, s.Why, s.after = Edited, "its entry was edited since", s.before
		}
		servers = append(servers, s)
	}
	return splices(src, edits), servers, nil
}

// unwrap gives an entry whose other members were edited its command and arguments
// back. ok is false if those were edited too, or it is a remote server's.
func unwrap(t *text, v strictjson.Value, e saved) (edits []splice, ok bool) {
	before, errB := parse(e.Before, true)
	after, errA := parse(e.After, true)
	if errA != nil || errB != nil {
		return nil, false
	}
	old, our := before.doc.Root(), after.doc.Root()
	command := v.Get("command")
	if old.Get("command").Kind() != '"' || command.Kind() != '"' || command.Text() != our.Get("command").Text() ||
		!sameValue(t.raw(v.Get("args")), after.raw(our.Get("args"))) {
		return nil, false
	}
	edits = append(edits, splice{command.Offset(), end(command), before.raw(old.Get("command"))})
	args := v.Get("args")
	if was := old.Get("args"); was.Exists() {
		return append(edits, splice{args.Offset(), end(args), before.raw(was)}), true
	}
	gone, ok := without(t, v, args)
	return append(edits, gone), ok
}

// without removes a member of v with the comma before it; ok is false if there is none.
func without(t *text, v, member strictjson.Value) (gone splice, ok bool) {
	for name, value := range v.Members() {
		if value == member {
			from := name.Offset() - 1
			for from > v.Offset() && strings.IndexByte(" \t\r\n", t.src[from]) >= 0 {
				from--
			}
			return splice{from, end(member), nil}, t.src[from] == ','
		}
	}
	return splice{}, false
}

// stillWrapped gives an entry whose arguments a person has edited the command that
// stands behind "--" in them, with the arguments as they are now. ok is false if it no
// longer starts a command behind Pellucid.
func stillWrapped(t *text, v strictjson.Value, e saved, edits *[]splice) (ok bool) {
	before, err := parse(e.Before, true)
	command, args := v.Get("command"), v.Get("args")
	if err != nil || before.doc.Root().Get("command").Kind() != '"' || !isOurs(command.Text()) || !isList(args) || firstText(args) != "wrap" {
		return false
	}
	var program []byte
	var rest []string
	behind := false
	for arg := range args.Elements() {
		switch {
		case !behind:
			behind = arg.Text() == "--"
		case program == nil:
			program = t.raw(arg)
		default:
			rest = append(rest, string(t.raw(arg)))
		}
	}
	if program == nil {
		return false
	}
	list := splice{args.Offset(), end(args), []byte("[" + strings.Join(rest, ", ") + "]")}
	if gone, ok := without(t, v, args); ok && len(rest) == 0 && !before.doc.Root().Get("args").Exists() {
		list = gone
	}
	*edits = []splice{{command.Offset(), end(command), program}, list}
	slices.SortFunc(*edits, func(a, b splice) int { return a.start - b.start })
	return true
}

// sameValue reports whether a and b are the same value, however they are spelled:
// clients write their files anew, with white space of their own.
func sameValue(a, b []byte) bool {
	a, errA := strictjson.Canonical(nil, jsonc.Plain(a), limits)
	b, errB := strictjson.Canonical(nil, jsonc.Plain(b), limits)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// names returns where the record of the file at path, and its back-up, are.
func (o Options) names(path string) (rec, backup string) {
	sum := sha256.Sum256([]byte(path))
	base := filepath.Join(o.Records, hex.EncodeToString(sum[:16]))
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
	b, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("protect: %q: %w", path, errNoRecord)
	case err != nil:
		return nil, fmt.Errorf("protect: record: %w", err)
	}
	r := &record{}
	if err := strictjson.Unmarshal(b, r, strictjson.Limits{Bytes: 8 * maxFile}); err != nil {
		return nil, fmt.Errorf("protect: record %q: %w", name, err)
	}
	if r.Version != 1 || r.Path != path {
		return nil, fmt.Errorf("protect: record %q is of another version, or of another file", name)
	}
	return r, nil
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
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("protect: record: %w", err)
	}
	rec, backup := o.names(r.Path)
	oldRecord, errRecord := os.ReadFile(rec)
	oldBackup, errBackup := os.ReadFile(backup)
	if err := state.Replace(backup, r.backup, nil); err != nil {
		return nil, fmt.Errorf("protect: back-up: %w", err)
	}
	if err := state.Replace(rec, b, nil); err != nil {
		return nil, fmt.Errorf("protect: record: %w", err)
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
