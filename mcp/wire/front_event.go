// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The ids of events, by which a client goes on with a stream that broke:
//
//	STREAM-EVENT               the number of the stream and of the event
//	LIFE.STREAM-EVENT          in a session that may outlive the process, on a stream that owes nothing
//	LIFE.STREAM-EVENT.ASKS     the same, with the ids of the requests that the stream is to answer
//
// LIFE is another one in each process. ASKS is base64url over a JSON array. It is not secret, and a
// client that makes it up only gets errors for requests that it has not made.

const (
	lifeLen = 10  // letters and digits of base32
	maxAsks = 400 // bytes of the JSON array
)

// An eventID is a parsed one.
type eventID struct {
	life       string
	stream, no int64
	asks       []ID
	given      bool // the client has named it
}

func appendAsks(dst []byte, requests []*Message) []byte {
	list := []byte{'['}
	for i, m := range requests {
		if i > 0 {
			list = append(list, ',')
		}
		list = m.ID.Append(list)
	}
	if list = append(list, ']'); len(list) > maxAsks {
		return dst
	}
	return base64.RawURLEncoding.AppendEncode(dst, list)
}

// appendEventID spells the id of an event. more says that answers are still to come.
func (st *stream) appendEventID(dst []byte, event int64, more bool) []byte {
	if st.s.life != "" {
		dst = append(append(dst, st.s.life...), '.')
	}
	dst = appendNumbers(dst, st.no, event)
	if more && len(st.asks) > 0 {
		dst = append(append(dst, '.'), st.asks...)
	}
	return dst
}

func appendNumbers(dst []byte, stream, event int64) []byte {
	dst = strconv.AppendInt(dst, stream, 10)
	return strconv.AppendInt(append(dst, '-'), event, 10)
}

// parseEventID reads the one spelling of an event id.
func parseEventID(s string) (id eventID, ok bool) {
	numbers, asks := s, ""
	if life, rest, has := strings.Cut(s, "."); has {
		if len(life) != lifeLen || strings.Trim(life, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
			return id, false
		}
		id.life = life
		if numbers, asks, has = strings.Cut(rest, "."); has {
			if id.asks, ok = parseAsks(asks); !ok {
				return id, false
			}
		}
	}
	a, b, ok := strings.Cut(numbers, "-")
	if !ok {
		return id, false
	}
	var err1, err2 error
	id.stream, err1 = strconv.ParseInt(a, 10, 64)
	id.no, err2 = strconv.ParseInt(b, 10, 64)
	return id, err1 == nil && err2 == nil && id.stream >= 0 && id.no >= 0 && id.no < 1<<62 && string(appendNumbers(nil, id.stream, id.no)) == numbers
}

func parseAsks(s string) (ids []ID, ok bool) {
	list, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(list) > maxAsks {
		return nil, false
	}
	var doc strictjson.Doc
	if doc.Reset(list, strictjson.Limits{Bytes: maxAsks}) != nil || doc.Root().Kind() != '[' {
		return nil, false
	}
	for v := range doc.Root().Elements() {
		id, ok := IDOf(v)
		if !ok {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, len(ids) > 0
}

// resume attaches the response to the stream that a client wants to go on with, or answers it. A
// session that may have lived in another process has streams that this one does not know: the client's
// listening stream begins anew, and requests without an answer get an error.
//
// A client that has had all of a stream gets status 405. The revisions allow an event stream or 405 in answer to GET, and
// SDKs come again after an empty event stream, without an id: they would take their listening stream from themselves.
func (x *exchange) resume(s *FrontSession, id eventID) (st *stream, turn int, ok bool) {
	if id.life == s.life {
		if st, turn, ok = s.attach(id.stream, id.no, id.given); ok && id.given && s.life != "" && st.delivered() {
			st.release(turn)
			x.reject(ID{}, errOver)
			return nil, 0, false
		}
		if ok || s.life == "" || id.stream == 0 {
			if !ok {
				x.reject(ID{}, errEvent)
			}
			return st, turn, ok
		}
	}
	switch {
	case s.life == "":
		x.reject(ID{}, errEvent)
	case id.stream == 0:
		if st, turn, ok = s.attach(0, 0, false); !ok {
			x.reject(ID{}, errNoSession)
		}
		return st, turn, ok
	case len(id.asks) == 0:
		x.reject(ID{}, errOver)
	default:
		x.answerLost(id)
	}
	return nil, 0, false
}

// answerLost answers the requests of a stream that is gone.
func (x *exchange) answerLost(id eventID) {
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	var b []byte
	for i, of := range id.asks {
		b = appendNumbers(append(b, "event: message\nid: "+id.life+"."...), id.stream, id.no+int64(i)+1)
		b = append(NewError(of, errLost.object()).Append(append(b, "\ndata: "...)), "\n\n"...)
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = x.w.Write(b)
}
