// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"strconv"
	"strings"
)

// checkpointPath is where the checkpoint of a log stands.
const checkpointPath = "checkpoint"

// The levels by which the paths of bundles go.
const (
	entries  = -1
	openings = -2
)

// tilePath is the path of a tile of tlog-tiles: tile/<L>/<N>[.p/<W>]. The openings
// of the records of a bundle stand apart, at openings/<N>[.p/<W>]: what is below
// tile/ is for the public, and they are not.
func tilePath(level int, n int64, w int) string {
	dir := "tile/" + strconv.Itoa(level)
	switch level {
	case entries:
		dir = "tile/entries"
	case openings:
		dir = "openings"
	}
	index := pad(n % 1000)
	for n /= 1000; n > 0; n /= 1000 {
		index = "x" + pad(n%1000) + "/" + index
	}
	path := dir + "/" + index
	if w < tileWidth {
		path += ".p/" + strconv.Itoa(w)
	}
	return path
}

func pad(n int64) string {
	s := strconv.FormatInt(n, 10)
	return "000"[len(s):] + s
}

// parseTilePath reads what tilePath writes of tiles and entries, and nothing else.
func parseTilePath(path string) (level int, n int64, w int, ok bool) {
	rest, ok := strings.CutPrefix(path, "tile/")
	l, rest, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 || len(path) > 64 {
		return 0, 0, 0, false
	}
	level = entries
	if l != "entries" {
		var err error
		if level, err = strconv.Atoi(l); err != nil || level < 0 || level > 63 {
			return 0, 0, 0, false
		}
	}
	w = tileWidth
	if index, partial, is := strings.Cut(rest, ".p/"); is {
		var err error
		if w, err = strconv.Atoi(partial); err != nil || w < 1 || w >= tileWidth {
			return 0, 0, 0, false
		}
		rest = index
	}
	const most = maxSize / 1000
	for part := range strings.SplitSeq(rest, "/") {
		d, err := strconv.ParseUint(strings.TrimPrefix(part, "x"), 10, 10)
		if err != nil || d > 999 || n > most {
			return 0, 0, 0, false
		}
		n = n*1000 + int64(d)
	}
	return level, n, w, tilePath(level, n, w) == path
}

// appendEntry appends an entry as bundles have it: two bytes of length before it.
func appendEntry(dst, envelope []byte) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(envelope))), envelope...)
}

var errBundle = errors.New("ledger: entries: the bundle is not of that many entries")

// splitBundle takes a bundle of exactly w entries apart.
func splitBundle(b []byte, w int) ([][]byte, error) {
	out := make([][]byte, 0, w)
	for range w {
		if len(b) < 2 {
			return nil, errBundle
		}
		n := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; len(b) < n {
			return nil, errBundle
		}
		out = append(out, b[:n:n])
		b = b[n:]
	}
	if len(b) > 0 {
		return nil, errBundle
	}
	return out, nil
}

// A place is where a tile or a bundle stands, and how wide it is.
type place struct {
	level int
	n     int64
	w     int
}

func (p place) path() string { return tilePath(p.level, p.n, p.w) }

// places yields the bundles and tiles of a log of some size, each as wide as it is.
func places(size int64) iter.Seq[place] {
	return func(yield func(place) bool) {
		for level := entries; level < 0 || size>>(tileHeight*level) > 0; level++ {
			for n := int64(0); ; n++ {
				w := width(size, max(level, 0), n)
				if w > 0 && !yield(place{level, n, w}) {
					return
				}
				if w < tileWidth {
					break
				}
			}
		}
	}
}

// joinOpenings writes a bundle of openings: a line each, empty where it was erased.
func joinOpenings(list [][]byte) []byte {
	var out []byte
	for _, o := range list {
		out = append(append(out, o...), '\n')
	}
	return out
}

// splitOpenings reads what joinOpenings wrote, for exactly w records.
func splitOpenings(b []byte, w int) ([][]byte, error) {
	if bytes.Count(b, []byte{'\n'}) != w || b[len(b)-1] != '\n' {
		return nil, errBundle
	}
	return bytes.Split(b[:len(b)-1], []byte{'\n'}), nil
}
