// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

var defaultLimits strictjson.Limits

var (
	errBodyTooLong = fmt.Errorf("%w: body", ErrTooLong)
	errEncoding    = errors.New("wire: content encoding")
)

// decompress returns the body as the server meant it. What reads it bounds it:
// a bomb is cut off where an honest body of that size would be.
func decompress(resp *http.Response) (io.Reader, error) {
	switch e := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); e {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		return &lazyGzip{r: resp.Body}, nil
	default:
		return nil, fmt.Errorf("%w %s", errEncoding, finding.Quote(e))
	}
}

// lazyGzip reads the gzip header with the first byte that is asked for, which
// in a stream may be long after the response began.
type lazyGzip struct {
	r  io.Reader
	gz *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.gz == nil {
		gz, err := gzip.NewReader(l.r)
		if err != nil {
			return 0, err
		}
		l.gz = gz
	}
	return l.gz.Read(p)
}

// body reads a whole body. Its memory is counted together with the memory of the request.
func (c *HTTP) body(ctx context.Context, f *flight, resp *http.Response) (*reuse.Buffer, error) {
	r, err := decompress(resp)
	if err != nil {
		return nil, err
	}
	in := arrival{ctx: ctx, newRoom: c.opt.newRoom, patience: answerWait, room: f.room}
	b, err := readWhole(r, resp.ContentLength, maxMessage(c.opt.Limits), in.reserve)
	if err != nil {
		f.room = in.room
		return nil, err
	}
	f.room = in.takeRoom()
	return b, nil
}

// AnswerCost is the memory in bytes that is counted for a byte of a message that arrives from a server. The
// others bound when memory is counted, and how long a message waits for it.
const (
	AnswerCost = 2
	worthRoom  = maxOneWrite      // bytes from which on memory is counted: shorter messages cost little
	answerWait = time.Minute      // clients wait as long
	streamWait = 30 * time.Second // of a stream, which other requests may need
)

// A long message is read in turns: a turn is for so many bytes, and ends when a slow server has not sent them in time.
const (
	turnBytes = 64 << 10
	turnTime  = 10 * time.Millisecond

	decodeTime = 100 * time.Millisecond // of the turn in which a message is decoded
)

// arrival counts the memory of messages that arrive one after the other, and has long ones wait for their turn.
type arrival struct {
	ctx      context.Context // of the connection
	newRoom  func() *intake.Room
	patience time.Duration
	room     *intake.Room // of the message that has begun, unless it is short
	grow     func(n int) error
	turnTo   int // length of the message up to which its turn lasts
}

// reserve waits for a turn to read n bytes of the message that has begun, and for memory for them.
func (in *arrival) reserve(n int) error {
	if n <= worthRoom || in.newRoom == nil {
		return nil
	}
	if in.grow == nil {
		in.room = cmp.Or(in.room, in.newRoom())
		in.grow = in.room.Growing(AnswerCost, in.patience)
	}
	if err := in.waitTurn(n); err != nil {
		return err
	}
	return in.grow(n)
}

// waitTurn waits for a turn to read n bytes of the message that has begun.
func (in *arrival) waitTurn(n int) error {
	if n < intake.WorthTurn || n <= in.turnTo || in.room == nil {
		return nil
	}
	in.turnTo = n + turnBytes
	return in.room.WaitTurn(in.ctx, turnTime)
}

// takeRoom returns the room of the message that has arrived. It has a turn if the message is long.
func (in *arrival) takeRoom() *intake.Room {
	if in.turnTo > 0 {
		_ = in.room.WaitTurn(in.ctx, decodeTime) // an error means that the connection ends
	}
	return in.giveUp()
}

// giveUp returns the room of the message that has begun.
func (in *arrival) giveUp() *intake.Room {
	room := in.room
	in.room, in.grow, in.turnTo = nil, nil, 0
	return room
}

func (o *HTTPOptions) newRoom() *intake.Room {
	if o.Room == nil {
		return nil
	}
	return o.Room(o.Principal)
}

// bodyPiece is how much of a body of unknown length is read into one buffer.
const bodyPiece = 64 << 10

// readWhole reads r to its end. announced is its Content-Length, or negative. A body that is longer
// is read in pieces, so that it costs no more than twice its length while it arrives. readWhole calls
// reserve before it allocates memory for so many bytes.
func readWhole(r io.Reader, announced int64, limit int, reserve func(n int) error) (whole *reuse.Buffer, err error) {
	if announced > int64(limit) {
		return nil, errBodyTooLong
	}
	// What is announced has not come yet: it costs its sender nothing.
	first := int(min(max(announced+1, 0), maxOneWrite))
	if err := reserve(first); err != nil {
		return nil, err
	}
	last := reuse.NewBuffer(first)
	var full []*reuse.Buffer
	before := 0 // bytes in full
	defer func() {
		if whole != last {
			last.Release()
		}
		for _, piece := range full {
			piece.Release()
		}
	}()
	for idle := 0; ; idle++ {
		b := last.Bytes()
		if before+len(b) > limit {
			return nil, errBodyTooLong
		}
		if len(b) == cap(b) {
			if err := reserve(before + len(b) + bodyPiece); err != nil {
				return nil, err
			}
			full, before = append(full, last), before+len(b)
			last = reuse.NewBuffer(bodyPiece)
			b = last.Bytes()
			runtime.Gosched() // short messages go before
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		last.Set(b)
		if n > 0 {
			idle = 0
		}
		switch {
		case err == io.EOF:
			if before+len(b) > limit {
				continue
			}
			if len(full) == 0 {
				return last, nil
			}
			whole = reuse.NewBuffer(before + len(b))
			for _, piece := range full {
				whole.Append(piece.Bytes())
			}
			whole.Append(b)
			return whole, nil
		case err == nil && idle > maxIdle:
			err = io.ErrNoProgress
		}
		if err != nil {
			return nil, err
		}
	}
}

func bodyRefusal(err error) *refusal {
	if errors.Is(err, intake.ErrFull) {
		return refuse(CodeNoRoom, err)
	}
	if errors.Is(err, errBodyTooLong) || errors.Is(err, eventstream.ErrTooLong) || errors.Is(err, errEncoding) ||
		errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return refuse(codeBadAnswer, err)
	}
	return refuse(codeCut, errors.New("wire: body ended early: "+quoteError(err)))
}

// neverConnected reports whether err of a round trip came before a connection
// that could be used: dialling, name resolution, TLS.
func neverConnected(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect" || op.Op == "remote error") {
		return true
	}
	var (
		dns    *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
	)
	return errors.As(err, &dns) || errors.As(err, &cert) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.Is(err, http.ErrSchemeMismatch) ||
		strings.Contains(err.Error(), "TLS handshake timeout")
}
