// SPDX-License-Identifier: Apache-2.0

// Package protect rewrites an MCP client's own configuration so that its servers run behind Pellucid.
//
// An edit is a splice: of the file nothing changes but the bytes that say how a
// server is started. Comments, formatting, order, unknown members and the values
// of variables stay where they are. What an entry was before is kept in a record
// of its own, one for each file, by which Undo restores it byte for byte, also
// where the client has rewritten the file since.
//
//	{"command": "npx", "args": ["-y", "srv"], "env": {"TOKEN": "…"}}
//
// becomes
//
//	{"command": "/opt/pellucid", "args": ["wrap", "--name", "files", "--env", "TOKEN", "--", "npx", "-y", "srv"], "env": {"TOKEN": "…"}}
//
// and of a server with a URL the headers become variables of the entry, whose
// values stay where they stand, so that no secret comes to stand on a command line.
package protect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors that a caller tells apart.
var (
	// ErrFormat: the file is not what a client reads.
	ErrFormat = errors.New("not a configuration that can be edited safely")
	// errChanged: the file is not what it was a moment ago; nothing was written.
	errChanged = errors.New("another program has changed the file meanwhile; nothing was written")
	// errNoRecord: there is nothing to undo.
	errNoRecord = errors.New("there is no record of a change by Pellucid")
	// errEdited: an entry was edited since it was rewritten; to restore it would
	// lose that work.
	errEdited = errors.New("edited since it was put behind Pellucid")
)

// Options say how files are changed.
type Options struct {
	Binary  string   // absolute path of the program that clients are to start
	Client  string   // that of pellucid-hook, which hosts run in its place; by default they run Binary
	Records string   // directory of the records; made if need be, for its owner alone
	Skip    []string // names of servers that are left alone
	Flags   Flags    // of wrap, for each server
	// Ask says whether the remote server at a URL asks for a login. It is called for servers
	// whose entry has no credential. nil: that is not known of any.
	Ask func(url string) Login
	// Login is the command by which an operator logs in to a server, with NAME for its name. It
	// is shown for a server that asks for it; "": nothing is.
	Login string
	// DangerouslyForce makes Undo restore what was edited since, and the whole
	// back-up where the file cannot be read any more.
	DangerouslyForce bool

	asked Flags // Flags without those of an earlier run
}

// A Login says whether a remote server asks for an OAuth login.
type Login int

// The answers.
const (
	Unknown      Login = iota
	Open               // it answers without one
	AsksForLogin       // it asks for one, which the operator has not made
	LoggedIn           // the operator has logged in to it through Pellucid
)

func (o *Options) loggedIn(url string) bool { return o.Ask != nil && o.Ask(url) == LoggedIn }

