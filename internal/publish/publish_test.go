package publish

import (
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

func TestCheckURL(t *testing.T) {
	for address, want := range map[string][2]string{ // "" or a part of the error, without and with allow_private
		"nats+tls://nats.example.com/changes":     {},
		"mqtt+tls://mqtt.example.com:8884/a/b":    {},
		"kafka+tls://kafka.example.com/changes":   {},
		"s3://lake/changes":                       {},
		"s3://lake/changes?region=eu-central-1":   {},
		"https://example.com/changes":             {},
		"http://example.com/changes":              {"use https", ""},
		"nats://nats.example.com/changes":         {"use nats+tls", ""},
		"kafka+tls://127.0.0.1/changes":           {"loopback", ""},
		"kafka+tls://169.254.169.254/changes":     {"metadata", "metadata"},
		"s3://lake/x?endpoint=http://10.0.0.1":    {"use https", ""},
		"s3://lake/x?endpoint=https://10.0.0.1":   {"private", ""},
		"s3://lake/x?token=1":                     {"unknown parameter", "unknown parameter"},
		"s3://lake":                               {"not complete", "not complete"},
		"nats+tls://nats.example.com":             {"not complete", "not complete"},
		"nats+tls://a:b@nats.example.com/x":       {"credentials", "credentials"},
		"nats+tls://nats.example.com/x?a=b":       {"parameters", "parameters"},
		"nats+tls://nats.example.com/changes.>":   {"not a pattern", "not a pattern"},
		"mqtt+tls://mqtt.example.com/changes/%23": {"not a pattern", "not a pattern"},
		"amqp://example.com/x":                    {"not a URL", "not a URL"},
	} {
		for i, private := range []bool{false, true} {
			err := CheckURL(address, private)
			if want[i] == "" {
				checktest.NoError(t, err, "%s, allow_private: %v", address, private)
			} else if err == nil || !strings.Contains(err.Error(), want[i]) {
				t.Errorf("%s, allow_private: %v: got %v, want an error with %q", address, private, err, want[i])
			}
		}
	}
}

func TestSecretIsCheckedAndNotShown(t *testing.T) {
	for secret, ok := range map[string]bool{"": true, "user:": true, "user:pass:word": true, "token": false, ":password": false} {
		_, err := New(Options{URL: "nats+tls://nats.example.com/x", Secret: understudy.NewSecret(secret), Now: time.Now})
		checktest.Equal(t, err == nil, ok, "New")
		checktest.True(t, err == nil || !strings.Contains(err.Error(), "token") && !strings.Contains(err.Error(), "password"),
			"the error has the secret: %v", err)
	}
}
