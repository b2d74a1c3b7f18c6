// SPDX-License-Identifier: Apache-2.0

package classify

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// A Digest is a SHA-256.
type Digest [sha256.Size]byte

// key is under what a score is remembered: the same text, judged by the same.
func (m *Member) key(text string) Digest {
	h := sha256.New()
	for _, s := range []string{m.o.Name, m.o.Classifier.Version()} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	h.Write([]byte(text))
	return Digest(h.Sum(nil))
}

// Recent is a Cache in memory of the scores that were used last.
type Recent struct {
	mu    sync.Mutex
	most  int
	order *list.List // of *entry, the newest first
	at    map[Digest]*list.Element
}

type entry struct {
	key   Digest
	score Score
}

// NewRecent returns a Recent of at most so many scores; 0 stands for 16,384, about
// 3 MiB.
func NewRecent(most int) *Recent {
	if most <= 0 {
		most = 16_384
	}
	return &Recent{most: most, order: list.New(), at: map[Digest]*list.Element{}}
}

// Get implements Cache.
func (c *Recent) Get(key Digest) (Score, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.at[key]
	if e == nil {
		return Score{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry).score, true
}

// Put implements Cache.
func (c *Recent) Put(key Digest, s Score) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.at[key]; e != nil {
		e.Value.(*entry).score = s
		c.order.MoveToFront(e)
		return
	}
	c.at[key] = c.order.PushFront(&entry{key, s})
	if c.order.Len() > c.most {
		last := c.order.Back()
		delete(c.at, last.Value.(*entry).key)
		c.order.Remove(last)
	}
}
