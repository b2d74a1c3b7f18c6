// SPDX-License-Identifier: Apache-2.0

// Package awsstream parses and writes application/vnd.amazon.eventstream, the binary messages in which Amazon's services stream.
//
// A message is 4 bytes of its whole length, 4 bytes of the length of its headers, a CRC-32
// of these 8 bytes, the headers, the payload, and a CRC-32 of all before it. Numbers are
// big-endian. A header is the length of its name in one byte, the name, the type of its
// value in one byte, and the value. The format is that of "Amazon Transcribe streaming:
// event stream encoding" and of the Smithy specification.
//
// The Decoder takes nothing that another reader may read otherwise: a wrong checksum, a
// length that does not fit, an unknown type of a value and a header that stands twice end
// the stream.
package awsstream

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Bounds of a message.
const (
	MaxHeaders  = 64        // headers
	maxHeader   = 128 << 10 // bytes of all headers
	usualMax    = 16 << 20
	preludeSize = 12
	leastSize   = preludeSize + 4
)

// The errors of a Decoder.
var (
	ErrTooLong  = errors.New("awsstream: a message is too long")
	ErrChecksum = errors.New("awsstream: a checksum is wrong")
	ErrLengths  = errors.New("awsstream: the lengths in a message do not fit")
	ErrHeaders  = errors.New("awsstream: the headers of a message cannot be read")
)

// A Header is a header of a message.
type Header struct {
	Name string
	Type Type
	Raw  []byte // the value; of Text and Bytes without its length
}

// A Type is the type of the value of a header.
type Type uint8

// The types that have a name here; the others are booleans, numbers, times and UUIDs.
const (
	Bytes Type = 6
	Text  Type = 7
)

// sizes are those of the values of the other types.
var sizes = map[Type]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}

// A Message is one message. Its memory is valid until the next call of Next.
type Message struct {
	Headers []Header
	Payload []byte
	Raw     []byte // the message as it came
}

// Text returns the value of the header of that name, if it is a string.
func (m *Message) Text(name string) string {
	for i := range m.Headers {
		if h := &m.Headers[i]; h.Name == name && h.Type == Text {
			return string(h.Raw)
		}
	}
	return ""
}

// A Decoder finds the messages in a stream that comes in pieces: Feed gives it a piece, and
// then Next returns what the piece completes. It holds one message at most, and no memory
// for bytes that have not come.
type Decoder struct {
	Max int // most bytes of a message; 0: 16 MiB

	in    []byte // fed, and not looked at
	raw   []byte // of the message so far
	total int    // length of the message; 0: not known yet
	given bool   // raw belongs to a message that Next has returned
	err   error
}

// Feed gives the Decoder the next bytes of the stream. Next must have returned all messages
// of the bytes before. p is not kept once Next has done so again.
func (d *Decoder) Feed(p []byte) {
	if d.err != nil {
		d.raw = append(d.raw, p...)
		return
	}
	d.in = p
}

// Rest returns the bytes of the message that is not complete, once Next has returned all
// messages of what was fed; after an error, everything from the message on that caused it.
func (d *Decoder) Rest() []byte {
	if d.given {
		return nil
	}
	return d.raw
}

// Next returns the next message of what was fed; ok is false where that completes none. An
// error is final.
func (d *Decoder) Next() (m Message, ok bool, err error) {
	if d.err != nil {
		return Message{}, false, d.err
	}
	if d.given {
		d.raw, d.given, d.total = d.raw[:0], false, 0
	}
	if !d.fill(preludeSize) {
		return Message{}, false, nil
	}
	if d.total == 0 {
		if err := d.prelude(); err != nil {
			return Message{}, false, d.fail(err)
		}
	}
	if !d.fill(d.total) {
		return Message{}, false, nil
	}
	end := d.total - 4
	if crc32.ChecksumIEEE(d.raw[:end]) != binary.BigEndian.Uint32(d.raw[end:]) {
		return Message{}, false, d.fail(ErrChecksum)
	}
	headers := preludeSize + int(binary.BigEndian.Uint32(d.raw[4:]))
	m = Message{Payload: d.raw[headers:end:end], Raw: d.raw}
	if m.Headers, ok = readHeaders(d.raw[preludeSize:headers]); !ok {
		return Message{}, false, d.fail(ErrHeaders)
	}
	d.given = true
	return m, true, nil
}

// fail ends the stream: what was fed and not looked at belongs to the rest.
func (d *Decoder) fail(err error) error {
	d.raw, d.in, d.err = append(d.raw, d.in...), nil, err
	return err
}

// fill takes bytes until there are n of the message, and reports whether there are.
func (d *Decoder) fill(n int) bool {
	if more := min(n-len(d.raw), len(d.in)); more > 0 {
		d.raw, d.in = append(d.raw, d.in[:more]...), d.in[more:]
	}
	return len(d.raw) >= n
}

// prelude checks the lengths of a message before anything is kept of it.
func (d *Decoder) prelude() error {
	if crc32.ChecksumIEEE(d.raw[:8]) != binary.BigEndian.Uint32(d.raw[8:]) {
		return ErrChecksum
	}
	most := d.Max
	if most <= 0 {
		most = usualMax
	}
	total, headers := binary.BigEndian.Uint32(d.raw), binary.BigEndian.Uint32(d.raw[4:])
	switch {
	case total < leastSize || headers > total-leastSize || headers > maxHeader:
		return ErrLengths
	case uint64(total) > uint64(most):
		return ErrTooLong
	}
	d.total = int(total)
	return nil
}

// readHeaders reads b, which holds headers and nothing else.
func readHeaders(b []byte) (headers []Header, ok bool) {
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 || len(b) < n+2 || len(headers) == MaxHeaders {
			return nil, false
		}
		h := Header{Name: string(b[1 : 1+n]), Type: Type(b[1+n])}
		b = b[n+2:]
		size, fixed := sizes[h.Type]
		switch {
		case fixed:
		case h.Type != Text && h.Type != Bytes, len(b) < 2:
			return nil, false
		default:
			size = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < size {
			return nil, false
		}
		h.Raw, b = b[:size:size], b[size:]
		for i := range headers {
			if headers[i].Name == h.Name {
				return nil, false
			}
		}
		headers = append(headers, h)
	}
	return headers, true
}

// Append appends a message whose headers are strings, given as name, value, name, value. A
// name has at most 255 bytes and a value at most 65,535; the rest is cut off.
func Append(dst []byte, payload []byte, headers ...string) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, preludeSize)...)
	for i := 0; i+1 < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		name, value = name[:min(len(name), 1<<8-1)], value[:min(len(value), 1<<16-1)]
		dst = append(append(dst, byte(len(name))), name...)
		dst = binary.BigEndian.AppendUint16(append(dst, byte(Text)), uint16(len(value)))
		dst = append(dst, value...)
	}
	size := len(dst) - start - preludeSize
	dst = append(dst, payload...)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start+4))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(size))
	binary.BigEndian.PutUint32(dst[start+8:], crc32.ChecksumIEEE(dst[start:start+8]))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}
