// SPDX-License-Identifier: Apache-2.0

package eventstream

import "io"

// A Reader reads events from R. It reads ahead: what is behind an event may be read with it.
type Reader struct {
	Decoder
	R io.Reader

	store []byte
	full  bool // the last read filled the first store: the next one is larger
	err   error
}

const (
	// firstRead is the size of the first read of a stream, and of all that follow until one
	// fills it: many a stream is silent for hours.
	firstRead = 512
	readSize  = 16 << 10
	// maxIdle is how often a read may return nothing.
	maxIdle = 100
)

// Next returns the next event that has data. The error is io.EOF at the end of the stream,
// ErrTooLong, or the error of R; each is final.
func (r *Reader) Next() (Event, error) {
	for {
		e, ok, err := r.Decoder.Next()
		switch {
		case err != nil:
			return Event{}, err
		case ok && e.HasData:
			return e, nil
		case ok:
			continue
		}
		if err := r.fill(); err != nil {
			return Event{}, err
		}
	}
}

// fill feeds the Decoder with at least one byte.
func (r *Reader) fill() error {
	switch {
	case r.store == nil:
		r.store = make([]byte, firstRead)
	case r.full:
		r.store = make([]byte, readSize)
	}
	for range maxIdle {
		if r.err != nil {
			return r.err
		}
		var n int
		n, r.err = r.R.Read(r.store)
		if r.full = n == firstRead && len(r.store) == firstRead; n > 0 {
			r.Feed(r.store[:n])
			return nil
		}
	}
	return io.ErrNoProgress
}
