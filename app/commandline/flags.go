// SPDX-License-Identifier: Apache-2.0

package commandline

import (
	"io"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/logs"
)

// LogFlags are those of a verb that keeps running.
type LogFlags struct {
	LogFormat string     `enum:"text,json" default:"text" help:"Format of the log on standard error: ${enum}."`
	LogLevel  slog.Level `default:"info" help:"Lowest level to log: ${log_levels}."`
}

// Logger returns the log that the flags ask for.
func (f *LogFlags) Logger(w io.Writer) *slog.Logger {
	return logs.New(w, f.LogFormat == "json", f.LogLevel)
}

// HostFlags say under which names clients reach a server of ours.
type HostFlags struct {
	AllowHost []string `placeholder:"HOST" help:"Host name or address by which clients reach this server, if not a loopback address; may be repeated."`
}

// CheckHosts is listen.CheckHosts with these hosts.
func (f *HostFlags) CheckHosts(flag, addr string, origins []string, open error) error {
	return listen.CheckHosts(flag, addr, f.AllowHost, origins, open)
}
