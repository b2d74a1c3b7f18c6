// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// worthHelp is the number of bytes from which a digest is computed in a goroutine of its
// own: it takes several times as long as a goroutine takes to start.
const worthHelp = 64 << 10

func isWorthHelp(n int) bool { return n >= worthHelp && runtime.GOMAXPROCS(0) > 1 }

func digestOf(b []byte) frame.Digest { return sha256.Sum256(b) }

// An earlyDigest is the digest of a long text, computed while the text is looked at. nil is
// that of a text which is not worth it.
type earlyDigest struct {
	text string
	sum  frame.Digest
	done chan struct{} // closed: sum is there, or will not be
	stop atomic.Bool   // nobody wants sum any more
}

// early begins the digest of text, which must not change before end.
func early(text string) *earlyDigest {
	if !isWorthHelp(len(text)) {
		return nil
	}
	e := &earlyDigest{text: text, done: make(chan struct{})}
	go e.compute()
	return e
}

// digestPiece is how many bytes are copied and hashed at a time.
const digestPiece = 4 << 10

func (e *earlyDigest) compute() {
	defer close(e.done)
	piece := reuse.NewBuffer(digestPiece)
	defer piece.Release()
	h := sha256.New()
	for rest := e.text; len(rest) > 0; {
		if e.stop.Load() {
			return
		}
		n := min(len(rest), digestPiece)
		h.Write(append(piece.Bytes(), rest[:n]...))
		rest = rest[n:]
	}
	h.Sum(e.sum[:0])
}

// of returns the digest of text: the one that was begun, if that was for the same text. The
// comparison costs nothing where both are the same bytes in memory. It is not called behind end.
func (e *earlyDigest) of(text string) frame.Digest {
	if e == nil || text != e.text {
		return frame.DigestOf(text)
	}
	<-e.done
	return e.sum
}

// end gives the digest up, and returns when its text is no longer read.
func (e *earlyDigest) end() {
	if e != nil {
		e.stop.Store(true)
		<-e.done
	}
}

// A lateRecord is the record of a session that is made beside the writing of the message
// that it is about. There is one at a time, so that a Sink that is slow slows the session
// down. nil: records are made before the messages are delivered.
type lateRecord struct {
	spawn func(func()) // the session lasts until what it starts has returned
	busy  sync.Mutex
}

// wait waits until the record is made.
func (l *lateRecord) wait() {
	if l != nil {
		l.busy.Lock()
		defer l.busy.Unlock()
	}
}

// mayRecordLate reports whether the record of a message of so many bytes can be made beside
// its delivery: the message is long, no other one waits, it is delivered without its record too, and no verdict of
// a classifier refers to the record.
func (in *inspection) mayRecordLate(size int) bool {
	return in.late != nil && in.w.helped && isWorthHelp(size) && !in.mustRecord() && (in.p.judged == nil || len(in.p.judged.assessments) == 0)
}

// recordLate records that out, made of what came, is delivered. The two digests of the
// record are computed while out is written; received is the first, if it was begun.
func (in *inspection) recordLate(came []byte, received *earlyDigest, out *wire.Message) {
	d, store, maker := in.concluded(), in.p.store, in.inspector
	if received != nil {
		d.Received = received.of(reuse.String(came))
		in.p.judged.isShown(&d)
		came = nil
	}
	body, free, freeCame := out.Body(), out.Keep(), in.p.msg.Keep()
	maker.late.busy.Lock()
	maker.late.spawn(func() {
		defer maker.late.busy.Unlock()
		if came != nil {
			d.Received = digestOf(came)
		}
		freeCame()
		d.Delivered = digestOf(body)
		free()
		_ = maker.record(&d, store)
	})
}
