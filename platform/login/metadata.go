// SPDX-License-Identifier: Apache-2.0

package login

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	// requestWait bounds one request, its answer included.
	requestWait = 15 * time.Second
	// maxAnswer bounds an answer that is no metadata, in bytes.
	maxAnswer = 256 << 10
	// resourcePath is where protected resource metadata lie (RFC 9728, section 3).
	resourcePath = "/.well-known/oauth-protected-resource"
)

// hello is a request that a server of either era answers with 401 where it wants a login.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"pellucid","version":"1"}}}`

// probe asks the server as a client without a token does, and returns its challenge. A server that
// does not challenge may still have metadata.
func (f *flow) probe(ctx context.Context) (c challenge, err error) {
	reached := false
	for _, method := range []string{http.MethodPost, http.MethodGet} { // a server of HTTP+SSE takes GET
		ctx, stop := context.WithTimeout(ctx, requestWait)
		defer stop()
		req, err := http.NewRequestWithContext(ctx, method, f.server.String(), nil)
		if err != nil {
			return c, failed("the server's URL cannot be asked", nil)
		}
		for name, values := range f.Header {
			req.Header[name] = values
		}
		req.Header.Set("Accept", "text/event-stream")
		if method == http.MethodPost {
			req.Header.Set("Accept", "application/json, text/event-stream")
			req.Header.Set("Content-Type", "application/json")
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(hello)), int64(len(hello))
		}
		resp, err := f.own.Do(req)
		if err != nil {
			if method == http.MethodPost {
				return c, failed(auth.RequestErrorOf(ctx, "the server", err).Error(), nil)
			}
			break
		}
		resp.Body.Close() // a stream may have no end
		reached = true
		if resp.StatusCode == http.StatusUnauthorized {
			return parseChallenge(resp.Header.Values("WWW-Authenticate")), nil
		}
	}
	if !reached {
		return c, failed("the server cannot be asked", nil)
	}
	return c, nil
}

// resourceMetadata are what is used of RFC 9728.
type resourceMetadata struct {
	resource string
	issuers  []string
	scopes   []string
}

// errNoLogin is the error where the server names no authorization server.
var errNoLogin = errors.New("login: the server names no OAuth login: if it takes a key, give it by pellucid wrap --bearer env:NAME")

// findResource finds the metadata of the server: where the challenge says, else at the two places
// that are known.
func (f *flow) findResource(ctx context.Context, c challenge) (*resourceMetadata, error) {
	bare := *f.server
	bare.RawQuery, bare.ForceQuery = "", false
	root := url.URL{Scheme: bare.Scheme, Host: bare.Host}
	places := []string{auth.InsertWellKnown(&bare, resourcePath), auth.InsertWellKnown(&root, resourcePath)}
	if c.metadata != "" {
		if _, err := endpointURL(c.metadata, f.local); err != nil {
			return nil, failed("the server names metadata at an address that is not acceptable", err)
		}
		places = []string{c.metadata}
	}
	var unfit error
	for _, place := range slices.Compact(places) {
		doc, err := f.document(ctx, place)
		if err != nil {
			if c.metadata != "" {
				return nil, failed("the metadata of the server", err)
			}
			continue
		}
		meta, err := parseResource(doc, f.server, place, f.local)
		if err == nil {
			return meta, nil
		}
		unfit = failed("the metadata of the server", err)
	}
	if unfit != nil {
		return nil, unfit
	}
	return f.oldServer(ctx)
}

// oldServer is what a server of MCP 2025-03-26 means: it is its own authorization server, with
// metadata at its origin.
func (f *flow) oldServer(ctx context.Context) (*resourceMetadata, error) {
	origin := f.server.Scheme + "://" + f.server.Host
	if _, err := f.document(ctx, origin+"/.well-known/oauth-authorization-server"); err != nil {
		return nil, errNoLogin
	}
	bare := *f.server
	bare.RawQuery, bare.ForceQuery = "", false
	return &resourceMetadata{resource: bare.String(), issuers: []string{origin}}, nil
}

// document fetches metadata.
func (f *flow) document(ctx context.Context, place string) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, requestWait)
	defer stop()
	client := f.http
	if u, err := url.Parse(place); err == nil && hostPort(u) == hostPort(f.server) {
		client = f.own
	}
	return auth.Fetch(ctx, client, place)
}

// parseResource reads protected resource metadata from place. They must be those of the server: name
// the URL by which it is called, or a part of it whose own place this is. So whoever has a path on
// a host cannot ask for a token of the whole host.
func parseResource(doc []byte, server *url.URL, place string, local bool) (*resourceMetadata, error) {
	var d strictjson.Doc
	if d.Reset(doc, metadataLimits) != nil || d.Root().Kind() != '{' {
		return nil, errors.New("they are not a JSON object")
	}
	root := d.Root()
	m := &resourceMetadata{resource: strings.Clone(root.Get("resource").Text())}
	if !isResource(m.resource, server, place) {
		return nil, errors.New("they are those of another resource")
	}
	for _, s := range textList(root.Get("authorization_servers"), maxServers) {
		if _, err := auth.ParseURL(s, local); err == nil {
			m.issuers = append(m.issuers, s)
		}
	}
	if len(m.issuers) == 0 {
		return nil, errors.New("they name no acceptable authorization server")
	}
	m.scopes = validScopes(textList(root.Get("scopes_supported"), maxScopes))
	return m, nil
}

// maxServers bounds the authorization servers of a resource.
const maxServers = 20

var metadataLimits = strictjson.Limits{Bytes: 512 << 10, Depth: 16}

