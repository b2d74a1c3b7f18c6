// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// settle compares the two trees with the root, and says which side is wrong.
func (v *verifier) settle(ctx context.Context) {
	var leads [2]bool
	for i := range v.trees {
		t := &v.trees[i]
		leads[i] = t.whole && t.size == v.claimed.Size && t.Root() == v.claimed.Root
	}
	tile := int64(-1)
	for _, d := range v.odd {
		switch {
		case leads[byRecords]:
			if n := d.index / tileWidth; n != tile {
				tile = n
				v.r.problem(Problem{fmt.Sprintf("tile 0/%d", n), tilePath(0, n, width(v.claimed.Size, 0, n)), -1, FaultTile})
			}
		case d.bad:
		case leads[byTiles]:
			v.r.record(d.index, FaultNotInTree)
			v.r.Records--
		default:
			v.r.record(d.index, FaultDisagree)
		}
	}
	whole := v.trees[byRecords].whole || v.trees[byTiles].whole
	switch {
	case leads[byRecords], leads[byTiles]:
	case whole:
		v.r.problem(Problem{"checkpoint", checkpointPath, -1, FaultRoot})
	default:
		v.r.notChecked("the root: records and tiles are missing")
	}
	// The tiles above must follow from the tree that is right, or else from the
	// tiles below them.
	for _, i := range []int{byRecords, byTiles} {
		if t := &v.trees[i]; leads[i] || i == byTiles && t.whole && !leads[byRecords] {
			v.upperTiles(ctx, t)
			v.olderCheckpoints(t)
			return
		}
	}
	v.r.notChecked("the tiles above level 0")
	if len(v.older) > 0 {
		v.r.notChecked("the older checkpoints")
	}
}

func (v *verifier) upperTiles(ctx context.Context, t *builtTree) {
	for p := range places(v.claimed.Size) {
		if p.level < 1 {
			continue
		}
		var fault Fault
		data, err := v.src.Tile(ctx, p.level, p.n, p.w)
		switch want := t.upper[place{p.level, p.n, 0}]; {
		case err != nil:
			fault = faultOf(err)
		case len(data) < len(want):
			fault = FaultForm
		case !bytes.Equal(data[:len(want)], want):
			fault = FaultTile
		default:
			continue
		}
		v.r.problem(Problem{fmt.Sprintf("tile %d/%d", p.level, p.n), p.path(), -1, fault})
	}
}

// readOlder takes the older checkpoints' sizes, at which roots will be compared.
func (v *verifier) readOlder() {
	for i, msg := range v.o.Older {
		c, err := readCheckpoint(msg)
		switch {
		case err != nil:
			v.olderProblem(i, FaultForm)
		case c.Origin != v.claimed.Origin:
			v.olderProblem(i, FaultOrigin)
		case c.Size > v.claimed.Size:
			v.olderProblem(i, FaultNewer)
		}
		v.older = append(v.older, c)
		v.sizes = append(v.sizes, c.Size)
	}
}

func (v *verifier) olderProblem(i int, f Fault) {
	v.r.problem(Problem{"older checkpoint " + strconv.Itoa(i), "", -1, f})
}

func (v *verifier) olderCheckpoints(t *builtTree) {
	for i, c := range v.older {
		if root, ok := t.older[c.Size]; ok && c.Origin == v.claimed.Origin && root != c.Root {
			v.olderProblem(i, FaultFork)
		} else if ok && c.Origin == v.claimed.Origin {
			if _, err := OpenCheckpoint(v.o.Older[i], v.keys(), v.o.Witnesses); err != nil {
				v.olderProblem(i, FaultUnsigned)
			}
		}
	}
}

// keys are those of the log, or, as long as none was found in it, those trusted.
func (v *verifier) keys() []*Key {
	if len(v.r.Keys) == 0 {
		return v.o.Keys
	}
	return v.r.Keys
}

// checkpoint checks the signatures of the checkpoint by the keys that the log has
// named, and that one of these is trusted.
func (v *verifier) checkpoint(msg []byte) {
	problem := func(f Fault) { v.r.problem(Problem{"checkpoint", checkpointPath, -1, f}) }
	c, err := OpenCheckpoint(msg, v.keys(), v.o.Witnesses)
	switch {
	case errors.Is(err, errSignature):
		problem(FaultSignature)
		return
	case errors.Is(err, errUnsigned):
		problem(FaultUnsigned)
		return
	case err != nil:
		problem(FaultForm)
		return
	}
	if k := v.key.Load(); k != nil && !slices.ContainsFunc(c.Keys, k.Equal) {
		problem(FaultUnsigned)
		return
	}
	if !slices.ContainsFunc(v.keys(), func(k *Key) bool { return slices.ContainsFunc(v.o.Keys, k.Equal) }) {
		problem(FaultKeys)
		return
	}
	need := v.o.Quorum
	if need <= 0 {
		need = len(v.o.Witnesses)
	}
	if len(c.Cosigned) < need {
		problem(FaultQuorum)
	}
	if c.Unverified > 0 {
		v.r.notChecked("%d signatures of the checkpoint, by keys that were not given", c.Unverified)
	}
	if v.claimed.Size > maxIDs {
		v.r.notChecked("whether ids stand twice, beyond the first %d", maxIDs)
	}
	v.r.Checkpoint = c
}
