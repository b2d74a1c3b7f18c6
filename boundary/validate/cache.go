// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"crypto/sha256"
	"sync"
)

// A Cache keeps compiled schemas by their bytes. The zero Cache is ready for use,
// and safe for concurrent use.
type Cache struct {
	mu   sync.Mutex
	held map[[sha256.Size]byte]*Schema
	size int
}

// The bounds of a Cache.
const (
	maxCached      = 4096
	maxCachedBytes = 16 << 20
)

// Compile is Compile, or what it returned before for the same bytes.
func (c *Cache) Compile(src []byte) *Schema {
	key := sha256.Sum256(src)
	c.mu.Lock()
	s := c.held[key]
	c.mu.Unlock()
	if s != nil {
		return s
	}
	s = Compile(src) // twice at most, for nothing worse
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil || len(c.held) >= maxCached || c.size > maxCachedBytes {
		c.held, c.size = map[[sha256.Size]byte]*Schema{}, 0 // servers that are in use come back at once
	}
	c.held[key] = s
	c.size += len(src)
	return s
}
