// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// note keeps what a new process will have to be told.
func (h *handshake) note(out *wire.Message) {
	switch out.Method {
	case mcpmsg.Initialize, mcpmsg.SetLevel, mcpmsg.Subscribe, mcpmsg.Unsubscribe:
	case mcpmsg.Initialized:
		h.ready = true
		return
	default:
		return
	}
	if out.Parse() != nil {
		return
	}
	params := bytes.Clone(out.Params.Raw())
	uri := out.Params.Get("uri").Text()
	switch out.Method {
	case mcpmsg.Initialize:
		*h = handshake{id: out.ID, params: params}
	case mcpmsg.SetLevel:
		h.level = params
	case mcpmsg.Subscribe:
		if h.watched == nil {
			h.watched = map[string][]byte{}
		}
		if len(h.watched) < maxWatched {
			h.watched[strings.Clone(uri)] = params
		}
	case mcpmsg.Unsubscribe:
		delete(h.watched, uri)
	}
}

// replay brings a new process to where the old one was. It returns what the
// process has lists of.
func (c *life) replay(past handshake, watched [][]byte) ([]string, error) {
	ctx, stop := context.WithTimeout(c.l.ctx, handshakeWait)
	defer stop()
	ask := func(n int, method string, params []byte) (wire.ID, error) {
		id := wire.StringID("pellucid-" + strconv.Itoa(n))
		return id, c.conn.Write(ctx, wire.NewRequest(id, method, params))
	}
	id, err := ask(0, mcpmsg.Initialize, past.params)
	if err != nil {
		return nil, err
	}
	m, err := c.answer(ctx, id)
	if err != nil {
		return nil, err
	}
	if m.Kind != wire.Response {
		return nil, errors.New("fleet: the server would not be initialized again")
	}
	if version := m.Result.Get("protocolVersion").Text(); version != past.version {
		return nil, errChangedVersion
	}
	wire.AllowBatches(c.conn, wire.HasBatches(past.version))
	var capabilities []string
	for _, kind := range [...]string{"tools", "prompts", "resources"} {
		if m.Result.Get("capabilities").Get(kind).Exists() {
			capabilities = append(capabilities, kind)
		}
	}
	if !past.ready {
		return capabilities, nil
	}
	if err := c.conn.Write(ctx, wire.NewRequest(wire.ID{}, mcpmsg.Initialized, nil)); err != nil {
		return nil, err
	}
	again := slices.Clone(watched)
	methods := slices.Repeat([]string{mcpmsg.Subscribe}, len(watched))
	if past.level != nil {
		again, methods = append(again, past.level), append(methods, mcpmsg.SetLevel)
	}
	for i, params := range again {
		id, err := ask(i+1, methods[i], params)
		if err != nil {
			return nil, err
		}
		if _, err := c.answer(ctx, id); err != nil {
			return nil, err
		}
	}
	return capabilities, nil
}

// answer waits until id is answered. Whatever else a process says before it
// has been greeted goes nowhere.
func (c *life) answer(ctx context.Context, id wire.ID) (*wire.Message, error) {
	for {
		a, err := c.await(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, errors.New("fleet: the server did not answer in time")
		case err != nil:
			return nil, err
		case a.v != nil && a.v.ID == id && !id.IsZero():
			return nil, errors.New("fleet: the server's answer was not acceptable: " + a.v.Reason)
		case a.v != nil:
			continue
		}
		if a.m.Kind == wire.Request {
			if err := c.conn.Write(ctx, refusal(a.m.ID, wire.ID{}, wire.CodeNoMethod, textNoMethod)); err != nil {
				return nil, err
			}
			continue
		}
		if a.m.ID == id && (a.m.Kind == wire.Response || a.m.Kind == wire.ErrorResponse) {
			return a.m, nil
		}
	}
}
