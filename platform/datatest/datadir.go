// SPDX-License-Identifier: Apache-2.0

// Package datatest finds and reads the public test data, which are not part of this repository.
package datatest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Env is the environment variable that names the folder of the test data.
const Env = "PELLUCID_DATA"

// Find returns the path of a file or folder of the test data: in the folder that Env names,
// or else in ../shared/data beside root, the root of the repository. The error says what to
// do when the data is missing.
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
