// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// A Connect opens a connection, calls talk with it and closes it.
type Connect func(ctx context.Context, talk func(context.Context, wire.ReadConn) error) error

// CollectWhole is Collect over connections that connect opens and closes. Of a server with
// apps it also lists what a client without that extension is offered.
func CollectWhole(ctx context.Context, opt CollectOptions, connect Connect) (*Surface, error) {
	s, err := collectOver(ctx, &opt, connect)
	if err != nil || opt.Bare || !s.hasApps() {
		return s, err
	}
	opt.withoutApps = true
	plain, err := collectOver(ctx, &opt, connect)
	if err != nil {
		return nil, err
	}
	return plain.offeredMore(s), nil
}

// collectOver lists a surface over a connection of its own. opt.Legacy is how that went.
func collectOver(ctx context.Context, opt *CollectOptions, connect Connect) (s *Surface, err error) {
	for {
		err = connect(ctx, func(ctx context.Context, conn wire.ReadConn) (err error) {
			s, err = Collect(ctx, conn, *opt)
			return err
		})
		var refused *RefusedError
		if opt.Legacy || !errors.As(err, &refused) || refused.Reason != NoAnswer || ctx.Err() != nil || errors.Is(err, wire.ErrUnreachable) || WantsLogin(err) {
			break // else: some servers end when the first thing that they hear is not initialize
		}
		opt.Legacy = true
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// WantsLogin reports whether err is that a server answers without credentials with HTTP status 401.
func WantsLogin(err error) bool {
	status, ok := errors.AsType[wire.StatusError](err)
	return ok && status == http.StatusUnauthorized
}

// WhyUnreachable is the error of Collect or CollectWhole without the names of the layers that
// it came through.
func WhyUnreachable(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, wire.ErrPeerClosed) {
		return "the server ended without an answer"
	}
	if WantsLogin(err) {
		return "it wants a login or a key (HTTP status 401)"
	}
	if _, cause, ok := strings.Cut(err.Error(), wire.ErrUnreachable.Error()+": "); ok {
		return "no connection: " + cause
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Err != nil {
		return refused.Err.Error()
	}
	return err.Error()
}
