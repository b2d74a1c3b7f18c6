// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/boundary/protect"
)

// ProtectOptions has clients start this program, and keeps the records of what their files
// were in the state directory.
func ProtectOptions(skip []string, dangerouslyForce bool) (protect.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return protect.Options{}, fmt.Errorf("protect: find this program: %w", err)
	}
	dir, err := Open()
	if err != nil {
		return protect.Options{}, err
	}
	return protect.Options{Binary: self, Records: filepath.Join(dir.Path(), "protect"), Skip: skip, DangerouslyForce: dangerouslyForce}, nil
}