// Flags are flags of wrap that are written into each entry. One that is "" is that of an
// earlier run on the file, or that of wrap itself.
type Flags struct {
	Profile  string `json:"profile,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	Hold     string `json:"hold,omitempty"`   // names of findings with commas between them; Without takes it away
	Policy   string `json:"policy,omitempty"` // a preset, or an absolute path; Without takes it away
}

// Without takes away a flag of an earlier run.
const Without = "none"

// or takes what f does not say from old.
func (f Flags) or(old Flags) Flags {
	return Flags{cmp.Or(f.Profile, old.Profile), cmp.Or(f.Evidence, old.Evidence), cmp.Or(f.Hold, old.Hold), cmp.Or(f.Policy, old.Policy)}
}

func (f Flags) pairs() [][2]string {
	return [][2]string{{"--profile", f.Profile}, {"--evidence", f.Evidence}, {holdFlag, f.Hold}, {"--policy", f.Policy}}
}

// holdFlag begins the words that say what is held.
const holdFlag = "--set hold="

// words is the flags as wrap reads them.
func (f Flags) words() (words []string) {
	for _, w := range f.pairs() {
		switch {
		case w[1] == "" || w[1] == Without:
		case w[0] == holdFlag:
			words = append(words, "--set", "hold="+w[1])
		default:
			words = append(words, w[0], w[1])
		}
	}
	return words
}

// in reports whether arguments of wrap say what the flags say.
func (f Flags) in(words []string) bool {
	for _, w := range f.pairs() {
		has := ""
		for i, word := range words {
			if value, ok := strings.CutPrefix(word, w[0]+"="); ok {
				has = value
			} else if value, ok := strings.CutPrefix("--set "+word, w[0]); ok && w[0] == holdFlag && i > 0 && words[i-1] == "--set" {
				has = value
			} else if word == w[0] && i+1 < len(words) {
				has = words[i+1]
			}
		}
		if w[1] == Without && has != "" && has != Without || w[1] != "" && w[1] != Without && has != w[1] {
			return false
		}
	}
	return true
}

// An Effect says what becomes of one server.
type Effect string

// The actions.
const (
	Wrapped  Effect = "wrapped"  // put behind Pellucid
	Already  Effect = "already"  // was behind it, and stays
	Updated  Effect = "updated"  // was behind it, with flags that wrap no longer has
	Skipped  Effect = "skipped"  // left alone; Why says for what reason
	Restored Effect = "restored" // as it was before
	Edited   Effect = "edited"   // edited since, so it cannot be restored without a loss
)

// A Server is one entry of a file. At and Name are the file's own words.
type Server struct {
	At     []string `json:"at"` // the objects that hold it, from the root
	Name   string   `json:"name"`
	Action Effect   `json:"action"`
	Why    string   `json:"why,omitempty"` // constant; of one that is wrapped, advice
	// Warning is set for an entry behind Pellucid that may weaken the boundary. It is constant, but for quoted names.
	Warning string `json:"warning,omitempty"`
	// Disabled says that the client does not start it at present.
	Disabled bool `json:"disabled,omitempty"`

	before, after []byte          // of the entry
	was, is       json.RawMessage // its values, of a file in TOML or YAML
}

// A Change is what is to happen to one file.
type Change struct {
	path    string // as it was given
	Servers []Server

	file   *file
	after  []byte
	syntax Syntax
	record *record // to be kept; nil: removed
	opt    Options
}

// changes reports whether the file is to have other bytes.
func (c *Change) changes() bool { return string(c.file.src) != string(c.after) }

// Count returns the number of servers of that action.
func (c *Change) Count(a Effect) int {
	n := 0
	for _, s := range c.Servers {
		if s.Action == a {
			n++
		}
	}
	return n
}

// Protect plans to put every server of the file at path behind Pellucid. The file
// is read and nothing is written.
func (o Options) Protect(path string, f Format) (*Change, error) {
	file, err := readFile(path)
	if err != nil {
		return nil, err
	}
	old, err := o.readRecord(file.real)
	if err != nil && !errors.Is(err, errNoRecord) {
		return nil, err
	}
	f, o.asked = f.of(path, file.src), o.Flags
	// What an earlier run did is taken back first, so that there is one original,
	// and a program that has moved is named by its new path.
	original := file.src
	var restored []Server
	wrapped := func([]string, string) bool { return false }
	if old != nil {
		same, edited, err := old.reflagged(file.src)
		if err == nil {
			original, restored, err = same.restore(file.src, false)
		}
		if err != nil {
			return nil, wrapFormat(path, err)
		}
		restored = append(restored, edited...)
		wrapped, o.Flags = old.has, o.Flags.or(old.Flags)
	}
	after, servers, err := o.rewrite(original, f, wrapped)
	if err != nil {
		return nil, wrapFormat(path, err)
	}
	c := &Change{path: path, Servers: servers, file: file, after: after, syntax: f.Syntax, opt: o}
	c.record = newRecord(file.real, f.Syntax, original, servers)
	c.record.Flags = o.Flags
	if old != nil {
		c.record.keep(old, restored)
		for i, s := range c.Servers {
			switch {
			case s.Action != Wrapped:
			case old.holds(s):
				c.Servers[i].Action = Already
			case old.former(s):
				c.Servers[i].Action, c.Servers[i].Why = Updated, whyFormer
			}
		}
	}
	return c, nil
}

// undo plans to take Protect back: every entry becomes what it was. What was edited since
// stays as it is edited, and an entry that no longer runs behind Pellucid, or that cannot
// be told from what it was, is left alone, unless DangerouslyForce is set: the error wraps
// errEdited then, and the Change, which may be applied, says which. One that is gone stays
// gone.
func (o Options) undo(path string) (*Change, error) {
	file, err := readFile(path)
	if err != nil {
		return nil, err
	}
	rec, err := o.readRecord(file.real)
	if err != nil {
		return nil, err
	}
	after, servers, err := rec.restore(file.src, o.DangerouslyForce)
	if err != nil && o.DangerouslyForce {
		if after, err = o.readBackup(file.real); err == nil {
			servers = nil
		}
	}
	if err != nil {
		return nil, wrapFormat(path, err)
	}
	c := &Change{path: path, Servers: servers, file: file, after: after, syntax: rec.Syntax, opt: o}
	if slices.ContainsFunc(servers, func(s Server) bool { return s.Action == Edited }) {
		c.record = &record{Version: rec.Version, Path: rec.Path, Time: rec.Time, Syntax: rec.Syntax, Flags: rec.Flags}
		if c.record.backup, err = o.readBackup(file.real); err != nil {
			return nil, err
		}
		c.record.keep(rec, servers)
		return c, fmt.Errorf("protect: %d of %d entries: %w", c.Count(Edited), len(servers), errEdited)
	}
	return c, nil
}

func wrapFormat(path string, err error) error {
	return fmt.Errorf("protect: %q: %w: %w", path, ErrFormat, err)
}

// Apply writes the file, all of it or nothing, and keeps or removes the record. It
// fails with errChanged where the file is not any more what was planned for.
func (c *Change) Apply() error {
	back := func() {}
	if c.record != nil && c.changes() && len(c.record.Entries) > 0 {
		// First, so that no file is ever changed that cannot be restored.
		var err error
		if back, err = c.opt.writeRecord(c.record); err != nil {
			return err
		}
	}
	if c.changes() {
		if err := c.file.replace(c.after); err != nil {
			back()
			return fmt.Errorf("protect: %q: %w", c.path, err)
		}
	}
	if c.record == nil {
		return c.opt.removeRecord(c.file.real)
	}
	return nil
}
