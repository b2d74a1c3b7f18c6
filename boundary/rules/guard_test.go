// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuardAWS: a key in a file is read again for each request, and nothing shows a key.
func TestGuardAWS(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, "one\n")
	file := filepath.Join(dir, "pellucid.yaml")
	write(file, "version: 1\nguard:\n  aws: {access_key: env:A, secret_key: file:secret}\n")
	getenv := func(name string) (string, bool) {
		return map[string]string{"A": "AKID", "AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "s"}[name], true
	}
	r, err := Load(file, Options{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	a := r.Guard.AWS
	for _, want := range []string{"one", "two"} {
		write(secret, want)
		if got, err := a.Read(a.SecretKey); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if got, err := a.Read(a.AccessKey); got != "AKID" || err != nil || a.Service != "bedrock" || a.Region != "" {
		t.Errorf("%q, %v, %+v", got, err, a)
	}
	if text := string(r.Effective()); strings.Contains(text, "AKID") || !strings.Contains(text, "file:secret") {
		t.Error(text)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Read(a.SecretKey); err == nil {
		t.Errorf("%q of a file that is not there", got)
	}
	env, err := AWSFromEnv(Options{Getenv: getenv}, &GuardAWS{Region: "eu-west-1", Service: "bedrock"})
	if err != nil || env.AccessKey.Reveal() != "AKENV" || env.Region != "eu-west-1" || env.SessionToken.Reveal() != "" {
		t.Errorf("%+v, %v", env, err)
	}
	if _, err := AWSFromEnv(Options{Getenv: func(string) (string, bool) { return "", false }}, nil); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("%v", err)
	}
	write(file, "version: 1\nguard:\n  aws: {access_key: env:A}\n")
	if _, err := Load(file, Options{Getenv: getenv}); err == nil || !strings.Contains(err.Error(), "secret_key") {
		t.Errorf("%v", err)
	}
}
