// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// VerifyOptions are what a verification is held against.
type VerifyOptions struct {
	// Keys of the log that are trusted. One is enough: the records themselves name
	// the others.
	Keys []*Key
	// Witnesses that are known, and how many of them must have cosigned the
	// checkpoint; 0 stands for all of them.
	Witnesses []*Witness
	Quorum    int
	// Older checkpoints of the log: each must be a beginning of it.
	Older [][]byte
	// Workers check signatures; 0 stands for the number of processors.
	Workers int
	// Each is called with every record that holds, in order, from one goroutine.
	// It returns the fault of that record, or "", so that a database can compare its
	// rows.
	Each func(index int64, envelope []byte, s *Statement) Fault
}

// maxGaps is after how many bundles that are not to be had a verification stops.
const maxGaps = 16

// maxIDs bounds the memory in which ids are compared.
const maxIDs = 1 << 22

// Verify checks a whole log: the form, key and signature of each record, the tiles,
// the tree, the checkpoint, and, if the source is an Opener, the openings. It says
// what is wrong and where, and goes on; the error is that of the context alone.
func Verify(ctx context.Context, src Source, o VerifyOptions) (*Report, error) {
	v := &verifier{src: src, o: o, r: &Report{Kinds: map[Kind]int64{}}, ids: map[ID]struct{}{}}
	v.opener, _ = src.(Opener)
	msg, err := src.Checkpoint(ctx)
	if err == nil {
		v.claimed, err = readCheckpoint(msg)
	}
	if err != nil {
		v.r.problem(Problem{"checkpoint", checkpointPath, -1, faultOf(err)})
		v.r.notChecked("anything but the checkpoint")
		return v.r, ctx.Err()
	}
	v.readOlder()
	for i := range v.trees {
		v.trees[i] = builtTree{whole: true, upper: map[place][]byte{}, older: map[int64]Hash{0: new(Tree).Root()}}
	}
	v.walk(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v.settle(ctx)
	v.checkpoint(msg)
	return v.r, ctx.Err()
}

// VerifyExport checks an exported log as Verify does, and that there is nothing
// beside it. One flipped bit in any of its files is found. It needs no network and
// no clock.
func VerifyExport(ctx context.Context, dir fs.FS, o VerifyOptions) (*Report, error) {
	src := Dir(dir)
	r, err := Verify(ctx, src, o)
	if err != nil {
		return nil, err
	}
	size, err := src.size()
	if err != nil {
		return r, nil
	}
	err = fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.problem(Problem{"file " + finding.Quote(path), "", -1, FaultUnreadable})
		case !d.IsDir() && !belongs(path, size) && !narrower(ctx, src, dir, path):
			r.problem(Problem{"file " + finding.Quote(path), "", -1, FaultStray})
		}
		return nil
	})
	return r, err
}

// belongs reports whether an export of that size has a file of that path.
func belongs(path string, size int64) bool {
	if path == checkpointPath {
		return true
	}
	if level, n, w, ok := parseTilePath(path); ok {
		return w == width(size, max(level, 0), n)
	}
	if rest, ok := strings.CutPrefix(path, "openings/"); ok { // one beside each bundle
		level, n, w, ok := parseTilePath("tile/entries/" + rest)
		return ok && level == entries && w == width(size, 0, n)
	}
	return false
}

// narrower reports whether a file is a tile or bundle as it was when the log was smaller, which a copy
// keeps for a while: the wider one, which was checked, begins with the same bytes.
func narrower(ctx context.Context, src Source, dir fs.FS, path string) bool {
	level, n, w, ok := parseTilePath(path)
	if !ok || w == tileWidth {
		return false
	}
	want, err := exported(ctx, src, place{level, n, w})
	if err != nil {
		return false
	}
	got, err := (&Directory{dir: dir}).read(path, len(want))
	return err == nil && bytes.Equal(got, want)
}

// A batch is a bundle of records on its way through the workers.
type batch struct {
	n        int64
	w        int
	records  []record
	fault    Fault // of the bundle: there are no records then
	tile     []byte
	tileBad  Fault // of the tile, which is absent then
	openings [][]byte
	noOpen   Fault // of the openings
	done     chan struct{}
}

