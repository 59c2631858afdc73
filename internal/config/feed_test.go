package config

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestWatchSettings(t *testing.T) {
	for text, want := range map[string]string{
		``: "",
		`watches: {hosts: [hooks.slack.com, "crm.example.com:8443", "127.0.0.1:80", "[::1]:80"]}`:                                  "",
		`{watches: {mail: [example.com], every: 10s}, mail: {server: "localhost:25", from: "Desk <desk@example.com>"}}`:            "",
		`{watches: {mail: [example.com]}, mail: {server: "mail.example.com:587", from: a@example.com, user: u, secret: "file:x"}}`: "",
		`watches: {mail: [example.com]}`:                "without a server",
		`watches: {hosts: ["https://hooks.slack.com"]}`: "write a host",
		`watches: {hosts: [Hooks.slack.com]}`:           "write a host",
		`watches: {hosts: ["*.example.com"]}`:           "write a host",
		`watches: {hosts: [""]}`:                        "write a host",
		`{watches: {mail: ["desk@example.com"]}, mail: {server: "localhost:25", from: a@example.com}}`:       "write a domain",
		`mail: {server: mail.example.com, from: a@example.com}`:                                              "mail.server",
		`mail: {server: "mail.example.com:0", from: a@example.com}`:                                          "mail.server",
		`mail: {server: "mail.example.com:25", from: a}`:                                                     "mail.from",
		`mail: {server: "mail.example.com:25"}`:                                                              "mail.from",
		`mail: {server: "mail.example.com:25", from: "a@example.com", tls: ssl}`:                             "mail.tls",
		`mail: {server: "mail.example.com:25", from: "a@example.com", user: u}`:                              "go together",
		`mail: {server: "mail.example.com:25", from: "a@example.com", user: u, secret: "file:x", tls: none}`: "unencrypted",
		`mail: {server: "127.0.0.1:25", from: "a@example.com", user: u, secret: "file:x", tls: none}`:        "",
		`mail: {server: "mail.example.com:25", from: "a@example.com\r\nBcc: b@example.com"}`:                 "mail.from",
		`push: {contact: "mailto:desk@example.com", hosts: [push.example.com, .example.net]}`:                "",
		`push: {contact: desk@example.com}`:                                                                  "mailto:",
		`push: {hosts: ["https://push.example.com"]}`:                                                        "push.hosts",
		`push: {apns: {team: A}}`: "10 characters",
		`push: {apns: {team: ABCDE12345, key_id: ABCDE12345, topic: a.b}}`:                                    "push.apns.key",
		`push: {apns: {team: ABCDE12345, key_id: ABCDE12345, key: "file:x", topic: a.b, server: "http://x"}}`: "server: write https",
	} {
		var c Settings
		if err := yaml.Unmarshal([]byte(text), &c); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var said []string
		for _, err := range slices.Concat(c.Watches.check(&c.Mail), c.Push.check()) {
			said = append(said, err.Error())
		}
		all := strings.Join(said, "; ")
		if want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%s: %q, want %q", text, all, want)
		}
	}
}
