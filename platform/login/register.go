// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/auth"
)

const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
)

// identify finds out who this program is to the authorization server: by the document or ID that
// the operator names, else by registering.
func (f *flow) identify(ctx context.Context, grant, redirect string) error {
	switch {
	case f.ClientID == "":
		return f.register(ctx, grant, redirect)
	case strings.HasPrefix(f.ClientID, "https://"):
		if _, err := auth.ParseURL(f.ClientID, false); err != nil {
			return failed("the client ID", err)
		}
		if !f.as.takesDocuments {
			return failed("the authorization server takes no client ID metadata documents: give an ID that it knows, or leave --client-id out", nil)
		}
	}
	if !visible(f.ClientID, 2048) {
		return failed("the client ID is not 1 to 2,048 bytes of visible ASCII", nil)
	}
	f.client = client{id: f.ClientID, secret: f.ClientSecret, method: methodNone}
	if f.ClientSecret != "" {
		f.client.method = secretMethod(f.as.methods)
	}
	return nil
}

// secretMethod is how a secret is sent. Without a word of the server it is in the header (RFC 8414).
func secretMethod(methods []string) string {
	if !slices.Contains(methods, methodBasic) && slices.Contains(methods, methodPost) {
		return methodPost
	}
	return methodBasic
}

// register makes the program known to the authorization server (RFC 7591).
func (f *flow) register(ctx context.Context, grant, redirect string) error {
	if f.as.registration == "" {
		return failed("the authorization server registers no clients by itself: register one there and give its ID (--client-id)", nil)
	}
	method := methodNone
	if len(f.as.methods) > 0 && !slices.Contains(f.as.methods, methodNone) {
		method = secretMethod(f.as.methods)
	}
	about := map[string]any{
		"client_name": "Pellucid", "application_type": "native",
		"grant_types": []string{grant, grantRefresh}, "token_endpoint_auth_method": method,
	}
	if redirect != "" {
		about["redirect_uris"], about["response_types"] = []string{redirect}, []string{"code"}
	} else {
		about["redirect_uris"], about["response_types"] = []string{}, []string{}
	}
	if len(f.scopes) > 0 {
		about["scope"] = joined(f.scopes)
	}
	body, err := json.Marshal(about)
	if err != nil {
		return failed("registration", errors.New("it cannot be written"))
	}
	status, d, err := post(ctx, f.http, f.as.registration, "application/json", body, nil)
	switch {
	case err != nil:
		return failed("the authorization server cannot be asked to register this program", err)
	case status/100 != 2 || d == nil:
		return failed("the authorization server does not register this program: the answer is status "+strconv.Itoa(status), nil)
	}
	root := d.Root()
	f.client = client{id: strings.Clone(root.Get("client_id").Text()), secret: strings.Clone(root.Get("client_secret").Text()), method: method}
	if m := root.Get("token_endpoint_auth_method"); m.Kind() == '"' {
		f.client.method = strings.Clone(m.Text())
	}
	known := slices.Contains([]string{methodNone, methodBasic, methodPost}, f.client.method)
	if !visible(f.client.id, 2048) || f.client.secret != "" && !visible(f.client.secret, 4096) || !known {
		return failed("the registration that the authorization server has made is not acceptable", nil)
	}
	return nil
}
