// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
)

// newLog returns a log that writes lines to w.
func newLog(w io.Writer, json bool, level slog.Level) *slog.Logger {
	opt := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}
