// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// sharedTasks says whose the tasks of a shared server are: of the principal whose call was answered with it
// last. The server does not know of principals, and its ids may be easy to guess.
type sharedTasks struct {
	of     map[[sha256.Size]byte]string // by the digest of the id
	oldest [][sha256.Size]byte
}

// maxSharedTasks is how many are remembered. No principal gets at one that is forgotten.
const maxSharedTasks = 20_000

func (t *sharedTasks) add(who string, id strictjson.Value) {
	if id.Kind() != '"' {
		return
	}
	d := sha256.Sum256([]byte(id.Text()))
	if _, known := t.of[d]; known {
		t.of[d] = who // a process that was started again may count from one
		return
	}
	if t.of == nil {
		t.of = map[[sha256.Size]byte]string{}
	}
	if len(t.oldest) >= maxSharedTasks {
		delete(t.of, t.oldest[0])
		t.oldest = t.oldest[1:]
	}
	t.of[d] = who
	t.oldest = append(t.oldest, d)
}

func (t *sharedTasks) isOf(who string, id strictjson.Value) bool {
	if id.Kind() != '"' {
		return false
	}
	of, known := t.of[sha256.Sum256([]byte(id.Text()))]
	return known && of == who
}
