// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

const origin = "log.example/evidence"

// A memLog is a log in memory: the least store there can be.
type memLog struct {
	tree       Tree
	entries    [][]byte
	openings   [][]byte
	tiles      map[place][]byte
	checkpoint []byte
	signer     *Signer
	old        *Signer // signs the next checkpoint as well
	ids        uint64
}

func testSigner(t testing.TB, name string) *Signer {
	t.Helper()
	seed := sha256.Sum256([]byte("test key " + name))
	s, err := NewSigner(origin, ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newLog(t testing.TB) *memLog {
	l := &memLog{tiles: map[place][]byte{}, signer: testSigner(t, "first")}
	l.add(t, keyEvent(l.signer))
	l.integrate(t)
	return l
}

func keyEvent(s *Signer) Event {
	vkey := s.Key().String()
	return Event{Kind: KeyInstalled, Key: vkey, Subjects: []Subject{{KeyRole, sha256.Sum256([]byte(vkey))}}}
}

// add seals and signs an event; its id and salt follow from where it stands.
func (l *memLog) add(t testing.TB, e Event) []byte {
	t.Helper()
	l.ids++
	seed := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("id"), l.ids))
	e.ID = ID(seed[:16])
	if e.Time.IsZero() {
		e.Time = time.Date(2026, 1, 2, 3, 4, 5, int(l.ids), time.UTC)
	}
	s, err := e.Seal(sha256.Sum256(binary.BigEndian.AppendUint64([]byte("salt"), l.ids)))
	if err != nil {
		t.Fatal(err)
	}
	env, err := Sign(s.Statement, l.signer)
	if err != nil {
		t.Fatal(err)
	}
	l.entries, l.openings = append(l.entries, env), append(l.openings, s.Opening)
	return env
}

// integrate appends what is pending and signs.
func (l *memLog) integrate(t testing.TB) {
	t.Helper()
	var leaves []Hash
	for _, e := range l.entries[l.tree.Size():] {
		leaves = append(leaves, LeafHash(e))
	}
	for _, tile := range l.tree.Append(leaves) {
		l.tiles[place{tile.Level, tile.N, 0}] = tile.Data
	}
	var further []*Signer
	if l.old != nil {
		further = append(further, l.old)
		l.old = nil
	}
	var err error
	if l.checkpoint, err = SignCheckpoint(l.tree.Size(), l.tree.Root(), l.signer, further...); err != nil {
		t.Fatal(err)
	}
}

func (l *memLog) rotate(t testing.TB, name string) {
	next := testSigner(t, name)
	l.add(t, keyEvent(next))
	l.old, l.signer = l.signer, next
}

// message is an event as the gateway makes it.
func message(i int) Event {
	return Event{
		Kind: Message, Server: "files", Tool: "read_file", Method: "tools/call", Shape: "result", Verdict: "changed", Profile: "mcp",
		Subjects:  []Subject{{Received, sha256.Sum256(fmt.Append(nil, "in ", i))}, {Delivered, sha256.Sum256(fmt.Append(nil, "out ", i))}},
		Versions:  []Version{{"unicode", "15.0.0"}, {"sanitation", "1.4"}, {"corpus", "2026-01"}},
		Inspected: 3, Findings: []Count{{finding.HiddenTag, int64(i + 1)}, {finding.AnsiEscape, 1}},
		NotInspected: []Count{{finding.BlobNotInspected, 1}},
	}
}

// testLog has n records in batches of different sizes, the first of which names the key.
func testLog(t testing.TB, n int) *memLog {
	l := newLog(t)
	for i := 1; i < n; i++ {
		l.add(t, message(i))
		if i%7 == 0 || i%100 == 3 {
			l.integrate(t)
		}
	}
	l.integrate(t)
	return l
}

func (l *memLog) Checkpoint(context.Context) ([]byte, error) { return l.checkpoint, nil }

func (l *memLog) Tile(_ context.Context, level int, n int64, w int) ([]byte, error) {
	if b := l.tiles[place{level, n, 0}]; len(b) >= w*hashSize {
		return b, nil
	}
	return nil, ErrNotFound
}

func (l *memLog) Entries(_ context.Context, first int64, n int) ([][]byte, error) {
	if first < 0 || first >= l.tree.Size() {
		return nil, ErrNotFound
	}
	return l.entries[first:min(first+int64(n), l.tree.Size())], nil
}

func (l *memLog) Openings(_ context.Context, first int64, n int) ([][]byte, error) {
	return l.openings[first:min(first+int64(n), l.tree.Size())], nil
}

// export writes the log as files.
func (l *memLog) export(t testing.TB, openings bool) fstest.MapFS {
	t.Helper()
	dir := fstest.MapFS{}
	var op Opener
	if openings {
		op = l
	}
	err := Export(t.Context(), l, op, func(path string, data []byte) error {
		dir[path] = &fstest.MapFile{Data: bytes.Clone(data)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func verify(t testing.TB, dir fs.FS, o VerifyOptions) *Report {
	t.Helper()
	r, err := VerifyExport(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// problems is what a report complains of, a line each.
func problems(r *Report) []string {
	var out []string
	for _, p := range r.Problems {
		out = append(out, p.String())
	}
	return out
}

func testContext(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
