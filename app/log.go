// SPDX-License-Identifier: Apache-2.0

package app

import (
	"io"
	"log/slog"
)

// NewLog returns a log that writes lines to w.
func NewLog(w io.Writer, json bool, level slog.Level) *slog.Logger {
	opt := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}