// textList are the strings of an array, at most that many.
func textList(v strictjson.Value, most int) (out []string) {
	if v.Kind() != '[' {
		return nil
	}
	for e := range v.Elements() {
		if e.Kind() == '"' && len(out) < most {
			out = append(out, strings.Clone(e.Text()))
		}
	}
	return out
}

// isResource reports whether resource is the server, or contains it and has its metadata at place.
func isResource(resource string, server *url.URL, place string) bool {
	r, err := url.Parse(resource)
	if err != nil || len(resource) > 2048 || r.User != nil || strings.Contains(resource, "#") ||
		!strings.EqualFold(r.Scheme, server.Scheme) || hostPort(r) != hostPort(server) {
		return false
	}
	own, path := strings.TrimSuffix(server.EscapedPath(), "/"), strings.TrimSuffix(r.EscapedPath(), "/")
	if path == own {
		return r.RawQuery == "" || r.RawQuery == server.RawQuery
	}
	if r.RawQuery != "" || !strings.HasPrefix(own, path+"/") {
		return false
	}
	p, err := url.Parse(place)
	return err == nil && hostPort(p) == hostPort(r) && strings.EqualFold(p.Scheme, r.Scheme) && p.RawQuery == "" &&
		strings.TrimSuffix(p.EscapedPath(), "/") == resourcePath+path
}

// hostPort is the host of a URL in lower case, with its port.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Hostname()) + " " + port
}

// authServer are the metadata of an authorization server (RFC 8414).
type authServer struct {
	issuer                             string
	authorization, token, registration string
	revocation, deviceAuthorization    string // "": it has none
	sendsIssuer                        bool   // RFC 9207
	takesDocuments                     bool   // client ID metadata documents
	proof                              bool   // PKCE with S256
	methods                            []string
	scopes                             []string
}

// findServer finds the metadata of the authorization server that the operator has named, else of
// the first one.
func (f *flow) findServer(ctx context.Context, meta *resourceMetadata) (as *authServer, err error) {
	issuer := meta.issuers[0]
	if f.Issuer != "" {
		if !slices.ContainsFunc(meta.issuers, func(s string) bool { return auth.IssuerKey(s) == auth.IssuerKey(f.Issuer) }) {
			return nil, failed("the server does not name that authorization server", nil)
		}
		issuer = f.Issuer
	}
	ctx, stop := context.WithTimeout(ctx, 2*requestWait)
	defer stop()
	err = auth.FindMetadata(ctx, f.http, issuer, f.local, func(doc []byte) error {
		as, err = parseServer(doc, issuer, f.local)
		return err
	})
	if err != nil {
		return nil, failed("the metadata of the authorization server", err)
	}
	return as, nil
}

// parseServer reads the metadata of an authorization server. They must be the issuer's own, or one
// issuer could speak for another (RFC 8414, section 3.3).
func parseServer(doc []byte, issuer string, local bool) (*authServer, error) {
	var d strictjson.Doc
	if d.Reset(doc, metadataLimits) != nil || d.Root().Kind() != '{' {
		return nil, errors.New("they are not a JSON object")
	}
	root := d.Root()
	if auth.IssuerKey(root.Get("issuer").Text()) != auth.IssuerKey(issuer) {
		return nil, errors.New("they are those of another issuer")
	}
	as := &authServer{issuer: issuer}
	for _, e := range []struct {
		to   *string
		name string
	}{
		{&as.authorization, "authorization_endpoint"}, {&as.token, "token_endpoint"}, {&as.registration, "registration_endpoint"},
		{&as.revocation, "revocation_endpoint"}, {&as.deviceAuthorization, "device_authorization_endpoint"},
	} {
		v := root.Get(e.name)
		if !v.Exists() {
			continue
		}
		uri := strings.Clone(v.Text())
		if _, err := endpointURL(uri, local); err != nil {
			return nil, errors.New("an endpoint in them is not acceptable: " + e.name + ": " + err.Error())
		}
		*e.to = uri
	}
	if as.token == "" {
		return nil, errors.New("they name no token endpoint")
	}
	as.sendsIssuer, _ = root.Get("authorization_response_iss_parameter_supported").Bool()
	as.takesDocuments, _ = root.Get("client_id_metadata_document_supported").Bool()
	as.proof = slices.Contains(textList(root.Get("code_challenge_methods_supported"), 20), "S256")
	as.methods = textList(root.Get("token_endpoint_auth_methods_supported"), 20)
	as.scopes = validScopes(textList(root.Get("scopes_supported"), maxScopes))
	return as, nil
}

// endpointURL parses the URL of an endpoint, which may have a query (RFC 6749, section 3.1).
func endpointURL(s string, local bool) (*url.URL, error) {
	bare, query, _ := strings.Cut(s, "?")
	if len(s) > 2048 || strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '#' }) {
		return nil, errors.New("not a URL")
	}
	if _, err := auth.ParseURL(bare, local); err != nil {
		return nil, err
	}
	return url.Parse(s)
}

// post sends a form to an endpoint and returns the status and the JSON object of the answer.
func post(ctx context.Context, client *http.Client, to string, contentType string, body []byte, more http.Header) (int, *strictjson.Doc, error) {
	ctx, stop := context.WithTimeout(ctx, requestWait)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("its address is not a URL")
	}
	for name, values := range more {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, auth.RequestError(ctx, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, auth.RequestError(ctx, err)
	case len(answer) > maxAnswer:
		return 0, nil, errors.New("its answer is too long")
	}
	d := new(strictjson.Doc)
	if d.Reset(answer, strictjson.Limits{Bytes: maxAnswer, Depth: 16}) != nil || d.Root().Kind() != '{' {
		return resp.StatusCode, nil, nil // revocation answers with nothing
	}
	return resp.StatusCode, d, nil
}
