// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package terminal

import (
	"context"
	"os"
)

// Unread waits until ctx ends, and reports false: this system does not tell whether what is written has a reader.
func Unread(ctx context.Context, _ *os.File) bool {
	<-ctx.Done()
	return false
}
