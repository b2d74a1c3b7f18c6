// SPDX-License-Identifier: Apache-2.0

package awsstream

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
)

// documented is the message "payload_one_str_header" of the vectors that botocore and Amazon's
// other SDKs read.
func documented(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString("0000003d0000002007fd83960c636f6e74656e742d74797065070010" +
		"6170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mended is a message whose checksums are right, whatever else is not.
func mended(b []byte) []byte {
	b = slices.Clone(b)
	binary.BigEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	binary.BigEndian.PutUint32(b[len(b)-4:], crc32.ChecksumIEEE(b[:len(b)-4]))
	return b
}

// rawHeaders is a message whose headers are b.
func rawHeaders(b string) []byte {
	m := make([]byte, preludeSize, preludeSize+len(b)+4)
	m = append(append(m, b...), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(m, uint32(len(m)))
	binary.BigEndian.PutUint32(m[4:], uint32(len(b)))
	return mended(m)
}

// all reads stream in pieces of n bytes.
func all(d *Decoder, stream []byte, n int) (got []Message, err error) {
	for len(stream) > 0 {
		piece := bytes.Clone(stream[:min(n, len(stream))])
		stream = stream[len(piece):]
		d.Feed(piece)
		for {
			m, ok, bad := d.Next()
			if bad != nil {
				err = bad
			}
			if !ok || bad != nil {
				break
			}
			m.Payload, m.Raw = bytes.Clone(m.Payload), bytes.Clone(m.Raw)
			got = append(got, m)
		}
		clear(piece) // it is not kept
	}
	return got, err
}

func TestDocumented(t *testing.T) {
	b := documented(t)
	if own := Append(nil, []byte("{'foo':'bar'}"), "content-type", "application/json"); !bytes.Equal(own, b) {
		t.Errorf("written as %x", own)
	}
	for _, n := range []int{1, 7, len(b), 3 * len(b)} {
		var d Decoder
		got, err := all(&d, slices.Concat(b, b, b[:20]), n)
		if err != nil || len(got) != 2 {
			t.Fatalf("in pieces of %d: %d messages, %v", n, len(got), err)
		}
		for _, m := range got {
			if string(m.Payload) != "{'foo':'bar'}" || m.Text("content-type") != "application/json" || !bytes.Equal(m.Raw, b) {
				t.Errorf("%+v", m)
			}
		}
		if !bytes.Equal(d.Rest(), b[:20]) {
			t.Errorf("rest %x", d.Rest())
		}
	}
}

func TestHeaderTypes(t *testing.T) {
	h := "\x01a\x00" + "\x01b\x01" + "\x01c\x02x" + "\x01d\x03xx" + "\x01e\x04xxxx" + "\x01f\x05xxxxxxxx" + "\x01g\x06\x00\x02yy" + "\x01h\x07\x00\x00" +
		"\x01i\x08xxxxxxxx" + "\x01j\x09xxxxxxxxxxxxxxxx"
	got, err := all(&Decoder{}, rawHeaders(h), 5)
	if err != nil || len(got) != 1 || len(got[0].Headers) != 10 {
		t.Fatalf("%v, %v", got, err)
	}
	for _, name := range []string{"a", "g", "h", "none"} {
		if v := got[0].Text(name); v != "" {
			t.Errorf("%s is %q", name, v)
		}
	}
}

// TestHostile: what cannot be read ends the stream at once, and takes no memory.
func TestHostile(t *testing.T) {
	good := Append(nil, []byte("{}"), ":event-type", "x")
	flipped := func(at int) []byte {
		b := slices.Clone(good)
		b[at] ^= 1
		return b
	}
	lengths := func(total, headers uint32) []byte {
		b := slices.Clone(good)
		binary.BigEndian.PutUint32(b, total)
		binary.BigEndian.PutUint32(b[4:], headers)
		return mended(b)
	}
	many := ""
	for i := range MaxHeaders + 1 {
		many += string([]byte{2, 'a' + byte(i%26), 'a' + byte(i/26), 0})
	}
	for _, tt := range []struct {
		name string
		in   []byte
		want error
	}{
		{"length of 4 GiB", lengths(1<<32-1, 0), ErrTooLong},
		{"length of 4 GiB and headers of 4 GiB", lengths(1<<32-1, 1<<32-17), ErrLengths},
		{"longer than Max", lengths(1<<20+1, 0), ErrTooLong},
		{"no room for the checksums", lengths(15, 0), ErrLengths},
		{"length of 0", lengths(0, 0), ErrLengths},
		{"headers longer than the message", lengths(uint32(len(good)), uint32(len(good)-15)), ErrLengths},
		{"more than 128 KiB of headers", lengths(1<<20, 128<<10+1), ErrLengths},
		{"checksum of the lengths", flipped(9), ErrChecksum},
		{"checksum of the message", flipped(len(good) - 1), ErrChecksum},
		{"a bit of the payload", flipped(len(good) - 5), ErrChecksum},
		{"too many headers", rawHeaders(many), ErrHeaders},
		{"a name of no bytes", rawHeaders("\x00\x00"), ErrHeaders},
		{"a name that ends outside", rawHeaders("\x05ab"), ErrHeaders},
		{"no type", rawHeaders("\x01a"), ErrHeaders},
		{"an unknown type", rawHeaders("\x01a\x0a"), ErrHeaders},
		{"half a length", rawHeaders("\x01a\x07\x00"), ErrHeaders},
		{"a value that ends outside", rawHeaders("\x01a\x07\x00\x05abcd"), ErrHeaders},
		{"a number that ends outside", rawHeaders("\x01a\x05abc"), ErrHeaders},
		{"a header twice", rawHeaders("\x01a\x00\x01a\x01"), ErrHeaders},
	} {
		for _, n := range []int{1, len(tt.in) + len(good)} {
			d := Decoder{Max: 1 << 20}
			got, err := all(&d, slices.Concat(good, tt.in, good), n)
			if len(got) != 1 || !errors.Is(err, tt.want) {
				t.Errorf("%s, in pieces of %d: %d messages, %v; want %v", tt.name, n, len(got), err, tt.want)
			}
			if !bytes.Equal(d.Rest(), slices.Concat(tt.in, good)) {
				t.Errorf("%s, in pieces of %d: the rest is %x", tt.name, n, d.Rest())
			}
		}
	}
}

func TestNoMemoryAhead(t *testing.T) {
	d := Decoder{Max: 1 << 30}
	b := slices.Clone(documented(t)[:preludeSize])
	binary.BigEndian.PutUint32(b, 1<<30)
	binary.BigEndian.PutUint32(b[4:], 0)
	binary.BigEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	d.Feed(b)
	if _, ok, err := d.Next(); ok || err != nil {
		t.Fatal(ok, err)
	}
	if cap(d.raw) > 1<<10 {
		t.Errorf("%d bytes for %d", cap(d.raw), len(b))
	}
}

func TestAppendCuts(t *testing.T) {
	got, err := all(&Decoder{}, Append(nil, nil, strings.Repeat("n", 300), "v", ":b", strings.Repeat("v", 1<<16)), 1<<20)
	if err != nil || len(got) != 1 || len(got[0].Headers) != 2 || len(got[0].Headers[0].Name) != 255 || len(got[0].Text(":b")) != 1<<16-1 {
		t.Errorf("%d messages, %v", len(got), err)
	}
}

// FuzzDecoder: however a stream is cut into pieces, the same messages come out, and their
// bytes and the rest are the stream.
func FuzzDecoder(f *testing.F) {
	f.Add(documented(f), 3)
	f.Add(Append(Append(nil, []byte("{}"), ":event-type", "x"), nil), 1)
	f.Add(rawHeaders("\x01a\x00\x01a\x01"), 4)
	f.Add(rawHeaders("\x01g\x06\x00\x02yy"), 400)
	f.Fuzz(func(t *testing.T, stream []byte, n int) {
		n = max(1, min(n, len(stream)))
		one, other := Decoder{Max: 1 << 16}, Decoder{Max: 1 << 16}
		got, bad := all(&one, stream, n)
		want, worse := all(&other, stream, len(stream)+1)
		if bad != worse || len(got) != len(want) || !bytes.Equal(one.Rest(), other.Rest()) {
			t.Fatalf("%d messages, %v, in pieces of %d; %d, %v at once", len(got), bad, n, len(want), worse)
		}
		var back []byte
		for i, m := range got {
			if !bytes.Equal(m.Raw, want[i].Raw) || !bytes.Equal(m.Payload, want[i].Payload) {
				t.Fatalf("message %d differs", i)
			}
			back = append(back, m.Raw...)
		}
		if !bytes.Equal(append(back, one.Rest()...), stream) {
			t.Fatal("the stream is not the messages and the rest")
		}
	})
}
