// SPDX-License-Identifier: Apache-2.0

package waittest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failed is a test that remembers what it failed with.
type failed struct {
	testing.TB
	with string
}

func (f *failed) Helper() {}

func (f *failed) Fatalf(format string, args ...any) {
	f.with = fmt.Sprintf(format, args...)
	panic(f)
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		Until(t, "the third time", func() bool { n++; return n == 3 })
		if n != 3 {
			t.Errorf("asked %d times", n)
		}
		began, f := time.Now(), &failed{}
		defer func() {
			if recover() != any(f) || !strings.Contains(f.with, "the moon") || time.Since(began) < patience {
				t.Errorf("%q after %v", f.with, time.Since(began))
			}
		}()
		Until(f, "the moon", func() bool { return false })
	})
}
