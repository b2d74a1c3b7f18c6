// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/syserror"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxDocument is the length of the longest metadata or JWK Set, in bytes.
const maxDocument = 512 << 10

// A source is where the keys of an issuer come from. All its errors are constant
// text: what a stranger's server says is not repeated.
type source struct {
	client   *http.Client
	issuer   string
	jwks     string // "": the metadata names it
	loopback bool   // http will do there
}

func (s *source) load(ctx context.Context) ([]verifyKey, error) {
	uri := s.jwks
	if uri == "" {
		var err error
		if uri, err = s.discover(ctx); err != nil {
			return nil, err
		}
	}
	doc, err := Fetch(ctx, s.client, uri)
	if err != nil {
		return nil, err
	}
	return parseKeys(doc)
}

// discover finds the URL of the keys in the issuer's metadata.
func (s *source) discover(ctx context.Context) (uri string, err error) {
	err = FindMetadata(ctx, s.client, s.issuer, s.loopback, func(doc []byte) error {
		uri, err = s.jwksURI(doc)
		return err
	})
	return uri, err
}

// IssuerKey returns the identifier of an issuer in one spelling: with an empty path and with the path "/" it is
// the same URL (RFC 3986 6.2.3), and many issuers use both.
func IssuerKey(issuer string) string {
	bare, slash := strings.CutSuffix(issuer, "/")
	if _, host, ok := strings.Cut(bare, "://"); slash && ok && host != "" && !strings.ContainsAny(host, "/?#") {
		return bare
	}
	return issuer
}

// FindMetadata fetches the metadata of the authorization server issuer: RFC 8414 first, then OpenID
// Connect's in both places where it is found in the wild. The first document that take accepts counts;
// take must check that it is the issuer's own. loopback allows http on this machine.
// All errors but those of take are constant text.
func FindMetadata(ctx context.Context, client *http.Client, issuer string, loopback bool, take func(doc []byte) error) error {
	u, err := ParseURL(issuer, loopback)
	if err != nil {
		return err
	}
	const oidc = "/.well-known/openid-configuration"
	places := []string{
		InsertWellKnown(u, "/.well-known/oauth-authorization-server"),
		InsertWellKnown(u, oidc),
		strings.TrimSuffix(issuer, "/") + oidc,
	}
	var unfit, missing error // a document that is there says more than one that is not
	for i, place := range places {
		if i > 0 && place == places[i-1] {
			continue // an issuer without a path
		}
		doc, err := Fetch(ctx, client, place)
		if err == nil {
			if err = take(doc); err == nil {
				return nil
			}
			unfit = cmp.Or(unfit, err)
			continue
		}
		missing = cmp.Or(missing, err)
	}
	return cmp.Or(unfit, missing)
}

// jwksURI reads authorization server metadata. It must be that of the issuer
// (RFC 8414 §3.3), or one issuer could speak for another.
func (s *source) jwksURI(doc []byte) (string, error) {
	var d strictjson.Doc
	if d.Reset(doc, strictjson.Limits{Bytes: maxDocument, Depth: 16}) != nil {
		return "", errors.New("the metadata are not JSON")
	}
	if IssuerKey(d.Root().Get("issuer").Text()) != IssuerKey(s.issuer) {
		return "", errors.New("the metadata are those of another issuer")
	}
	uri := strings.Clone(d.Root().Get("jwks_uri").Text())
	if _, err := ParseURL(uri, s.loopback); err != nil {
		return "", errors.New("the metadata name no acceptable jwks_uri")
	}
	return uri, nil
}

// Fetch gets a document of at most 512 KiB. Its errors are constant text.
func Fetch(ctx context.Context, client *http.Client, uri string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	req.Header.Set("Accept", "application/json, application/jwk-set+json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, RequestError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New("the issuer answers with status " + strconv.Itoa(resp.StatusCode))
	}
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, RequestError(ctx, err)
	case len(doc) > maxDocument:
		return nil, errors.New("the issuer's answer is too long")
	}
	return doc, nil
}

// RequestError is the category of err, which may quote what the other side says.
func RequestError(ctx context.Context, err error) error {
	return RequestErrorOf(ctx, "the issuer", err)
}

// RequestErrorOf is RequestError of a request to who.
func RequestErrorOf(ctx context.Context, who string, err error) error {
	var timeout net.Error
	switch {
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return errors.New(who + " does not answer in time")
	case isTLS(err):
		return errors.New(who + "'s certificate is not accepted")
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(who + "'s name cannot be resolved")
	}
	if syserror.Refused(err) {
		return errors.New(who + " cannot be reached: connection refused")
	}
	return errors.New(who + " cannot be reached")
}

func isTLS(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// newClient follows no redirect: an issuer's keys come from where it says.
func newClient(t http.RoundTripper) *http.Client {
	if t == nil {
		t = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DisableKeepAlives:      true, // two requests in a quarter of an hour
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		}
	}
	return NoRedirects(t)
}

// NoRedirects is a client that follows no redirect.
func NoRedirects(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ParseURL parses an absolute https URL without user, query and fragment. With
// loopback it may be http where the host is the machine itself.
func ParseURL(s string, loopback bool) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || len(s) > 2048 || u.String() != s {
		return nil, errors.New("not a URL")
	}
	host, ok := parseAuthority(u.Host)
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback && host.loopback()) {
		return nil, errors.New("not https")
	}
	if !ok || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") {
		return nil, errors.New("not a URL of a host and a path alone")
	}
	return u, nil
}

// InsertWellKnown is u with the path put between its host and its own path (RFC
// 8414 §3.1, RFC 9728 §3.1).
func InsertWellKnown(u *url.URL, path string) string {
	return u.Scheme + "://" + u.Host + path + strings.TrimSuffix(u.EscapedPath(), "/")
}
