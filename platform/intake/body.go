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
	Share *Share // of bytes
	// Most is how long a body may be. The Share has to hold two of them for one who reads
	// both to get through: see Least.
	Most     int
	Patience time.Duration // for a body, beside a second for each 16 KiB
}

// Least is what a Share has to have for bodies of that length.
func Least(most int) int64 { return 2 * int64(most+1) }

// Read reads the body of a request, whole; done gives its room back, and may be called
// whatever the error is. That is ErrFull, ErrGreedy, ErrTooLong, or one of the connection,
// which has gone or is too slow. A body that is not read has no room left when Read
// returns: its client may take long to hear of it, see Refuse.
func (rd *Reader) Read(w http.ResponseWriter, r *http.Request, who string) (body []byte, done func(), err error) {
	m := &room{of: rd.Share, who: who, most: rd.Most}
	if body, err = rd.read(w, r, m); err != nil {
		m.leave()
	}
	return body, m.leave, err
}

func (rd *Reader) read(w http.ResponseWriter, r *http.Request, m *room) (all []byte, err error) {
	if r.ContentLength > int64(rd.Most) {
		return nil, ErrTooLong
	}
	from := http.MaxBytesReader(w, r.Body, int64(rd.Most))
	conn, start := http.NewResponseController(w), time.Now()
	for {
		if all, err = m.more(all); err != nil {
			return nil, err
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

// A room is what a body has of a Share.
type room struct {
	of   *Share
	who  string
	most int
	has  int64
}

// more makes room in b for what is read next, if there is any.
func (m *room) more(b []byte) ([]byte, error) {
	if len(b) < cap(b) {
		return b, nil
	}
	n := min(max(2*cap(b), 4<<10), m.most+1) // one more than it may have: none has to be longer to be read to its end
	if err := m.of.Take(m.who, int64(n)-m.has); err != nil {
		return b, err
	}
	m.has = int64(n)
	return append(make([]byte, 0, n), b...), nil
}

func (m *room) leave() {
	m.of.Give(m.who, m.has)
	m.has = 0
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
