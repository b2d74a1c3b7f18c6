// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// rate is how many bytes a second a body has to come at, beyond the first patience:
// whoever sends nothing must not keep a place among the requests under way.
const rate = 16 << 10

// ErrTooLong is a body that is longer than it may be.
var ErrTooLong = errors.New("intake: the body is too long")

// A Reader reads bodies. All its members have to be set.
type Reader struct {
	Memory *Budget // a byte of a body takes BodyCost of it
	// Most is how long a body may be.
	Most     int
	Patience time.Duration // for a body, beside a second for each 16 KiB
}

// Read reads the body of a request, whole; room is its memory, to be left whatever the error is. That is ErrFull, ErrGreedy, ErrTooLong, or one of the connection,
// which has gone or is too slow. A body that is not read has no room left when Read
// returns: its client may take long to hear of it, see Refuse.
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
			// One more byte than the body may have: it is never made longer to be read to its end.
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
			return nil, err // the deadline stays: the server looks for the rest of the body
		}
	}
}

// lingering is how long the body of a refused request is read, and dropped.
const lingering = 5 * time.Second

// Refuse answers a request before its body has come, by what answer writes, and then lets
// the client send up to most bytes of what it has begun to send: most clients read an
// answer only behind that. The connection ends.
func Refuse(w http.ResponseWriter, r *http.Request, most int, answer func()) {
	w.Header().Set("Connection", "close")
	conn := http.NewResponseController(w)
	_ = conn.EnableFullDuplex() // where it has no meaning it is not needed
	answer()
	if conn.Flush() == nil && conn.SetReadDeadline(time.Now().Add(lingering)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, int64(most)) // whoever goes on sending is cut
	}
}
