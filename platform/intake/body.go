// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// rate is the number of bytes a second at which a body has to arrive after the first patience: a client
// that sends nothing must not keep its place.
const rate = 16 << 10

// ErrTooLong means that a body is longer than Reader.Most.
var ErrTooLong = errors.New("intake: the body is too long")

// A Reader reads bodies. All its members have to be set.
type Reader struct {
	Memory   *Budget       // a byte of a body takes BodyCost of it
	Most     int           // bytes of a body
	Patience time.Duration // for a body, beside a second for each 16 KiB
}

// Read reads the whole body of a request. room is its memory; the caller calls Leave also after an error. The error
// is ErrFull, ErrGreedy, ErrTooLong, or an error of a connection that has ended or is too slow. After an error
// room is empty already: the client may take long to read the refusal, see Refuse.
func (rd *Reader) Read(w http.ResponseWriter, r *http.Request, who string) (body []byte, room *Room, err error) {
	room = rd.Memory.Room(who)
	if body, err = rd.read(w, r, room); err != nil {
		room.Leave()
	}
	return body, room, err
}

func (rd *Reader) read(w http.ResponseWriter, r *http.Request, room *Room) (all []byte, err error) {
	if r.ContentLength > int64(rd.Most) {
		return nil, ErrTooLong
	}
	from := http.MaxBytesReader(w, r.Body, int64(rd.Most))
	conn, start := http.NewResponseController(w), time.Now()
	grow := room.Growing(BodyCost, BodyWait)
	for {
		if len(all) == cap(all) {
			// One byte more than the body may have, so that reading its end needs no larger slice.
			n := min(max(2*cap(all), 4<<10), rd.Most+1)
			if err := grow(n); err != nil {
				return nil, err
			}
			all = append(make([]byte, 0, n), all...)
		}
		// Where there are no deadlines there is no connection to wait for.
		_ = conn.SetReadDeadline(start.Add(rd.Patience + time.Duration(len(all)/rate)*time.Second))
		var n int
		n, err = from.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		var long *http.MaxBytesError
		switch {
		case err == io.EOF:
			_ = conn.SetReadDeadline(time.Time{}) // the server's own rule again
			return all, nil
		case errors.As(err, &long):
			return nil, ErrTooLong
		case err != nil:
			return nil, err // the deadline stays: the server reads the rest of the body
		}
	}
}

// lingering is the time for which the body of a refused request is read and dropped.
const lingering = 5 * time.Second

// Refuse calls answer to answer a request before its body has arrived, and then lets the client send up to
// most bytes of the body: many clients read an answer only after they have sent everything. The connection
// ends.
func Refuse(w http.ResponseWriter, r *http.Request, most int, answer func()) {
	w.Header().Set("Connection", "close")
	conn := http.NewResponseController(w)
	_ = conn.EnableFullDuplex() // an error means that it is not needed
	answer()
	if conn.Flush() == nil && conn.SetReadDeadline(time.Now().Add(lingering)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, int64(most)) // a client that sends more is cut off
	}
}
