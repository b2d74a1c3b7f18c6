package main

import (
	"log/slog"
	"net/http"
	"time"
)

// newServer returns a server whose clients cannot make it wait or remember: every
// listener of ours is one. There is no bound to the time of an answer, which may be
// a stream.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
