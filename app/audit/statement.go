// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"io/fs"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// maxGuardStatement bounds the statement of the guard in a case, in bytes.
const maxGuardStatement = 64 << 20

// GuardStatement reads what the guard has written about a decision on this machine; nil where there is
// nothing.
func GuardStatement(id ledger.ID) ([]byte, error) {
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	if !dir.Has("guard") { // Sub would make it
		return nil, nil
	}
	sub, err := dir.Sub("guard")
	if err != nil {
		return nil, err
	}
	b, err := sub.Read(id.String()+".json", maxGuardStatement)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}
