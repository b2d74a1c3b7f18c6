// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// An Opener is a Source that also has the openings of records.
type Opener interface {
	// Openings returns the openings of n records from index first on, in order: an
	// empty one for a record whose opening was erased; ErrNotFound if there are no
	// openings at all.
	Openings(ctx context.Context, first int64, n int) ([][]byte, error)
}

// Export writes a log as static files by the paths of tlog-tiles: "checkpoint",
// "tile/0/000", "tile/entries/000.p/17", …; a web server that serves them serves
// the log. put is called for one file at a time, the checkpoint last. If op is not
// nil, the openings are written beside them, at "openings/000", …; they are not
// for the public.
func Export(ctx context.Context, src Source, op Opener, put func(path string, data []byte) error) error {
	msg, err := src.Checkpoint(ctx)
	if err != nil {
		return fmt.Errorf("ledger: export: checkpoint: %w", err)
	}
	c, err := readCheckpoint(msg)
	if err != nil {
		return err
	}
	for p := range places(c.Size) {
		data, err := exported(ctx, src, p)
		if err == nil {
			err = put(p.path(), data)
		}
		if err == nil && op != nil && p.level == entries {
			p.level = openings
			var list [][]byte
			if list, err = op.Openings(ctx, p.n*tileWidth, p.w); err == nil {
				err = put(p.path(), joinOpenings(list))
			}
		}
		if err != nil {
			return fmt.Errorf("ledger: export: %s: %w", p.path(), err)
		}
	}
	if err := put(checkpointPath, msg); err != nil {
		return fmt.Errorf("ledger: export: checkpoint: %w", err)
	}
	return nil
}

// exported is the file at a place.
func exported(ctx context.Context, src Source, p place) ([]byte, error) {
	if p.level == entries {
		return bundle(ctx, src, p.n*tileWidth, p.w)
	}
	data, err := src.Tile(ctx, p.level, p.n, p.w)
	if err != nil {
		return nil, err
	}
	if len(data) < p.w*hashSize {
		return nil, ErrNotFound
	}
	return data[:p.w*hashSize], nil
}

// bundle joins w entries.
func bundle(ctx context.Context, src Source, first int64, w int) ([]byte, error) {
	list, err := src.Entries(ctx, first, w)
	if err != nil {
		return nil, err
	}
	if len(list) < w {
		return nil, ErrNotFound
	}
	var out []byte
	for _, e := range list[:w] {
		if len(e) > maxEnvelope {
			return nil, errEnvelope
		}
		out = appendEntry(out, e)
	}
	return out, nil
}

// A Directory is a Source of an exported log. What it reads must be as Export
// writes it, also in length.
type Directory struct {
	dir  fs.FS
	size func() (int64, error)
}

// Dir makes a Directory of the files of an export.
func Dir(dir fs.FS) *Directory {
	d := &Directory{dir: dir}
	d.size = sync.OnceValues(func() (int64, error) {
		msg, err := d.Checkpoint(context.Background())
		if err != nil {
			return 0, err
		}
		c, err := readCheckpoint(msg)
		return c.Size, err
	})
	return d
}

var errIrregular = errors.New("ledger: export: it is no regular file")

var errTile = errors.New("ledger: tile: it is not of that many hashes")

// read reads a file of at most limit bytes.
func (d *Directory) read(path string, limit int) ([]byte, error) {
	// To open a pipe waits for a writer.
	if info, err := fs.Stat(d.dir, path); err == nil && !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	f, err := d.dir.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > limit {
		return nil, errBundle
	}
	return b, nil
}

// Size is that of the export's checkpoint, which is not checked.
func (d *Directory) Size() (int64, error) { return d.size() }

// Checkpoint returns the checkpoint of the export.
func (d *Directory) Checkpoint(context.Context) ([]byte, error) {
	return d.read(checkpointPath, maxCheckpoint)
}

// Tile returns a tile of just that width.
func (d *Directory) Tile(_ context.Context, level int, n int64, w int) ([]byte, error) {
	size, err := d.size()
	if err != nil {
		return nil, err
	}
	have := width(size, level, n)
	if level < 0 || w > have {
		return nil, ErrNotFound
	}
	b, err := d.read(tilePath(level, n, have), tileWidth*hashSize)
	if err == nil && len(b) != have*hashSize {
		return nil, errTile
	}
	return b, err
}

// Entries returns envelopes.
func (d *Directory) Entries(_ context.Context, first int64, n int) ([][]byte, error) {
	return d.lines(entries, first, n, tileWidth*(2+maxEnvelope), splitBundle)
}

// Openings returns openings, if the export has them.
func (d *Directory) Openings(_ context.Context, first int64, n int) ([][]byte, error) {
	if _, err := fs.Stat(d.dir, "openings"); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	list, err := d.lines(openings, first, n, tileWidth*(1+maxOpening), splitOpenings)
	if errors.Is(err, ErrNotFound) {
		return nil, errBundle // there are others
	}
	return list, err
}

// lines reads n items from bundles.
func (d *Directory) lines(level int, first int64, n, limit int, split func([]byte, int) ([][]byte, error)) ([][]byte, error) {
	size, err := d.size()
	if err != nil {
		return nil, err
	}
	if first < 0 || first >= size {
		return nil, ErrNotFound
	}
	var out [][]byte
	for i := first; i < min(size, first+int64(n)); {
		at := i / tileWidth
		w := width(size, 0, at)
		b, err := d.read(tilePath(level, at, w), limit)
		if err != nil {
			return nil, err
		}
		list, err := split(b, w)
		if err != nil {
			return nil, err
		}
		for _, e := range list[i%tileWidth:] {
			out = append(out, e)
			i++
		}
	}
	return out[:min(n, len(out))], nil
}
