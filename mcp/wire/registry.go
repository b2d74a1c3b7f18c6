// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
)

// A Registry knows legacy sessions beyond this process: it makes their ids, and says later what it
// takes to bring one back. Several goroutines may call it.
type Registry interface {
	// Name makes the id of a session whose initialize the server has answered, or is still answering.
	Name(ctx context.Context, o Opening) (id string, err error)
	// Find returns what is kept of the principal's session with an id. The error is ErrNoSession where
	// the session is not to be brought back; any other means that this cannot be known at present.
	Find(ctx context.Context, id, principal string) (Kept, error)
	// Keep stores what has changed of a session.
	Keep(ctx context.Context, id, principal string, s SessionState) error
	// End notes that the client has ended its session, so that it is not brought back.
	End(ctx context.Context, id, principal string) error
}

// ErrNoSession is that of Registry.Find for an id that was not given to the principal, or whose
// session is over.
var ErrNoSession = errors.New("wire: no such session")

// An Opening is what never changes of a session.
type Opening struct {
	Principal string
	Params    []byte // of the client's initialize: JSON
	Version   string // that was negotiated; "": not known yet
}

// A SessionState is what a client changes of a session.
type SessionState struct {
	Level         string   `json:"level,omitempty"`         // of logging/setLevel; "": never set
	Subscriptions []string `json:"subscriptions,omitempty"` // URIs of resources/subscribe
}

// Kept is what is known of a session.
type Kept struct {
	Opening
	SessionState
}
