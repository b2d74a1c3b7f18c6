// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"os"

	"golang.org/x/sys/windows"
)

// Unread waits until ctx ends, and reports false: this system does not tell whether what is written has a reader.
func Unread(ctx context.Context, _ *os.File) bool {
	<-ctx.Done()
	return false
}

// obeysEscapes asks a console to obey escape sequences, which it prints else.
func obeysEscapes(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	return windows.GetConsoleMode(console, &mode) == nil &&
		windows.SetConsoleMode(console, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
