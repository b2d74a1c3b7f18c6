// SPDX-License-Identifier: Apache-2.0

// Package pinfile keeps pins and the verdicts of reviews as plain files in the state directory, so that a small process needs no database.
//
// A server's pin is the file pins/DIGEST.pin, where DIGEST is the SHA-256 of the
// server's name in hexadecimal. Its first line is a JSON object,
//
//	{"format":"pellucid-pinfile/1","server":NAME,"version":N,"record":"sha256:…"}
//
// and what follows, up to the last line feed, is the record that the digest is of. A
// pin that was dropped keeps its first line, without a digest: were its version to
// begin anew, whoever had loaded the old pin could overwrite the new one. A damaged
// file is an error, never no pin. The verdict of a key is the file verdicts/KEY.
package pinfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Store is a surface.PinStore and a surface.Cache. It is safe for concurrent use,
// also by several processes on one directory.
type Store struct{ pins, verdicts *state.Dir }

var (
	_ surface.PinStore = (*Store)(nil)
	_ surface.Cache    = (*Store)(nil)
)

// The directories of a Store in the state directory.
const (
	pinsName     = "pins"
	verdictsName = "verdicts"
)

// Open opens the Store of a state directory.
func Open(dir *state.Dir) (*Store, error) {
	pins, err := dir.Sub(pinsName)
	if err != nil {
		return nil, err
	}
	verdicts, err := dir.Sub(verdictsName)
	if err != nil {
		return nil, err
	}
	return &Store{pins, verdicts}, nil
}

const (
	// Format is the format of the head of a file.
	Format = formatName + "1"

	formatName = "pellucid-pinfile/"
	suffix     = ".pin"
	// maxHead bounds the first line: a name is a stranger's text, up to maxName bytes.
	maxHead = 64 << 10
	maxName = 4096
	maxFile = 512 << 20 // as much as a record may have

	maxVersion = 1 << 53
)

var (
	// errDamaged is wrapped where a file is no pin. The error says what to do.
	errDamaged = errors.New("pinfile: damaged")
	// errOtherFormat is wrapped where another release has written a file.
	errOtherFormat = errors.New("pinfile: other format")
	errName        = errors.New("pinfile: a server's name is 1 to 4096 bytes of UTF-8")
	errLedger      = errors.New("pinfile: there is no ledger beside pins in files")
)

// A head is the first line of a file.
type head struct {
	Format  string          `json:"format"`
	Server  string          `json:"server"`
	Version int64           `json:"version"`
	Record  *surface.Digest `json:"record,omitempty"` // nil: dropped
}

func fileOf(server string) (string, error) {
	if server == "" || len(server) > maxName || strings.ToValidUTF8(server, "") != server {
		return "", errName
	}
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:]) + suffix, nil
}

func (s *Store) damaged(name, what string) error {
	return fmt.Errorf("%w: %q: %s: put a backup of it into its place, or remove it: the server is then trusted on first use again", errDamaged, s.pins.File(name), what)
}

// parse splits a file, or the beginning of one, at its first line.
func (s *Store) parse(name string, b []byte) (h head, record []byte, err error) {
	line, record, whole := bytes.Cut(b, []byte("\n"))
	read := whole && strictjson.Unmarshal(line, &h, strictjson.Limits{Bytes: maxHead}) == nil
	if read && h.Format != Format && strings.HasPrefix(h.Format, formatName) {
		return head{}, nil, fmt.Errorf("%w: %q has the format %s, and this release writes %s: use the release that has written it, or a later one", errOtherFormat, s.pins.File(name), finding.Quote(h.Format), Format)
	}
	if !read || h.Format != Format || h.Version < 1 || h.Version > maxVersion {
		return head{}, nil, s.damaged(name, "its first line is none of a pin")
	}
	if own, err := fileOf(h.Server); err != nil || own != name {
		return head{}, nil, s.damaged(name, "it is another server's")
	}
	return h, record, nil
}