// A record is one that a worker has looked at.
type record struct {
	raw    []byte
	leaf   Hash
	env    *Envelope
	st     *Statement
	key    *Key // whose signature was checked; nil: none was
	signed bool
	fault  Fault
}

// The two ways to the root. Where a record and a tile disagree, the checkpoint says
// which of them is wrong.
const (
	byRecords = iota
	byTiles
)

type builtTree struct {
	Tree
	whole bool // nothing was missing
	upper map[place][]byte
	older map[int64]Hash
}

type disagreement struct {
	index int64
	bad   bool // the record has a fault of its own
}

// A verifier is one verification under way. But for key, only the goroutine of
// Verify touches it; workers have their batch.
type verifier struct {
	src     Source
	opener  Opener
	o       VerifyOptions
	r       *Report
	claimed Checkpoint
	key     atomic.Pointer[Key] // in force, as far as the log was read
	trees   [2]builtTree
	odd     []disagreement
	gaps    int
	ids     map[ID]struct{}
	older   []Checkpoint
	sizes   []int64 // of the older checkpoints, in order
}

func faultOf(err error) Fault {
	switch {
	case errors.Is(err, ErrNotFound):
		return FaultMissing
	case errors.Is(err, errBundle), errors.Is(err, errTile), errors.Is(err, errCheckpoint):
		return FaultForm
	}
	return FaultUnreadable
}

// walk reads the log from its start, in order, while workers look ahead.
func (v *verifier) walk(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	workers := v.o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	work := make(chan *batch)
	queue := make(chan *batch, 2*workers)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(work)
		defer close(queue)
		for n := int64(0); n*tileWidth < v.claimed.Size; n++ {
			b := &batch{n: n, w: width(v.claimed.Size, 0, n), done: make(chan struct{})}
			select {
			case queue <- b:
			case <-ctx.Done():
				return
			}
			select {
			case work <- b:
			case <-ctx.Done():
				close(b.done)
				return
			}
		}
	})
	for range workers {
		wg.Go(func() {
			var p parser
			for b := range work {
				v.look(ctx, &p, b)
				close(b.done)
			}
		})
	}
	for b := range queue {
		<-b.done
		if ctx.Err() != nil {
			continue
		}
		v.take(b)
		if v.gaps > maxGaps {
			v.r.notChecked("records from %d on: too much is missing before them", (b.n+1)*tileWidth)
			v.trees[byRecords].whole, v.trees[byTiles].whole = false, false
			stop()
		}
	}
	stop()
	wg.Wait()
}

// look does what can be done for a batch without knowing those before it.
func (v *verifier) look(ctx context.Context, p *parser, b *batch) {
	first := b.n * tileWidth
	if list, err := v.src.Entries(ctx, first, b.w); err != nil {
		b.fault = faultOf(err)
	} else if len(list) < b.w {
		b.fault = FaultMissing
	} else {
		b.records = make([]record, b.w)
		for i := range b.records {
			v.lookAt(p, &b.records[i], list[i])
		}
	}
	if tile, err := v.src.Tile(ctx, 0, b.n, b.w); err != nil {
		b.tileBad = faultOf(err)
	} else if len(tile) < b.w*hashSize {
		b.tileBad = FaultForm
	} else {
		b.tile = tile[:b.w*hashSize]
	}
	if v.opener == nil {
		return
	}
	list, err := v.opener.Openings(ctx, first, b.w)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		b.noOpen = faultOf(err)
	case len(list) != b.w:
		b.noOpen = FaultMissing
	default:
		b.openings = list
	}
}

func (v *verifier) lookAt(p *parser, r *record, raw []byte) {
	r.raw, r.leaf = raw, LeafHash(raw)
	var err error
	if r.env, err = ParseEnvelope(raw); err != nil {
		r.fault = FaultForm
		return
	}
	if r.st, err = p.statement(r.env.Statement); err != nil {
		r.fault = FaultForm
		return
	}
	k := v.key.Load()
	if k == nil || k.ID() != r.env.KeyID {
		k = keyOf(v.o.Keys, r.env.KeyID)
	}
	if k != nil {
		r.key, r.signed = k, r.env.Verify(k)
	}
}

func keyOf(keys []*Key, id string) *Key {
	for _, k := range keys {
		if k.ID() == id {
			return k
		}
	}
	return nil
}
