// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// tokens are what a token endpoint has answered (RFC 6749, section 5.1).
type tokens struct {
	access, refresh string
	life            time.Duration // 0: not told
	scopes          []string      // nil: those that were asked for
}

// client is who this program is to an authorization server.
type client struct {
	id, secret string
	method     string // how it says so at the token endpoint
}

// The methods of RFC 7591, section 2, that this package has.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

// sign adds to a request who the client is.
func (c client) sign(values url.Values) http.Header {
	if c.method == methodBasic {
		pair := url.QueryEscape(c.id) + ":" + url.QueryEscape(c.secret)
		return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(pair))}}
	}
	values.Set("client_id", c.id)
	if c.method == methodPost {
		values.Set("client_secret", c.secret)
	}
	return nil
}

// The refusals of a token endpoint that a caller branches on. Every other code is errRefused.
var (
	errPending  = errors.New("the user has not decided yet")
	errSlowDown = errors.New("asked too often")
	errDenied   = errors.New("the user has refused")
	errExpired  = errors.New("the time to agree is over")
	errGrant    = errors.New("the authorization server no longer accepts the login")
	errRefused  = errors.New("the authorization server refused the request")

	// errUnreached: another attempt may succeed.
	errUnreached = errors.New("the authorization server cannot be asked")
)

// refusals are the error codes of RFC 6749 (section 5.2), RFC 8628 and RFC 8707, with a text for the operator.
var refusals = map[string]error{
	"authorization_pending": errPending,
	"slow_down":             errSlowDown,
	"access_denied":         errDenied,
	"expired_token":         errExpired,
	"invalid_grant":         errGrant,
	"invalid_client":        errors.New("the authorization server does not know this client"),
	"unauthorized_client":   errors.New("the authorization server does not let this client log in this way"),
	"invalid_scope":         errors.New("the authorization server does not give these scopes"),
	"invalid_target":        errors.New("the authorization server gives no token for this server"),
	"server_error":          errors.New("the authorization server has failed"),
	"temporarily_unavailable": errors.New(
		"the authorization server is overloaded"),
}

// refusal is the error for a code from the authorization server, which is not repeated.
func refusal(code string) error {
	if err := refusals[code]; err != nil {
		return err
	}
	return errRefused
}

// ask sends a grant to the token endpoint.
func ask(ctx context.Context, h *http.Client, endpoint string, c client, values url.Values) (*tokens, error) {
	status, d, err := postForm(ctx, h, endpoint, c, values)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnreached, err)
	case d == nil && status/100 == 2:
		return nil, errors.New("the answer is not a JSON object")
	case d == nil:
		return nil, errors.New("the answer is status " + strconv.Itoa(status))
	case status/100 != 2:
		if code := d.Root().Get("error"); code.Kind() == '"' {
			return nil, refusal(code.Text())
		}
		return nil, errors.New("the answer is status " + strconv.Itoa(status))
	}
	return parseTokens(d)
}

func postForm(ctx context.Context, h *http.Client, endpoint string, c client, values url.Values) (int, *strictjson.Doc, error) {
	head := c.sign(values)
	return post(ctx, h, endpoint, "application/x-www-form-urlencoded", []byte(values.Encode()), head)
}

// maxToken bounds a token, in bytes: it has to fit into a header.
const maxToken = 16 << 10

// maxLife bounds what a server says of the life of a token.
const maxLife = 10 * 365 * 24 * time.Hour

// parseTokens reads the answer of a token endpoint.
func parseTokens(d *strictjson.Doc) (*tokens, error) {
	root := d.Root()
	t := &tokens{access: strings.Clone(root.Get("access_token").Text()), refresh: strings.Clone(root.Get("refresh_token").Text())}
	switch {
	case !visible(t.access, maxToken):
		return nil, errors.New("the answer has no acceptable access token")
	case !strings.EqualFold(root.Get("token_type").Text(), "Bearer"):
		return nil, errors.New("the answer has a token that is not a bearer token")
	case t.refresh != "" && !visible(t.refresh, maxToken):
		return nil, errors.New("the answer has a refresh token that is not acceptable")
	}
	if seconds, ok := root.Get("expires_in").Int64(); ok && seconds > 0 {
		t.life = min(time.Duration(min(seconds, int64(maxLife/time.Second)))*time.Second, maxLife)
	}
	if s := root.Get("scope"); s.Kind() == '"' {
		t.scopes = validScopes(strings.Fields(s.Text()))
	}
	return t, nil
}

// visible reports whether s is 1 to most bytes of visible ASCII: it can stand in a header.
func visible(s string, most int) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) <= most
}

// revoke tells the authorization server that a token is no longer used (RFC 7009). Some revoke no
// tokens that resource servers check by themselves; those end soon.
func revoke(ctx context.Context, h *http.Client, endpoint string, c client, tok, kind string) error {
	status, d, err := postForm(ctx, h, endpoint, c, form("token", tok, "token_type_hint", kind))
	switch {
	case err != nil:
		return err
	case status/100 == 2, d != nil && d.Root().Get("error").Text() == "unsupported_token_type":
		return nil
	}
	return errors.New("the answer is status " + strconv.Itoa(status))
}
