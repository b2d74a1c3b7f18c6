// SPDX-License-Identifier: Apache-2.0

//go:build unix

package speed

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// readUsage tells what this process has used.
func readUsage() usage {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return usage{}
	}
	u := usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
	// The peak of getrusage is not this program's alone: it begins with that of
	// whoever started it. Elsewhere than on Linux there is no resident size to ask for.
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := bytes.Fields(b); len(f) > 1 {
			pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
			u.RSS = pages * int64(os.Getpagesize())
		}
	}
	return u
}
