// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"hash"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bounds of what a message may cost beside its own bytes. A server that sends n bytes
// must not make the boundary or the client hold many times n: frames, placeholders and
// notes of changes are longer than the values that ask for them.
const (
	frameBase = 320 << 10 // bytes of frames and placeholders, and one more for each byte of the message
	editBase  = 2048      // edits, and one more for each editShare bytes of the message
	editShare = 48
	editSpare = 512 // edits that blocks leave to the rest of the message
	// leastText is the length in bytes from which a text outside of a frame is looked up
	// among those that have taken control of a model.
	leastText = 16
	// maxSums is how many bytes of digests are kept to be changed: of more texts than have
	// to be looked at together.
	maxSums = maxPieces * len(frame.Digest{})
)

const (
	costFactor = 8           // what a byte of a message costs at most
	worthRoom  = 64 << 10    // bytes from which on a message has to find room: shorter ones cost little
	roomWait   = time.Minute // clients wait as long
)

// reserveRoom waits for room for a message of size bytes, and for the turn of a long one. came is the room that the
// message already has, if any.
func (in *inspection) reserveRoom(came *intake.Room, size int) (ok bool) {
	if size < worthRoom {
		return true
	}
	cost := int64(size) * costFactor
	if came == nil {
		came = in.cfg.Memory.Room(in.cfg.Principal)
	} else {
		cost -= int64(size) * wire.AnswerCost
	}
	ctx, done := context.WithTimeout(in.p.context(), cmp.Or(in.cfg.patience, roomWait))
	defer done()
	wait := came.Add
	if size >= intake.WorthTurn {
		wait = came.Work
	}
	in.room = came
	ok = wait(ctx, cost) == nil
	in.w.helped = !came.HasRivals()
	return ok
}

// retakeTurn waits for a turn to make what is delivered of a message of size bytes.
func (in *inspection) retakeTurn(size int) {
	if size < intake.WorthTurn {
		return
	}
	ctx, done := context.WithTimeout(in.p.context(), cmp.Or(in.cfg.patience, roomWait))
	defer done()
	_ = in.room.Work(ctx, 0) // an error means that the client has gone, or the process is overloaded: the work is small
}

// passRoom gives the room of the message to what is delivered, if that needs any.
func (in *inspection) passRoom(out *wire.Message) {
	if in.room == nil {
		return
	}
	in.p.msg.WithRoom(nil)
	if out == nil || out.Len() < worthRoom {
		in.room.Leave()
		return
	}
	in.room.Shrink(int64(out.Len()))
	out.WithRoom(in.room)
}

// growth is what a message has cost so far.
type growth struct {
	size   int    // bytes of the message
	framed int    // bytes of frames and placeholders
	arena  []byte // room for frames: one of pooled
	stub   []byte // placeholder of a block
	sum    []byte // digests of the delivered texts, one after the other: the last of them
	before hash.Hash
	gone   int           // bytes of digests that are in before
	texts  []hold.Digest // of what is delivered, for Blocks
	wanted bool          // texts are
}

func (g *growth) reset() {
	if g.before != nil {
		g.before.Reset()
	}
	if cap(g.texts) > 1<<12 {
		g.texts = nil
	}
	g.size, g.framed, g.arena, g.stub, g.sum, g.gone, g.texts, g.wanted = 0, 0, nil, nil, g.sum[:0], 0, g.texts[:0], false
}

// blockCost is what a placeholder counts among frames: about as much as a frame.
const blockCost = 512

// hasNoRoom reports whether no further block can be framed or replaced.
func (w *walker) hasNoRoom() bool {
	return w.grown.framed > frameBase+w.grown.size || w.edits.Len() > w.maxEdits()-editSpare
}