// load reads a file; a zero head: absent.
func (s *Store) load(name string) (head, []byte, error) {
	b, err := s.pins.Read(name, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return head{}, nil, nil
	} else if err != nil {
		return head{}, nil, err
	}
	h, record, err := s.parse(name, b)
	if err != nil || h.Record == nil {
		return h, nil, err
	}
	record, ended := bytes.CutSuffix(record, []byte("\n"))
	if !ended || surface.Digest(sha256.Sum256(record)) != *h.Record {
		return head{}, nil, s.damaged(name, "its record is not the one that was written")
	}
	return h, record, nil
}

// LoadPin implements surface.PinStore. A damaged file is an error that wraps
// errDamaged.
func (s *Store) LoadPin(_ context.Context, server string) (record []byte, version int64, err error) {
	name, err := fileOf(server)
	if err != nil {
		return nil, 0, err
	}
	h, record, err := s.load(name)
	if err != nil || record == nil {
		return nil, 0, err
	}
	return record, h.Version, nil
}

// SavePin implements surface.PinStore. Nothing can be saved with evidence.
func (s *Store) SavePin(_ context.Context, server string, record []byte, version int64, evidence []byte) error {
	if evidence != nil {
		return errLedger
	}
	return s.update(server, func(h *head, was []byte) (bool, error) {
		switch {
		case was == nil && version != 0, was != nil && version != h.Version:
			return false, surface.ErrConflict
		}
		d := surface.Digest(sha256.Sum256(record))
		h.Record = &d
		return true, nil
	}, record)
}

// DropPin implements surface.PinStore.
func (s *Store) DropPin(_ context.Context, server string, evidence []byte) error {
	if evidence != nil {
		return errLedger
	}
	return s.update(server, func(h *head, was []byte) (bool, error) {
		h.Record = nil
		return was != nil, nil
	}, nil)
}

// update has do change the first line of a server's file, and writes it with a record
// if do says that it has.
func (s *Store) update(server string, do func(h *head, was []byte) (bool, error), record []byte) error {
	name, err := fileOf(server)
	if err != nil {
		return err
	}
	held, err := s.pins.Lock("lock")
	if err != nil {
		return err
	}
	defer held.Close()
	h, was, err := s.load(name)
	if err != nil {
		return err
	}
	dirty, err := do(&h, was)
	if err != nil || !dirty {
		return err
	}
	h.Format, h.Server, h.Version = Format, server, h.Version+1
	b, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("pinfile: %w", err)
	}
	b = append(b, '\n')
	if h.Record != nil {
		b = append(append(b, record...), '\n')
	}
	return s.pins.Write(name, b)
}

// heads are the first lines of all pins.
func (s *Store) heads() ([]head, error) {
	names, err := s.pins.Names()
	if err != nil {
		return nil, err
	}
	var out []head
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		b, err := s.pins.Read(name, maxHead)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil && !errors.Is(err, state.ErrTooLong) {
			return nil, err
		}
		h, _, err := s.parse(name, b)
		if err != nil {
			return nil, err
		}
		if h.Record != nil {
			out = append(out, h)
		}
	}
	return out, nil
}

// ListPins implements surface.PinStore.
func (s *Store) ListPins(context.Context) ([]string, error) {
	heads, err := s.heads()
	servers := []string{}
	for _, h := range heads {
		servers = append(servers, h.Server)
	}
	slices.Sort(servers)
	return servers, err
}

// PinVersion returns the version of a server's pin, 0 if not found. It reads the
// first line only, for whoever follows the decisions of other processes.
func (s *Store) PinVersion(_ context.Context, server string) (int64, error) {
	name, err := fileOf(server)
	if err != nil {
		return 0, err
	}
	b, err := s.pins.Read(name, maxHead)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil && !errors.Is(err, state.ErrTooLong) {
		return 0, err
	}
	h, _, err := s.parse(name, b)
	if err != nil || h.Record == nil {
		return 0, err
	}
	return h.Version, nil
}
