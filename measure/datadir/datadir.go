// SPDX-License-Identifier: Apache-2.0

// Package datadir finds the public test data, which are not part of this repository.
package datadir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Env names the folder that holds them.
const Env = "PELLUCID_DATA"

// Find returns the path of a file or folder of the data: in the folder that Env says,
// or else in ../shared/data beside root, the root of the repository. The error, where
// it is not there, says what to do.
func Find(root, name string) (string, error) {
	dir := os.Getenv(Env)
	if dir == "" {
		dir = filepath.Join(root, "..", "shared", "data")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no test data: set %s to the folder that holds %s", Env, name)
	}
	return path, nil
}
