// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/app"
)

// logFlags are those of a verb that keeps running.
type logFlags struct {
	LogFormat string     `enum:"text,json" default:"text" help:"Format of the log on standard error: ${enum}."`
	LogLevel  slog.Level `default:"info" help:"Lowest level to log: ${log_levels}."`
}

func (f *logFlags) logger(w io.Writer) *slog.Logger {
	return app.NewLog(w, f.LogFormat == "json", f.LogLevel)
}
