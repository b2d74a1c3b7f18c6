// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

func TestReadOnly(t *testing.T) {
	for line, want := range map[string]bool{
		"00400000-0173e000 r-xp 00000000 fe:00 10666056                           /bin/p q": true,
		"0173e000-02ca8000 r--p 0133e000 fe:00 10666056                           /bin/p q": true,
		"02ca8000-02e75000 rw-p 028a8000 fe:00 10666056                           /bin/p q": false,
		"00400000-0173e000 r-xs 00000000 fe:00 10666056                           /bin/p q": false,
		"00400000-0173e000 r-xp 00000000 fe:00 10666056                           /bin/p":   false,
		"02e75000-04ed5000 rw-p 00000000 00:00 0 ":                                          false,
		"0173e000-00400000 r-xp 00000000 fe:00 1 /bin/p q":                                  false,
		"zz-yy r-xp 00000000 fe:00 1 /bin/p q":                                              false,
		"":                                                                                  false,
	} {
		from, to, ok := readOnly(line, "/bin/p q")
		if ok != want || ok && (from >= to || from < 0x400000 || to > 0x2ca8000) {
			t.Errorf("%q: %#x %#x %v", line, from, to, ok)
		}
	}
}

// TestDropStartup: less of the program's file is resident afterwards, and it still runs.
func TestDropStartup(t *testing.T) {
	resident := func() int {
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Skip(err)
		}
		n, err := strconv.Atoi(string(regexp.MustCompile(`RssFile:\s*(\d+)`).FindSubmatch(b)[1]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := resident()
	DropStartup()
	if after := resident(); after > before*4/5 {
		t.Errorf("%d KiB of files resident, before %d", after, before)
	}
}
