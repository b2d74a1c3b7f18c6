// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// deviceCode is what a device authorization endpoint has answered (RFC 8628, section 3.2).
type deviceCode struct {
	device, user string
	uri          string // that the user opens
	life         time.Duration
	interval     time.Duration
}

const (
	usualInterval = 5 * time.Second
	maxInterval   = time.Minute
	maxDeviceLife = 30 * time.Minute
)

// device logs in by a browser on any device: the user enters a code there.
func (f *flow) device(ctx context.Context) (*Login, error) {
	if f.as.deviceAuthorization == "" {
		return nil, failed("the authorization server knows no login by another device: leave --device out", nil)
	}
	if err := f.identify(ctx, grantDevice, ""); err != nil {
		return nil, err
	}
	values := form("scope", joined(f.scopes), "resource", f.resource)
	status, d, err := postForm(ctx, f.http, f.as.deviceAuthorization, f.client, values)
	switch {
	case err != nil:
		return nil, failed("the authorization server cannot be asked", err)
	case status/100 != 2 || d == nil:
		cause := errRefused
		if d != nil {
			cause = refusal(d.Root().Get("error").Text())
		}
		return nil, failed("no login by another device", cause)
	}
	code, err := parseDeviceCode(d, f.local)
	if err != nil {
		return nil, failed("no login by another device", err)
	}
	f.Show(Prompt{URL: code.uri, Code: code.user, Issuer: f.as.issuer, Scopes: f.scopes})
	return f.poll(ctx, code)
}

// parseDeviceCode reads the answer of a device authorization endpoint. The page with the code in it
// is not used: a user who enters the code has looked at it.
func parseDeviceCode(d *strictjson.Doc, local bool) (*deviceCode, error) {
	root := d.Root()
	c := &deviceCode{device: strings.Clone(root.Get("device_code").Text()), user: strings.Clone(root.Get("user_code").Text()),
		uri: strings.Clone(root.Get("verification_uri").Text()), life: maxDeviceLife, interval: usualInterval}
	if !visible(c.device, maxToken) || !isUserCode(c.user) {
		return nil, errors.New("the answer has no acceptable code")
	}
	u, err := endpointURL(c.uri, local)
	if err != nil {
		return nil, errors.New("the page at which to enter the code is not acceptable")
	}
	c.uri = u.String()
	if n, ok := root.Get("expires_in").Int64(); ok && n > 0 {
		c.life = min(time.Duration(min(n, int64(maxDeviceLife/time.Second)))*time.Second, maxDeviceLife)
	}
	if n, ok := root.Get("interval").Int64(); ok && n > 0 {
		c.interval = min(time.Duration(min(n, int64(maxInterval/time.Second)))*time.Second, maxInterval)
	}
	return c, nil
}

// isUserCode reports whether s is 4 to 32 letters, digits and hyphens: it is shown in a terminal.
func isUserCode(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return len(s) >= 4 && len(s) <= 32
}

// poll asks for the tokens until the user has decided or the time is over.
func (f *flow) poll(ctx context.Context, c *deviceCode) (*Login, error) {
	ctx, stop := context.WithTimeoutCause(ctx, min(c.life, max(f.Wait, defaultWait)), errExpired)
	defer stop()
	for {
		if backoff.Sleep(ctx, c.interval) != nil {
			if errors.Is(context.Cause(ctx), errExpired) {
				return nil, failed("no login by another device", errExpired)
			}
			return nil, failed("it was interrupted", nil)
		}
		t, err := ask(ctx, f.http, f.as.token, f.client, form("grant_type", grantDevice, "device_code", c.device, "resource", f.resource))
		switch {
		case err == nil:
			return f.login(t), nil
		case errors.Is(err, errPending):
		case errors.Is(err, errSlowDown), errors.Is(err, errUnreached): // RFC 8628, section 3.5
			c.interval = min(c.interval+usualInterval, maxInterval)
		case errors.Is(err, errDenied):
			return nil, errCancelled
		default:
			return nil, failed("no login by another device", err)
		}
	}
}
