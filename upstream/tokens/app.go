// This file requests access tokens for the installation of a GitHub App.

package tokens

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"time"

	"understudy"
)

// The app's own token is valid from a minute ago, because clocks differ, and for less than the ten minutes that
// GitHub allows.
const (
	appSkew = time.Minute
	appLife = 9 * time.Minute
)

// requestInstallation requests a token for the installation in the URL, with the app's own token
// (docs.github.com: Authenticating as a GitHub App installation).
func (s *Issuer) requestInstallation(ctx context.Context, key understudy.Secret) (understudy.Secret, time.Time, error) {
	signed, err := s.signAppToken(key)
	if err != nil {
		return understudy.Secret{}, time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.URL, nil)
	if err != nil {
		return understudy.Secret{}, time.Time{}, errors.New("no token: the request cannot be made")
	}
	req.Header.Set("Authorization", "Bearer "+signed)
	a, err := s.ask(req)
	return a.token(), a.ends, err
}

// signAppToken returns a JSON Web Token (RFC 7519) signed with RS256 (RFC 7518, 3.3).
func (s *Issuer) signAppToken(key understudy.Secret) (string, error) {
	private, err := ReadKey(key)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{"iss": s.o.Client, "iat": s.o.Now().Add(-appSkew).Unix(), "exp": s.o.Now().Add(appLife).Unix()})
	if err != nil {
		return "", err
	}
	part := base64.RawURLEncoding.EncodeToString
	text := part([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, sum[:])
	if err != nil {
		return "", errors.New("no token: the private key cannot sign")
	}
	return text + "." + part(signature), nil
}

// ReadKey parses an RSA private key in PEM, as PKCS #1 or #8.
func ReadKey(key understudy.Secret) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(key.Reveal()))
	if block == nil {
		return nil, errors.New("no token: the secret is not a private key in PEM")
	}
	if private, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return private, nil
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := any.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("no token: the secret is not an RSA private key")
	}
	return private, nil
}
