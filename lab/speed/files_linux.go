// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"fmt"
	"syscall"
)

// raiseFiles raises the number of files that this process and its children may have open
// to what is wanted, as far as the system allows, and returns what is allowed then.
func raiseFiles(want int) (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("speed: limit of open files: %w", err)
	}
	if l.Cur >= uint64(want) {
		return want, nil
	}
	for _, hard := range []uint64{max(l.Max, uint64(want)), l.Max} {
		more := syscall.Rlimit{Cur: min(hard, uint64(want)), Max: hard}
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &more) == nil {
			return int(more.Cur), nil
		}
	}
	return int(l.Cur), nil
}
