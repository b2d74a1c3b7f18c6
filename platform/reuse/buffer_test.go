// SPDX-License-Identifier: Apache-2.0

package reuse

import "testing"

// TestBufferClasses: every size has a class with room for it, no larger than needed
// by a quarter, and a buffer goes back to the class that it came from.
func TestBufferClasses(t *testing.T) {
	last, lastRoom := 0, minBuffer
	for n := minBuffer; n <= MaxPooled; n++ {
		class, room := classOf(n)
		if room < n || n > minBuffer && room > n+n/4 {
			t.Fatalf("%d bytes get %d", n, room)
		}
		if class != last && class != last+1 || (class == last) != (room == lastRoom) {
			t.Fatalf("%d bytes are of class %d with room for %d, those before of %d with %d", n, class, room, last, lastRoom)
		}
		if again, same := classOf(room); again != class || same != room {
			t.Fatalf("a buffer of %d bytes, of class %d, goes back to class %d", room, class, again)
		}
		last, lastRoom = class, room
	}
	if last != len(buffers)-1 || lastRoom != MaxPooled {
		t.Errorf("the last class is %d with %d bytes", last, lastRoom)
	}
	for _, n := range []int{0, 1, minBuffer, minBuffer + 1, 100_000, MaxPooled, MaxPooled + 1} {
		b := NewBuffer(n)
		if len(b.Bytes()) != 0 || cap(b.Bytes()) < n {
			t.Errorf("NewBuffer(%d) has %d of %d bytes", n, len(b.Bytes()), cap(b.Bytes()))
		}
		b.Release()
	}
	b := new(Buffer)
	b.Set(make([]byte, 0, minBuffer+1)) // of no class
	b.Release()
	b = nil
	b.Release()
}
