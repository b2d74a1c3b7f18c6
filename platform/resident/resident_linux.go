// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// DropStartup gives back the pages of the program's own file that only its start has
// needed: initialisers of all packages that are linked in, most of which one verb never
// uses, touch two thirds of it. What goes on running is mapped again by itself, from the
// system's cache. Where it cannot be done, it is left.
func DropStartup() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if from, to, ok := readOnly(lines.Text(), exe); ok {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}

// readOnly is the range of a line of /proc/self/maps, if that maps file and can only be
// read or run. Of what can be written no page may be dropped: it differs from the file.
func readOnly(line, file string) (from, to uintptr, ok bool) {
	fields := strings.SplitN(line, " ", 6) // range, rights, offset, device, inode, file
	if len(fields) != 6 || strings.TrimLeft(fields[5], " ") != file || fields[1] != "r-xp" && fields[1] != "r--p" {
		return 0, 0, false
	}
	a, b, _ := strings.Cut(fields[0], "-")
	first, err1 := strconv.ParseUint(a, 16, 64)
	last, err2 := strconv.ParseUint(b, 16, 64)
	return uintptr(first), uintptr(last), err1 == nil && err2 == nil && first < last
}
