// SPDX-License-Identifier: Apache-2.0

//go:build unix

package privacy

import (
	"fmt"
	"os"
)

// Restrict does nothing: the mode with which a file is made does it.
func Restrict(string) error { return nil }

// Exposure says how other users may use a file or directory, and what to do, as the end of a sentence that begins with
// its name. It is empty if they may not.
func Exposure(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return "", err
	}
	mode := 0o600
	if info.IsDir() {
		mode = 0o700
	}
	return fmt.Sprintf("has mode %04o: run chmod %o on it", info.Mode().Perm(), mode), nil
}