// room is room for n bytes of a frame, which took takes.
func (w *walker) room(n int) []byte {
	g := &w.grown
	if cap(g.arena)-len(g.arena) < n {
		b := reuse.NewBuffer(max(n, min(2*cap(g.arena), 64<<10)))
		g.arena, w.pooled = b.Bytes(), append(w.pooled, b)
	}
	return g.arena[len(g.arena):len(g.arena):cap(g.arena)]
}

// took notes a frame that was appended to the last room, or has outgrown it.
func (w *walker) took(fence []byte, body int) {
	g := &w.grown
	g.framed += max(len(fence)-body, 0)
	if cap(fence) == cap(g.arena)-len(g.arena) {
		g.arena = g.arena[:len(g.arena)+len(fence)]
	}
}

// addDigest notes the digest of a delivered text.
func (w *walker) addDigest(d frame.Digest) {
	g := &w.grown
	if len(g.sum) >= maxSums {
		if g.before == nil {
			g.before = sha256.New()
		}
		g.before.Write(g.sum)
		g.gone += len(g.sum)
		g.sum = g.sum[:0]
	}
	g.sum = append(g.sum, d[:]...)
	if g.wanted {
		g.texts = append(g.texts, hold.Digest(d))
	}
}

// lastDigest is where the digest that was added last stands.
func (w *walker) lastDigest() int { return w.grown.gone + len(w.grown.sum) - len(frame.Digest{}) }

// setDigest puts d where another digest stands, or reports false if that is too far back.
func (w *walker) setDigest(at int, d frame.Digest) bool {
	g := &w.grown
	if at -= g.gone; at < 0 {
		return false
	}
	copy(g.sum[at:], d[:])
	if g.wanted {
		g.texts = append(g.texts, hold.Digest(d))
	}
	return true
}

// addShort is addDigest of a text outside of a frame, which is not looked up if it is short.
func (w *walker) addShort(d frame.Digest, length int) {
	wanted := w.grown.wanted
	w.grown.wanted = wanted && length >= leastText
	w.addDigest(d)
	w.grown.wanted = wanted
}

// delivered is the digest of all texts: of the one text's bytes, or else of
// the texts' digests one after the other; zero without texts.
func (w *walker) delivered() (d frame.Digest) {
	g := &w.grown
	switch {
	case g.gone > 0:
		sum, err := g.before.(hash.Cloner).Clone()
		if err != nil {
			panic("gateway: SHA-256 cannot be copied: " + err.Error()) // it always can
		}
		sum.Write(g.sum)
		return frame.Digest(sum.Sum(nil))
	case len(g.sum) == len(d):
		copy(d[:], g.sum)
	case len(g.sum) > 0:
		d = sha256.Sum256(g.sum)
	}
	return d
}

// dropDigests forgets the digests of what is not delivered after all.
func (w *walker) dropDigests() {
	g := &w.grown
	if g.before != nil {
		g.before.Reset()
	}
	g.gone, g.sum, g.texts = 0, g.sum[:0], g.texts[:0]
}

// tooMany reports whether a message asks for more edits than its length allows.
func (w *walker) tooMany() bool { return w.edits.Len() > w.maxEdits() }

func (w *walker) maxEdits() int { return editBase + w.grown.size/editShare }

// cutBlocks gives up the blocks of a list from e on, which is the nth, for one that says how
// many they are.
func (w *walker) cutBlocks(list, e strictjson.Value, n int) {
	all := list.Len()
	w.edits.Truncate(e)
	w.edits.AppendElement(list, leftOutBlock(w.evidence, all-n, all))
	w.leftOut(finding.TooMany, all-n)
}

// placeholder stands for a block, and is the same for each of a message.
func (w *walker) placeholder() []byte {
	if w.grown.stub == nil {
		w.grown.stub = blockPlaceholder(w.evidence)
	}
	w.grown.framed += blockCost
	return w.grown.stub
}

// isBlocks reports whether the elements of a field are content blocks.
func isBlocks(f *mcpmsg.Field) bool { return f.Unit == mcpmsg.Block }
